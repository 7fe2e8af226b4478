"""A history's settings as native code takes them."""

from __future__ import annotations

from dataclasses import asdict

from omnitide_cli.runtime.costs import Costs, kernel_of
from omnitide_cli.runtime.native import ffi, lib
from omnitide_cli.runtime.options import KNOBS, EngineOptions, is_own_policy
from omnitide_cli.runtime.view import KERNELS, LAYOUTS, POLICIES, POSITIONS, HistoryView


class Parameters:
    """An `ot_session_params` and what it points to, which must live as long as the session does."""

    def __init__(
        self,
        options: EngineOptions,
        view: HistoryView,
        *,
        page_size: int,
        subblock_size: int,
        costs: Costs | None = None,
    ) -> None:
        """What `options` say about the history that `view` will look into; `costs` for auto instead of the default.

        Raises UsageError for a policy of the user's own that can't be loaded.
        """
        params = self.pointer = ffi.new("ot_session_params *", lib.ot_session_default_params())
        params.high_watermark = options.high_watermark
        params.low_watermark = options.low_watermark
        if is_own_policy(options.policy):
            from omnitide_cli.runtime.own_policy import OwnPolicy

            self._policy = OwnPolicy(options.policy, view)
            params.retain, params.retain_data = lib.ot_python_retain, self._policy.handle
            params.retain_reads_attention = "attention" in self._policy.wants
        else:
            params.policy = POLICIES[options.policy]
        params.planner = LAYOUTS[options.layout]
        self._set_knobs(options)
        params.positions = POSITIONS[options.positions]
        params.page_size = page_size
        params.subblock_size = subblock_size
        flash_attention = options.flash_attn != "off"
        params.cost.kernel = KERNELS[kernel_of(options.cache_type, flash_attention=flash_attention, on_gpu=False)]
        if costs:
            for name, value in asdict(costs).items():
                setattr(params.cost, name, KERNELS[value] if name == "kernel" else value)

    def _set_knobs(self, options: EngineOptions) -> None:
        """Those that are set; a policy that chooses for itself (a default of None) isn't told anything by 0 either."""
        chosen = {name: getattr(options, name) for name in KNOBS}
        given = {
            name: value for name, value in chosen.items() if value or (value == 0 and KNOBS[name].default is not None)
        }
        self._names = [ffi.new("char[]", name.encode()) for name in given]
        self._knobs = ffi.new("ot_knob[]", list(zip(self._names, given.values(), strict=True)))
        self.pointer.knobs, self.pointer.n_knobs = self._knobs, len(given)

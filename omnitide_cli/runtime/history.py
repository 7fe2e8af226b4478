"""A history without a model: the same ledger, retention, placement and planners as a session's, driven by counts alone.

For `inspect-kv --simulate`, the benchmarks and property tests. See native/include/omnitide.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.runtime.costs import Costs
from omnitide_cli.runtime.native import check, ffi, lib
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.parameters import Parameters
from omnitide_cli.runtime.view import ROLES, UNIT_KINDS, HistoryView, Part


class History(HistoryView):
    """Units go in by size, retention and relocation are planned and taken as done. Use as a context manager."""

    _kind = "history"

    def __init__(
        self,
        options: EngineOptions,
        n_cells: int,
        *,
        mrope: bool = False,
        page_size: int = 64,
        subblock_size: int = 32,
        span_align: int | None = None,
        position_limit: int | None = None,
        costs: Costs | None = None,
    ) -> None:
        """Raises UsageError for settings that can't be; None leaves the native default."""
        self._parameters = Parameters(options, self, page_size=page_size, subblock_size=subblock_size, costs=costs)
        params = self._parameters.pointer
        params.threads = options.threads or params.threads
        chosen = {"span_align": span_align, "position_limit": position_limit}
        for name, value in chosen.items():
            if value is not None:
                setattr(params, name, value)
        out = ffi.new("ot_history **")
        check(lib.ot_history_create(params, n_cells, mrope, out))
        self._handle = out[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the history; harmless when called twice."""
        lib.ot_history_free(self._handle)
        self._handle = ffi.NULL

    def append(self, kind: str, parts: Sequence[Part], start_s: float = 0.0, end_s: float = 0.0) -> int:
        """Add a unit; its id. Raises RuntimeFailure when the cells don't suffice: maintain with a limit first."""
        array = ffi.new("ot_part[]", [(ROLES[part.role], part.length, part.width) for part in parts])
        unit = ffi.new("uint64_t *")
        check(lib.ot_history_append(self._handle, UNIT_KINDS[kind], array, len(parts), start_s, end_s, unit))
        return unit[0]

    def grow(self, role: str, tokens: int = 1) -> None:
        """Add tokens to the newest unit one by one, as an answer grows."""
        check(lib.ot_history_grow(self._handle, ROLES[role], tokens))

    def attend(self, scores: NDArray[np.float64]) -> None:
        """Add the attention that each token receives, in history order: what policies such as h2o retain by."""
        check(self._call("attend", ffi.from_buffer("double[]", np.ascontiguousarray(scores)), len(scores)))

    def restore_session(self, state: NDArray[np.uint8]) -> None:
        """Take the history of what `Session.save` gave; its rows are ignored. Raises SessionFileError."""
        check(self._call("restore_session", ffi.from_buffer("uint8_t[]", state), len(state)))

    def relocated(self) -> NDArray[np.int64]:
        """Rows (source, destination, position shift) of the last maintenance's relocation."""
        rows = self._array("rows", "ot_row")
        return np.array([(r.src, r.dst, r.delta) for r in rows], dtype=np.int64).reshape(len(rows), 3)

    def freed(self) -> NDArray[np.uint32]:
        """Cells that the last maintenance emptied, ascending."""
        return np.array(list(self._array("freed", "uint32_t")), dtype=np.uint32)

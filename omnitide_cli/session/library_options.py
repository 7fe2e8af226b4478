"""The keyword arguments of `load` and `open_session`: a type for checkers, and a check for all others."""

from __future__ import annotations

from typing import Any, TypedDict, get_args, get_type_hints

from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.options import (
    POLICIES,
    CacheType,
    Change,
    FlashAttention,
    Layout,
    Policy,
    Positions,
    is_own_policy,
)


class Options(TypedDict, total=False):
    """Settings of a session, each under the name of its flag on the command line (`omnitide watch --help`)."""

    policy: Policy | str
    """A known one, or FILE.py:FUNCTION."""
    layout: Layout
    positions: Positions
    high_watermark: int
    low_watermark: int
    recent_units: int
    image_sinks: int
    audio_sinks: int
    text_budget: int
    sinks: int
    newest_units: int
    min_pages: int
    max_answer_tokens: int
    temperature: float
    seed: int
    ctx: int
    threads: int
    gpu_layers: int
    cache_type: CacheType
    flash_attn: FlashAttention
    recall_tokens: int
    archive_memory: int
    archive_disk: int
    show_thoughts: bool
    change: Change
    refresh: float


def settings(options: Options) -> dict[str, Any]:
    """Options as the engine takes them. Raises UsageError for what is no choice, TypeError for what is no option."""
    hints = get_type_hints(Options)
    for name, value in options.items():
        if name not in hints:
            raise TypeError(f"'{name}' is no option; there are: {', '.join(hints)}")
        choices = POLICIES if name == "policy" else get_args(hints[name])
        is_known = value is None or value in choices or (name == "policy" and is_own_policy(str(value)))
        if choices and not is_known:
            raise UsageError(f"{name}={value!r}: there is no such {name}", f"choose from {', '.join(choices)}")
    return dict(options)

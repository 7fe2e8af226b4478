"""The last retention and migration, speed and lag, in words."""

from __future__ import annotations

from omnitide_cli.formats.words import counted
from omnitide_cli.runtime.events import Migration, Retention
from omnitide_cli.terminal.dashboard.state import State
from omnitide_cli.times import clock

BEHIND_MS = 1000.0


def retention_words(event: Retention) -> str:
    """What was kept of the history."""
    whole, part, gone = event.full_units, event.partial_units, event.dropped_units
    return (
        f"kept {event.after_tokens:,} of {event.before_tokens:,} tokens:"
        f" {counted(whole, 'unit')} whole, {part} in part, {gone} dropped"
    )


def migration_words(event: Migration) -> str:
    """What was moved in the cache."""
    before, after = event.page_span
    if not event.accepted:
        return f"moved nothing: {event.reason or 'it would cost more than it saves'}"
    if not event.rows_moved:
        return f"shifted {event.rows_shifted:,} rows in place, span {after:,}, {event.ms:.1f} ms"
    return f"moved {event.rows_moved:,} rows, span {before:,} → {after:,}, {event.ms:.1f} ms"


def speed(state: State) -> float | None:
    """Media seconds that one second of work takes in."""
    if state.cost is None or state.unit is None or state.cost.total <= 0:
        return None
    return 1000 * (state.unit.end - state.unit.start) / state.cost.total


def speed_words(state: State) -> str:
    """How fast units are taken in, against real time."""
    factor = speed(state)
    if factor is None or state.is_live:  # a live stream is never taken in faster than it comes
        return ""
    return f"{factor:.0f}× real time" if factor >= 10 else f"{factor:.1f}× real time"


def cost_words(state: State) -> str:
    """Where the time of a unit goes."""
    cost = state.cost
    if cost is None:
        return ""
    parts = (("encode", cost.encode), ("prefill", cost.prefill), ("upkeep", cost.maintain))
    return f"{cost.total:.1f} ms per unit: " + ", ".join(f"{name} {value:.1f}" for name, value in parts)


def lag_words(state: State) -> str:
    """Whether the engine keeps up; nothing while it does."""
    late = state.unit.lag_ms if state.unit else 0.0
    parts = [f"{late / 1000:.1f} s behind"] if late >= BEHIND_MS else []
    if state.dropped_frames:
        parts.append(f"{counted(state.dropped_frames, 'frame')} dropped")
    return ", ".join(parts)


def same_words(state: State) -> str:
    """What was left out because the picture stayed; nothing while every one was encoded."""
    if not state.same_pictures:
        return ""
    return f"{counted(state.same_pictures, 'picture')} left out, {state.saved_tokens:,} tokens saved"


def time_words(state: State) -> str:
    """Where the stream is, and where it will end."""
    if state.unit is None:
        return ""
    now = clock(state.unit.end)
    return f"{now} / {clock(state.end_s)}" if state.units_total else now

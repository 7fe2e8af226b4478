"""Native reports as events, and the sums that make a session's summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnitide_cli.runtime.events import KvBytes, Migration, MigrationTotals, Retention, Summary
from omnitide_cli.runtime.memory import peak_rss_bytes
from omnitide_cli.runtime.native import text
from omnitide_cli.runtime.native_session import LAYOUT_NAMES
from omnitide_cli.runtime.stream_unit import StreamUnit


@dataclass(slots=True)
class SourceCounts:
    """What the units of this run have told of their source; a saved session doesn't carry it on."""

    dropped_frames: int = 0
    lost_sound_s: float = 0.0
    sound_skew_ms: float = 0.0

    def add(self, unit: StreamUnit) -> None:
        """A unit is in the history."""
        self.dropped_frames += unit.dropped_frames
        self.lost_sound_s, self.sound_skew_ms = unit.lost_sound_s, unit.sound_skew_ms


@dataclass(slots=True)
class Totals:
    """Sums over a session, and its peaks."""

    units: int = 0
    media_s: float = 0.0
    answers: int = 0
    last_unit: int = -1
    peak_history: int = 0
    peak_span: int = 0
    retentions: int = 0
    accepted: int = 0
    rejected: int = 0
    rows: int = 0
    bytes: int = 0
    migrate_ms: float = 0.0
    encode_s: float = 0.0
    prefill_s: float = 0.0
    maintain_s: float = 0.0
    answer_s: float = 0.0
    loop_s: float = 0.0
    pictures: int = 0
    same_pictures: int = 0
    saved_tokens: int = 0

    def see(self, now: Any) -> None:
        """Take a snapshot (`ot_snapshot`) into the peaks."""
        self.peak_history = max(self.peak_history, now.history_tokens)
        self.peak_span = max(self.peak_span, now.layout.physical_span)

    def add_maintenance(self, done: Any) -> None:
        """Add a round (`ot_maintenance`) in which something was deleted."""
        self.retentions += 1
        self.accepted += done.accepted
        self.rejected += not done.accepted
        self.rows += done.rows_moved
        self.bytes += done.bytes
        self.migrate_ms += done.migrate_ms

    def summary(self, now: Any, source: SourceCounts, idle_s: float) -> Summary:
        """The session so far; `now` is an `ot_snapshot`, `idle_s` the upkeep that cost a live stream no time."""
        return Summary(
            units=self.units,
            media_s=round(self.media_s, 6),
            stream_loop_s=self.loop_s,
            answers=self.answers,
            history_tokens=now.history_tokens,
            peak_history_tokens=self.peak_history,
            page_span=now.layout.page_span,
            physical_span=now.layout.physical_span,
            peak_physical_span=self.peak_span,
            kv_bytes=kv_bytes(now),
            retentions=self.retentions,
            migrations=MigrationTotals(self.accepted, self.rejected, self.rows, self.bytes, self.migrate_ms),
            dropped_frames=source.dropped_frames,
            max_rotations=now.max_rotations,
            encode_s=self.encode_s,
            prefill_s=self.prefill_s,
            maintain_s=self.maintain_s,
            answer_s=self.answer_s,
            peak_rss_bytes=peak_rss_bytes(),
            maintain_idle_s=min(idle_s, self.maintain_s),
            lost_sound_s=source.lost_sound_s,
            sound_skew_ms=source.sound_skew_ms,
            pictures=self.pictures,
            same_pictures=self.same_pictures,
            saved_tokens=self.saved_tokens,
        )


def kv_bytes(now: Any) -> KvBytes:
    """Memory of the cache of an `ot_snapshot`."""
    per_cell = now.kv_bytes_per_cell
    return KvBytes(
        allocated=now.kv_bytes_allocated,
        span=per_cell * now.layout.physical_span,
        useful=per_cell * now.history_tokens,
    )


def retention(unit: int, done: Any) -> Retention:
    """What a round (`ot_maintenance`) deleted."""
    return Retention(
        unit=unit,
        before_tokens=done.before_tokens,
        after_tokens=done.after_tokens,
        deleted_tokens=done.before_tokens - done.after_tokens,
        full_units=done.full_units,
        partial_units=done.partial_units,
        dropped_units=done.dropped_units,
        plan_ms=done.plan_ms,
    )


def migration(unit: int, done: Any) -> Migration:
    """What a round (`ot_maintenance`) moved and shifted."""
    before, after = done.before, done.after
    return Migration(
        unit=unit,
        planner=LAYOUT_NAMES[done.planner],
        accepted=bool(done.accepted),
        reason=text(done.reason),
        rows_moved=done.rows_moved,
        rows_shifted=done.rows_shifted,
        bytes=done.bytes,
        active_pages=(before.active_pages, after.active_pages),
        active_subblocks=(before.active_subblocks, after.active_subblocks),
        page_span=(before.page_span, after.page_span),
        physical_span=(before.physical_span, after.physical_span),
        ms=done.migrate_ms,
    )

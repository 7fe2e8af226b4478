"""The end of a session as a small table."""

from __future__ import annotations

import textwrap

from omnitide_cli.formats.alerts import totals_words
from omnitide_cli.formats.words import counted, size
from omnitide_cli.runtime.events import SessionStarted, Summary
from omnitide_cli.times import clock

GAP = 2
NARROWEST = 6


def brief_rows(session: SessionStarted | None, summary: Summary, *, is_live: bool = False) -> list[tuple[str, str]]:
    """What most people want to know, in three lines; more only where something was lost."""
    times = summary.media_s / summary.stream_loop_s if summary.stream_loop_s > 0 and not is_live else 0.0
    took = f", {summary.stream_loop_s:.1f} s of work ({times:.1f}x real time)" if times else ""
    answers = counted(summary.answers, "answer")
    rounds = f"; shortened {counted(summary.retentions, 'time')}" if summary.retentions else ""
    kept = f"{summary.history_tokens:,} tokens, at most {summary.peak_history_tokens:,}{_bounds(session)}{rounds}"
    rows = [
        ("media", f"{clock(summary.media_s)} in {counted(summary.units, 'unit')}{took}, {answers}"),
        ("history", kept),
    ]
    return [*rows, *_alert_rows(summary), *_same_rows(summary), *_lost_rows(summary), ("memory", _memory(summary))]


def summary_rows(session: SessionStarted | None, summary: Summary, *, is_live: bool = False) -> list[tuple[str, str]]:
    """All of it: label and text of each line; plain ASCII but for what the user's own names hold."""
    rows = [("media", f"{clock(summary.media_s)} in {counted(summary.units, 'unit')}")]
    rows.append(("stream loop", f"{summary.stream_loop_s:.2f} s{'' if is_live else _speed(summary)}"))
    parts = [
        (name, seconds)
        for name, seconds in (
            ("encode", summary.encode_s),
            ("prefill", summary.prefill_s),
            ("maintain", summary.maintain_s),
            ("answer", summary.answer_s),
        )
        if seconds
    ]
    if parts:
        rows.append(("", ", ".join(f"{name} {seconds:.2f} s" for name, seconds in parts)))
    kept = f"{summary.history_tokens} tokens, at most {summary.peak_history_tokens}{_bounds(session)}"
    rows.append(("history", kept))
    rows += _same_rows(summary)
    rows.append(("physical span", f"{summary.physical_span} cells, at most {summary.peak_physical_span}"))
    rows.append(("retention", counted(summary.retentions, "round")))
    moved = summary.migrations
    rejected = f", {moved.rejected} rejected" if moved.rejected else ""
    work = f" ({moved.rows} rows, {size(moved.bytes)}, {moved.ms:.1f} ms)" if moved.accepted else ""
    rows.append(("migration", f"{counted(moved.accepted, 'round')}{rejected}{work}"))
    if summary.maintain_idle_s:
        share = summary.maintain_idle_s / summary.maintain_s
        rows.append(("upkeep", f"{share:.0%} of it while waiting for the next second"))
    rows += _lost_rows(summary)
    if summary.sound_skew_ms:
        rows.append(("sound clock", f"corrected by {summary.sound_skew_ms:+.0f} ms"))
    return [*rows, ("answers", str(summary.answers)), *_alert_rows(summary), ("memory", _memory(summary))]


def _speed(summary: Summary) -> str:
    return f", {summary.media_s / summary.stream_loop_s:.1f}x real time" if summary.stream_loop_s > 0 else ""


def _bounds(session: SessionStarted | None) -> str:
    return f" (watermarks {session.high_watermark} / {session.low_watermark})" if session else ""


def _same_rows(summary: Summary) -> list[tuple[str, str]]:
    """Nothing where every picture was encoded."""
    if not summary.same_pictures:
        return []
    shown = f"{summary.same_pictures} of {counted(summary.pictures + summary.same_pictures, 'picture')}"
    return [("unchanged", f"{shown}, {summary.saved_tokens:,} tokens saved")]


def _lost_rows(summary: Summary) -> list[tuple[str, str]]:
    """Nothing where nothing was lost."""
    rows = [("dropped", counted(summary.dropped_frames, "frame"))] if summary.dropped_frames else []
    rows += [("lost", f"{summary.lost_sound_s:.2f} s of sound")] if summary.lost_sound_s else []
    return rows + [
        ("not written", f"{each.path} lacks {counted(each.answers, 'answer')} ({each.reason})")
        for each in summary.unwritten
    ]


def _alert_rows(summary: Summary) -> list[tuple[str, str]]:
    """One line a rule."""
    return [("" if number else "alerts", totals_words(each)) for number, each in enumerate(summary.alerts)]


def _memory(summary: Summary) -> str:
    kv = summary.kv_bytes
    return f"cache {size(kv.allocated)}, in use {size(kv.useful)}; process {size(summary.peak_rss_bytes)}"


def summary_lines(
    session: SessionStarted | None, summary: Summary, width: int | None, *, in_full: bool, is_live: bool = False
) -> list[str]:
    """The same as lines of a table, in brief or `in_full`."""
    rows = summary_rows if in_full else brief_rows
    return table_lines(rows(session, summary, is_live=is_live), width)


def table_lines(rows: list[tuple[str, str]], width: int | None) -> list[str]:
    """Labels and texts, wrapped to `width` columns; None is a pipe, where nothing is wrapped."""
    label_width = max(len(label) for label, _ in rows) + GAP
    text_width = max(width - label_width, NARROWEST) if width else None
    lines = []
    for label, text in rows:
        first, *rest = textwrap.wrap(text, text_width) if text_width else [text]
        lines += [label.ljust(label_width) + first, *(" " * label_width + line for line in rest)]
    return lines

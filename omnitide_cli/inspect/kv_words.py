"""What is kept and why, and what retention and migration last did, in sentences."""

from __future__ import annotations

import time
from pathlib import Path

from omnitide_cli.formats.words import counted, one_line, printable, size
from omnitide_cli.runtime.events import Migration, Retention
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.runtime.options import POLICY_ENTRIES
from omnitide_cli.times import clock

RULES = {name: f"{name} {entry.sentence}" for name, entry in POLICY_ENTRIES.items()}


def headline(snapshot: SessionSnapshot, now: float | None = None) -> str:
    """Which session this is and what state it is in."""
    state = snapshot.state
    name = printable(one_line(state.session))
    if snapshot.kind == "simulated":
        return f"{name}: units of one size, without a model"
    age = ago((time.time() if now is None else now) - snapshot.written)
    if snapshot.kind == "saved":
        life = f"saved {age}"
    elif state.running:
        life = f"running, process {snapshot.pid}, seen {age}"
    elif snapshot.ended:
        life = f"ended {age}"
    else:
        life = f"ended unexpectedly (killed?), last seen {age}"
    words = f"{name}: {life}, at {clock(max(snapshot.clock, 0.0))} of the media"
    was_killed = not state.running and not snapshot.ended
    if was_killed and snapshot.checkpoint and Path(snapshot.checkpoint).is_file():
        words += f"; --resume {printable(snapshot.checkpoint)} continues it, or --resume last"
    return words


def subject(snapshot: SessionSnapshot) -> str:
    """What it watches, with which settings."""
    about = snapshot.about
    settings = f"policy {about.policy}, layout {about.layout}, positions {about.positions}"
    marks = f"watermarks {about.high_watermark} / {about.low_watermark}" if about.policy != "full" else ""
    what = "" if about.model == "none" else f"{about.source}, model {about.model}"
    return printable(one_line(", ".join(part for part in (what, settings, marks) if part)))


def ago(seconds: float) -> str:
    """just now, 12 s ago, 3 min ago, 2 h ago, 4 days ago."""
    for limit, unit, length in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            count = max(int(seconds / length), 0)
            return f"{count} {unit} ago" if count else "just now"
    return f"{min(int(seconds / 86_400), 99_999)} days ago"


def retention_words(snapshot: SessionSnapshot, *, brief: bool = False) -> str:
    """What was forgotten last, and by which rule (unless `brief`)."""
    about, done = snapshot.about, snapshot.retention
    rule = RULES.get(about.policy, f"the policy is {printable(about.policy)}")
    if done is None and snapshot.kind == "saved":
        return f"A saved file doesn't record the last eviction. {rule[0].upper()}{rule[1:]}."
    if done is None:
        if about.policy == "full":
            return f"Nothing is evicted: {rule}."
        return (
            f"Nothing has been evicted yet: the history has not grown above the high watermark ({about.high_watermark}"
            f" tokens). Then {rule}."
        )
    words = _retention(done, about.high_watermark, about.low_watermark)
    return words if brief else f"{words} {rule[0].upper()}{rule[1:]}."


def _retention(done: Retention, high: int, low: int) -> str:
    cause = f"above the high watermark ({high})" if done.before_tokens > high else "and room was needed"
    return (
        f"After unit {done.unit} the history was {done.before_tokens} tokens long, {cause}, so {done.deleted_tokens} of"
        f" them were evicted, down to {done.after_tokens} (target: {low}, the low watermark):"
        f" {counted(done.full_units, 'unit')} kept whole, {done.partial_units} in part, {done.dropped_units} dropped."
    )


def migration_words(snapshot: SessionSnapshot) -> str:
    """What was moved last, and what that won."""
    about, done = snapshot.about, snapshot.migration
    if done is None and snapshot.kind == "saved":
        return f"A saved file doesn't record the last move; the layout is {printable(about.layout)}."
    if done is None:
        return "Nothing has been moved yet: nothing was evicted that could have left holes."
    reason = printable(one_line(done.reason))
    if not done.accepted:
        because = f": {reason}" if reason else ""
        moved = f"{printable(done.planner)} moved nothing{because}. {_pages(done)}"
    else:
        work = f"{counted(done.rows_moved, 'row')} moved"
        cost = f" ({size(done.bytes)}, {done.ms:.1f} ms)" if done.bytes else ""
        chosen = f", chosen by {about.layout}" if about.layout == "auto" else ""
        moved = f"{printable(done.planner)}{chosen}: {work}{cost}" + (f", which {reason}" * bool(reason)) + "."
        for win, words in (("fewer", "fewer"), ("shorter", "a shorter"), ("shortest", "the shortest")):
            moved = moved.replace(f"which {win} ", f"which leaves {words} ")
        moved += f" {_pages(done)}"
    if done.rows_shifted:
        moved += f" {counted(done.rows_shifted, 'row')} were renumbered, so that positions have no gaps."
    return moved


def _pages(done: Migration) -> str:
    (pages, now_pages), (span, now_span) = done.active_pages, done.page_span
    if (pages, span) == (now_pages, now_span):
        return f"In use: {counted(pages, 'page')}, page span {span} cells."
    return f"In use before: {counted(pages, 'page')}, page span {span} cells; after: {now_pages}, {now_span}."


def same_words(snapshot: SessionSnapshot) -> str:
    """What was left out because the picture stayed; nothing where every one was encoded."""
    if not snapshot.same_pictures:
        return ""
    shown = counted(snapshot.pictures + snapshot.same_pictures, "picture")
    return f"{snapshot.same_pictures} of {shown} left out, {snapshot.saved_tokens} tokens saved"

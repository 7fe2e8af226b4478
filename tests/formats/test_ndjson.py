"""NDJSON against the interface, field by field: fields may be added, none may go or change its kind."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from omnitide_cli.errors import SourceError
from omnitide_cli.formats.ndjson import NdjsonSink
from omnitide_cli.runtime.events import (
    Answer,
    AnswerDelta,
    Event,
    KvBytes,
    Migration,
    MigrationTotals,
    Notice,
    Retention,
    SessionStarted,
    Summary,
    TokenCounts,
    UnitIngested,
)

NUMBER = (int, float)
PAIR = [int, int]
SESSION = SessionStarted(
    version="0.1.0",
    model="m",
    source="s",
    policy="omnipick",
    layout="eager",
    positions="compact",
    high_watermark=2500,
    low_watermark=1800,
    n_ctx=4096,
    page_size=64,
    subblock_size=32,
    cache_type="f16",
    threads=2,
    flash_attn=True,
)
UNIT = UnitIngested(
    index=0,
    start=0.0,
    end=1.0,
    tokens=TokenCounts(16, 25, 0, 4, 45),
    history_tokens=60,
    page_span=64,
    physical_span=256,
    encode_ms=1.0,
    prefill_ms=2.0,
    maintain_ms=0.1,
)
RETENTION = Retention(
    unit=3,
    before_tokens=100,
    after_tokens=60,
    deleted_tokens=40,
    full_units=1,
    partial_units=1,
    dropped_units=1,
    plan_ms=0.1,
)
MIGRATION = Migration(
    unit=3,
    planner="eager",
    accepted=True,
    reason="",
    rows_moved=5,
    rows_shifted=6,
    bytes=700,
    active_pages=(3, 2),
    active_subblocks=(5, 4),
    page_span=(192, 128),
    physical_span=(256, 256),
    ms=0.5,
)
ANSWER = Answer(
    at=1.0, unit=0, question="What?", text="A fish 🐟.", tokens=4, ttft_ms=5.0, tokens_per_s=100.0, stop="eos"
)
SUMMARY = Summary(
    units=1,
    media_s=1.0,
    stream_loop_s=0.5,
    answers=1,
    history_tokens=60,
    peak_history_tokens=100,
    page_span=64,
    physical_span=256,
    peak_physical_span=256,
    kv_bytes=KvBytes(3, 2, 1),
    retentions=1,
    migrations=MigrationTotals(1, 0, 11, 700, 0.5),
    peak_rss_bytes=10**8,
)

SCHEMA: list[tuple[Event, dict[str, Any]]] = [
    (
        SESSION,
        {
            "type": str,
            "schema": int,
            "version": str,
            "model": str,
            "source": str,
            "policy": str,
            "layout": str,
            "positions": str,
            "high_watermark": int,
            "low_watermark": int,
            "n_ctx": int,
            "page_size": int,
            "subblock_size": int,
            "cache_type": str,
            "threads": int,
        },
    ),
    (
        UNIT,
        {
            "type": str,
            "index": int,
            "start": NUMBER,
            "end": NUMBER,
            "tokens": {"image": int, "audio": int, "text": int, "boundary": int, "total": int},
            "history_tokens": int,
            "page_span": int,
            "physical_span": int,
            "encode_ms": NUMBER,
            "prefill_ms": NUMBER,
            "maintain_ms": NUMBER,
            "lag_ms": NUMBER,
            "dropped_frames": int,
        },
    ),
    (AnswerDelta(at=1.0, text="A"), {"type": str, "at": NUMBER, "text": str}),
    (
        RETENTION,
        {
            "type": str,
            "unit": int,
            "before_tokens": int,
            "after_tokens": int,
            "deleted_tokens": int,
            "full_units": int,
            "partial_units": int,
            "dropped_units": int,
            "plan_ms": NUMBER,
        },
    ),
    (
        MIGRATION,
        {
            "type": str,
            "unit": int,
            "planner": str,
            "accepted": bool,
            "reason": str,
            "rows_moved": int,
            "rows_shifted": int,
            "bytes": int,
            "active_pages": PAIR,
            "active_subblocks": PAIR,
            "page_span": PAIR,
            "physical_span": PAIR,
            "ms": NUMBER,
        },
    ),
    (
        ANSWER,
        {
            "type": str,
            "at": NUMBER,
            "unit": int,
            "question": str,
            "text": str,
            "tokens": int,
            "ttft_ms": NUMBER,
            "tokens_per_s": NUMBER,
            "stop": str,
        },
    ),
    (Notice("a-code", "message", "hint"), {"type": str, "code": str, "message": str, "hint": str}),
    (
        SUMMARY,
        {
            "type": str,
            "units": int,
            "media_s": NUMBER,
            "stream_loop_s": NUMBER,
            "answers": int,
            "history_tokens": int,
            "peak_history_tokens": int,
            "page_span": int,
            "physical_span": int,
            "peak_physical_span": int,
            "kv_bytes": {"allocated": int, "span": int, "useful": int},
            "retentions": int,
            "migrations": {"accepted": int, "rejected": int, "rows": int, "bytes": int, "ms": NUMBER},
            "dropped_frames": int,
            "max_rotations": int,
            "peak_rss_bytes": int,
        },
    ),
]


def written(event: Event, encoding: str = "utf-8") -> tuple[str, dict[str, Any]]:
    """The line of an event, and what a program reads from it."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    NdjsonSink(stream).emit(event)
    line = raw.getvalue().decode(encoding)  # flushed without being asked
    return line, json.loads(line)


@pytest.mark.parametrize(("event", "schema"), SCHEMA, ids=lambda value: getattr(value, "type", None))
def test_every_field_of_the_interface_is_there(event: Event, schema: dict[str, Any]) -> None:
    line, fields = written(event)
    assert line.endswith("}\n")
    assert line.count("\n") == 1
    assert next(iter(fields)) == "type"
    _assert_kind(fields, schema)


def _assert_kind(value: Any, kind: Any) -> None:
    if isinstance(kind, dict):
        for name, inner in kind.items():
            _assert_kind(value[name], inner)
    elif isinstance(kind, list):
        assert len(value) == len(kind)
        for item, inner in zip(value, kind, strict=True):
            _assert_kind(item, inner)
    else:
        assert isinstance(value, kind)


def test_types_are_named_as_in_the_interface() -> None:
    names = [written(event)[1]["type"] for event, _ in SCHEMA]
    assert names == ["session", "unit", "answer_delta", "retention", "migration", "answer", "warning", "summary"]
    assert written(SESSION)[1]["schema"] == 1


def test_utf8_stays_readable_and_other_encodings_stay_whole() -> None:
    assert "🐟" in written(ANSWER)[0]
    for encoding in ("ascii", "latin-1", "cp1252"):
        line, fields = written(ANSWER, encoding)
        assert line.isascii()
        assert fields["text"] == ANSWER.text


def test_a_failure_is_an_event() -> None:
    stream = io.StringIO()
    NdjsonSink(stream).failed(SourceError("clip.mp4 is empty", "copy it again"))
    assert json.loads(stream.getvalue()) == {
        "type": "error",
        "code": "source-error",
        "message": "clip.mp4 is empty",
        "hint": "copy it again",
    }

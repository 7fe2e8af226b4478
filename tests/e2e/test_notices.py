"""What the engine tells before anybody asks: settings that are slow, units that are too large."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.media import MediaUnit
from omnitide_cli.media.unit import NO_SOUND
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, AnswerDelta, Event, Migration, Notice, UnitIngested
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

UNIT = MediaUnit(0, 0.0, 1.0, np.zeros((112, 112, 3), np.uint8), None, NO_SOUND, NO_SOUND)


def open_engine(manifest: Manifest, files: ModelFiles, options: EngineOptions) -> Engine:
    return Engine.open(files, manifest.prompt, options)


def codes(events: Iterable[Event]) -> list[str]:
    return [event.code for event in events if isinstance(event, Notice)]


def test_a_unit_above_the_high_watermark_is_kept_and_told(manifest: Manifest, demo_files: ModelFiles) -> None:
    """docs/omnipick.md, "Invariants": never an endless loop."""
    wide = MediaUnit(0, 0.0, 1.0, np.zeros((112, 1120, 3), np.uint8), None, NO_SOUND, NO_SOUND)
    options = EngineOptions(threads=2, high_watermark=120, low_watermark=90, unit_tokens=18)
    with open_engine(manifest, demo_files, options) as engine:
        engine.start("test")
        for _ in range(3):
            events = engine.ingest(wide)
            assert "unit-too-large" in codes(events)
            (unit,) = (event for event in events if isinstance(event, UnitIngested))
            assert unit.tokens.total > 120
            assert unit.history_tokens >= unit.tokens.total
        engine.session.check()


def test_a_quantised_cache_on_a_cpu_is_told_to_be_slow(manifest: Manifest, demo_files: ModelFiles) -> None:
    with open_engine(manifest, demo_files, EngineOptions(threads=2, cache_type="q8_0")) as engine:
        engine.start("test")
        assert codes(engine.ingest(UNIT)) == ["slow-cache-type"]
        assert codes(engine.ingest(UNIT)) == []


def test_a_migration_tells_the_bytes_it_rewrote(manifest: Manifest, demo_files: ModelFiles) -> None:
    options = EngineOptions(threads=2, high_watermark=200, low_watermark=100, unit_tokens=18, layout="eager")
    with open_engine(manifest, demo_files, options) as engine:
        engine.start("test")
        events = [event for _ in range(30) for event in engine.ingest(UNIT)]
        migrations = [event for event in events if isinstance(event, Migration)]
        assert migrations
        per_cell = engine.session.snapshot().kv_bytes_per_cell
        for event in migrations:
            rows, rest = divmod(event.bytes, per_cell)
            assert rest == 0
            assert max(event.rows_moved, event.rows_shifted) <= rows <= event.rows_moved + event.rows_shifted
            assert event.rows_moved > 0


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        ([b"\xf0\x9f", b"\x90\x9f", b" fish", None], "🐟 fish"),
        (["中".encode()[:1], "中".encode()[1:2], "中文".encode()[2:], None], "中文"),
        ([b"cut \xf0\x9f", None], "cut \N{REPLACEMENT CHARACTER}"),
        ([b"\xff!", None], "\N{REPLACEMENT CHARACTER}!"),
    ],
)
def test_tokens_that_split_a_character_show_it_whole(
    manifest: Manifest, demo_files: ModelFiles, pieces: list[bytes | None], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 15: whole characters or a replacement."""
    with open_engine(manifest, demo_files, EngineOptions(threads=2)) as engine:
        engine.start("test")
        engine.ingest(UNIT)
        coming = iter(pieces)
        monkeypatch.setattr(engine.session, "generate_next", lambda: next(coming))
        events = list(engine.ask("What?", 1.0))
        (answer,) = (event for event in events if isinstance(event, Answer))
        assert answer.text == shown
        assert "".join(event.text for event in events if isinstance(event, AnswerDelta)) == shown

"""`--change auto` with the shipped model: what is left out, what is told of it, and what a saved session knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.media import MediaUnit
from omnitide_cli.media.unit import NO_SOUND
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Scene, UnitIngested
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.runtime.saved import Saved, SavedMedia, SavedModel, SavedOptions, SavedQuestions
from omnitide_cli.runtime.session_file import CHANGE, SessionFile

RNG = np.random.default_rng(3)
ROOM = np.kron(RNG.integers(0, 256, (7, 7, 3)), np.ones((16, 16, 1))).astype(np.uint8)
OTHER = 255 - ROOM // 2
SOUND = RNG.normal(0, 0.05, 16_000).astype(np.float32)
AUTO = EngineOptions(threads=2, unit_tokens=64, change="auto")
IMAGE = 16 + 2
"""Tokens of a picture, its marks included."""


def unit(index: int, frame: np.ndarray | None = ROOM, audio: np.ndarray | None = SOUND) -> MediaUnit:
    return MediaUnit(index, float(index), index + 1.0, frame, audio, NO_SOUND, NO_SOUND)


def units(count: int) -> list[MediaUnit]:
    """A room, another from second 10 on."""
    return [unit(index, ROOM if index < 10 else OTHER) for index in range(count)]


@pytest.fixture
def engine(manifest: Manifest, demo_files: ModelFiles) -> Iterator[Engine]:
    with Engine.open(demo_files, manifest.prompt, AUTO) as opened:
        yield opened


def ingest(engine: Engine, media: Sequence[MediaUnit]) -> list[UnitIngested | Scene]:
    found = [event for each in media for event in engine.ingest(each)]
    return [event for event in found if isinstance(event, UnitIngested | Scene)]


def test_a_picture_that_stays_is_left_out_and_said_to_be(engine: Engine) -> None:
    engine.start("test")
    told = ingest(engine, units(14))
    seen = [event for event in told if isinstance(event, UnitIngested)]
    assert [event.picture for event in seen] == ["new", *["same"] * 9, "new", *["same"] * 3]
    whole, bare = seen[0].tokens, seen[1].tokens
    assert (whole.image, bare.image, bare.audio) == (16, 0, whole.audio)
    assert whole.total - bare.total == IMAGE == seen[1].saved_tokens
    assert seen[0].saved_tokens == 0
    scenes = [event for event in told if isinstance(event, Scene)]
    assert [(event.unit, event.at) for event in scenes] == [(10, 10.0)]
    assert told.index(scenes[0]) == told.index(seen[10]) - 1, "a scene is told before its unit"
    summary = engine.summary()
    assert (summary.pictures, summary.same_pictures, summary.saved_tokens) == (2, 12, 12 * IMAGE)
    engine.session.check()


def test_a_silent_second_that_shows_the_same_takes_nothing(engine: Engine) -> None:
    engine.start("test")
    ingest(engine, [unit(0, audio=None)])
    before = engine.session.snapshot().history_tokens
    (told,) = ingest(engine, [unit(1, audio=None)])
    assert isinstance(told, UnitIngested)
    assert (told.picture, told.tokens.total, told.saved_tokens) == ("same", 0, IMAGE)
    assert engine.session.snapshot().history_tokens == before
    assert engine.summary().units == 2


def test_units_without_a_picture_are_none_and_change_nothing(engine: Engine) -> None:
    engine.start("test")
    told = ingest(engine, [unit(0), unit(1, frame=None), unit(2)])
    assert [event.picture for event in told if isinstance(event, UnitIngested)] == ["new", "none", "same"]


def test_off_encodes_all(manifest: Manifest, demo_files: ModelFiles) -> None:
    with Engine.open(demo_files, manifest.prompt, EngineOptions(threads=2)) as engine:
        engine.start("test")
        told = ingest(engine, units(12))
        assert [event.picture for event in told if isinstance(event, UnitIngested)] == ["new"] * 12
        assert not any(isinstance(event, Scene) for event in told)
        assert CHANGE not in engine.save_sections()


def test_a_unit_that_failed_was_not_seen(engine: Engine) -> None:
    engine.start("test")
    engine.interrupt()
    assert engine.ingest(unit(0)).result is None
    told = ingest(engine, [unit(0), unit(1)])
    assert [event.picture for event in told if isinstance(event, UnitIngested)] == ["new", "same"]


def test_the_last_picture_is_encoded_anew_once_the_history_has_lost_of_it(
    manifest: Manifest, demo_files: ModelFiles
) -> None:
    """Otherwise a question about now would find four tokens of it, with the picture still on screen."""
    options = replace(AUTO, refresh=1e6, high_watermark=300, low_watermark=200)
    with Engine.open(demo_files, manifest.prompt, options) as engine:
        engine.start("test")
        for index in range(60):
            ingest(engine, [unit(index)])
            shown = [each for each in engine.session.units() if any(span.width for span in each.spans)]
            if all(each.partial for each in shown):
                break
        else:
            pytest.fail("the history never lost any of the picture")
        told = ingest(engine, [unit(index + 1), unit(index + 2)])
        assert [event.picture for event in told if isinstance(event, UnitIngested)] == ["new", "same"]


def test_a_session_goes_on_from_a_file_as_if_nothing_had_been(manifest: Manifest, demo_files: ModelFiles) -> None:
    options = replace(AUTO, high_watermark=300, low_watermark=200, ctx=512)
    media = units(40)
    with Engine.open(demo_files, manifest.prompt, options) as engine:
        engine.start("test")
        ingest(engine, media[:17])
        saved, state = engine.save()
        sections = {tag: bytes(part) for tag, part in engine.save_sections().items()}
        expected = [each.to_json() for each in ingest(engine, media[17:])]
        tokens = engine.session.tokens()
        sums = engine.summary()
    names = SavedOptions.__dataclass_fields__
    file = SessionFile(
        Saved(
            "test",
            SavedModel("omnitide-demo", "", None, ""),
            SavedOptions(**{name: getattr(options, name) for name in names}),
            SavedMedia("test", None, None, 1.0, None, True, True, 0.0, None, 1, 17.0, 17.0, 17, 0),
            SavedQuestions(),
            saved,
        ),
        state,
        sections,
    )
    with Engine.open(demo_files, manifest.prompt, options) as engine:
        engine.start("test", file)
        found = [each.to_json() for each in ingest(engine, media[17:])]
        assert np.array_equal(engine.session.tokens(), tokens)
        assert engine.summary().same_pictures == sums.same_pictures
        assert engine.summary().saved_tokens == sums.saved_tokens
    for mine, other in zip(found, expected, strict=True):
        for name in ("type", "picture", "saved_tokens", "tokens", "history_tokens", "similarity"):
            assert mine.get(name) == other.get(name)

"""The engine with the shipped model: what an interruption stops, and what it must not reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.errors import ModelError, RuntimeFailure
from omnitide_cli.media import MediaUnit
from omnitide_cli.media.unit import NO_SOUND
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, AnswerDelta, UnitIngested
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

PICTURE = np.zeros((112, 112, 3), np.uint8)
UNIT = MediaUnit(0, 0.0, 1.0, PICTURE, None, NO_SOUND, NO_SOUND)


@pytest.fixture
def engine(manifest: Manifest, demo_files: ModelFiles) -> Iterator[Engine]:
    with Engine.open(demo_files, manifest.prompt, EngineOptions(threads=2)) as opened:
        yield opened


def test_an_interrupted_start_leaves_no_token(engine: Engine) -> None:
    engine.interrupt()
    engine.start("test")
    assert engine.session.snapshot().history_tokens == 0
    engine.session.check()


def test_an_interruption_ends_with_what_was_in_hand(engine: Engine) -> None:
    engine.start("test")
    before = engine.session.snapshot().history_tokens
    engine.interrupt()
    assert engine.ingest(UNIT) == []
    assert engine.session.snapshot().history_tokens == before
    assert any(isinstance(event, UnitIngested) for event in engine.ingest(UNIT))
    answer = next(event for event in engine.ask("What do you see and hear?", 1.0) if isinstance(event, Answer))
    assert answer.stop == "eos"


def test_why_there_is_no_sound_is_said(manifest: Manifest, demo_files: ModelFiles) -> None:
    text_alone = replace(demo_files, mmproj=None)
    loud = replace(UNIT, frame=None, audio=np.zeros(16_000, np.float32))
    with Engine.open(text_alone, manifest.prompt, EngineOptions(threads=2)) as engine:
        engine.start("test")
        with pytest.raises(ModelError, match="can't hear sound: the model has no audio encoder"):
            engine.ingest(loud)


def test_an_answer_that_is_interrupted_stays_as_far_as_it_was_spoken(engine: Engine) -> None:
    engine.start("test")
    engine.ingest(UNIT)
    events = []
    for event in engine.ask("What do you see and hear?", 1.0):
        events.append(event)
        if isinstance(event, AnswerDelta):
            engine.interrupt()
    spoken = "".join(event.text for event in events if isinstance(event, AnswerDelta))
    answer = next(event for event in events if isinstance(event, Answer))
    assert (answer.text, answer.stop) == (spoken.strip(), "interrupted")
    assert answer.tokens == 1
    engine.session.check()
    again = next(event for event in engine.ask("What do you see and hear?", 1.0) if isinstance(event, Answer))
    assert again.stop == "eos"


def test_an_answer_ends_with_its_engine(engine: Engine) -> None:
    engine.start("test")
    engine.ingest(UNIT)
    events = engine.ask("What do you see and hear?", 1.0)
    assert isinstance(next(events), AnswerDelta)
    engine.close()
    assert list(events) == []
    with pytest.raises(RuntimeFailure, match="closed"):
        list(engine.ask("And now?", 2.0))
    engine.close()

"""The engine with the shipped model: what an interruption stops, and what it must not reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.errors import ModelError
from omnitide_cli.media import MediaUnit
from omnitide_cli.media.unit import NO_SOUND
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, UnitIngested
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
        with pytest.raises(ModelError, match="takes no sound: the model has no audio encoder"):
            engine.ingest(loud)

"""The engine with the shipped model: what an interruption stops, and what it must not reach."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.errors import ModelError, RuntimeFailure
from omnitide_cli.media import MediaUnit
from omnitide_cli.media.unit import NO_SOUND
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, AnswerDelta, Notice, Retention
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.session.configuration import check_sound

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
    assert engine.ingest(UNIT).result is None
    assert engine.session.snapshot().history_tokens == before
    assert engine.ingest(UNIT).result
    answer = engine.ask("What do you see and hear?", 1.0).result
    assert answer
    assert answer.stop == "eos"


def test_why_there_is_no_sound_is_said(manifest: Manifest, demo_files: ModelFiles) -> None:
    text_alone = replace(demo_files, mmproj=None)
    loud = replace(UNIT, frame=None, audio=np.zeros(16_000, np.float32))
    with Engine.open(text_alone, manifest.prompt, EngineOptions(threads=2)) as engine:
        engine.start("test")
        with pytest.raises(ModelError, match="can't hear sound: the model has no audio encoder"):
            engine.ingest(loud)


def test_a_manifest_of_another_sound_encoder_is_refused(engine: Engine, manifest: Manifest) -> None:
    heard = engine.audio_format
    assert heard is not None
    assert heard.rate == heard.samples_per_token * manifest.audio.tokens_per_second
    check_sound(manifest, engine)
    other = replace(manifest, audio=replace(manifest.audio, encoder="cochlea"))
    with pytest.raises(ModelError, match="names the sound encoder cochlea, but the model has whisper"):
        check_sound(other, engine)


def test_what_should_be_known_of_the_settings_outlives_an_interrupted_unit(
    manifest: Manifest, demo_files: ModelFiles
) -> None:
    with Engine.open(demo_files, manifest.prompt, EngineOptions(threads=2, cache_type="q8_0")) as engine:
        engine.start("test")
        engine.interrupt()
        assert list(engine.ingest(UNIT)) == []
        told = [event.code for event in engine.ingest(UNIT) if isinstance(event, Notice)]
        assert told == ["slow-cache-type"]


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
    again = engine.ask("What do you see and hear?", 1.0).result
    assert again
    assert again.stop == "eos"


def test_an_answer_ends_with_its_engine(engine: Engine) -> None:
    engine.start("test")
    engine.ingest(UNIT)
    events = engine.ask("What do you see and hear?", 1.0)
    first = next(iter(events))
    assert isinstance(first, AnswerDelta)
    engine.close()
    assert list(events) == [first]
    with pytest.raises(RuntimeFailure, match="closed"):
        list(engine.ask("And now?", 2.0))
    engine.close()


def test_whoever_stops_reading_an_answer_leaves_no_upkeep_undone(manifest: Manifest, demo_files: ModelFiles) -> None:
    options = EngineOptions(threads=2, high_watermark=90, low_watermark=60, unit_tokens=18, recent_units=1)
    with Engine.open(demo_files, manifest.prompt, options) as engine:
        engine.start("test")
        for index in range(2):
            engine.ingest(replace(UNIT, index=index, start=float(index), end=index + 1.0))
        asked = engine.ask("What do you see and hear? " * 8, 2.0)
        for event in asked:
            if isinstance(event, AnswerDelta):
                break
        assert engine.session.snapshot().history_tokens > options.high_watermark
        engine.ingest(replace(UNIT, index=2, start=2.0, end=3.0))
        answer = asked.result
        assert answer
        assert (answer.stop, answer.tokens) == ("interrupted", 1)
        assert any(isinstance(event, Retention) for event in asked)
        assert engine.session.snapshot().history_tokens <= options.high_watermark
        assert engine.summary().answers == 1
        engine.session.check()


def test_a_question_that_nobody_read_an_answer_to_is_not_asked(engine: Engine) -> None:
    engine.start("test")
    before = engine.session.snapshot().history_tokens
    unread = engine.ask("What do you see and hear?", 0.0)
    answer = engine.ask("What do you see and hear?", 0.0).result
    assert answer
    assert list(unread) == []
    assert engine.summary().answers == 1
    assert engine.session.snapshot().history_tokens > before


def test_a_question_that_was_refused_unread_stops_no_later_answer(engine: Engine) -> None:
    """Whoever leaves after the notice leaves an exchange without an answer: the next one is asked in full."""
    engine.start("test")
    engine.ingest(UNIT)
    events = iter(engine.ask("word " * 20_000, 1.0))
    notice = next(events)
    assert isinstance(notice, Notice)
    assert notice.code == "question-too-long"
    answer = engine.ask("What do you see and hear?", 1.0).result
    assert answer
    assert (answer.stop, bool(answer.text)) == ("eos", True)
    engine.session.check()


def test_a_session_is_saved_though_an_answer_was_left(engine: Engine) -> None:
    engine.start("test")
    engine.ingest(UNIT)
    for _ in engine.ask("What do you see and hear?", 1.0):
        break
    saved, state = engine.save()
    assert saved.totals.answers == 1
    assert state.size


def test_events_of_a_live_unit_leave_the_engine_complete(engine: Engine) -> None:
    live = replace(UNIT, complete_at=time.monotonic() - 0.5, dropped_frames=3, lost_sound_s=0.25, sound_skew_ms=-4.0)
    started = engine.start("test").result
    assert started
    assert started.wall
    taken = engine.ingest(live).result
    answer = engine.ask("What do you see and hear?", 0.5).result
    assert taken
    assert answer
    assert 500 <= taken.lag_ms < 60_000
    assert taken.dropped_frames == 3
    assert taken.wall
    assert answer.wall
    ended, asked = datetime.fromisoformat(taken.wall), datetime.fromisoformat(answer.wall)
    assert ended.tzinfo
    assert (ended - asked).total_seconds() == pytest.approx(0.5, abs=0.002)
    assert -0.5 - 60 < ended.timestamp() - time.time() < -0.4
    summary = engine.summary()
    assert (summary.dropped_frames, summary.lost_sound_s, summary.sound_skew_ms) == (3, 0.25, -4.0)


def test_what_is_not_live_has_no_time_of_day(engine: Engine) -> None:
    engine.start("test")
    taken, answer = engine.ingest(UNIT).result, engine.ask("What do you see and hear?", 1.0).result
    assert taken
    assert answer
    assert (taken.wall, taken.lag_ms, answer.wall) == (None, 0.0, None)


@pytest.mark.parametrize(
    ("shows", "text"), [(False, "A red circle."), (True, "<think>red? yes</think>\nA red circle.")]
)
def test_thoughts_cost_tokens_and_are_left_out(
    manifest: Manifest, demo_files: ModelFiles, monkeypatch: pytest.MonkeyPatch, shows: bool, text: str
) -> None:
    """Case 37, with the demo model's own tokens said as another model would say them."""
    pieces = iter([b"<th", b"ink>red?", b" yes</", b"think>\nA", b" red", b" circle.", None])
    with Engine.open(demo_files, manifest.prompt, EngineOptions(threads=2, show_thoughts=shows)) as engine:
        spoken = engine.session.generate_next

        def speak() -> bytes | None:
            spoken()
            return next(pieces)

        monkeypatch.setattr(engine.session, "generate_next", speak)
        engine.start("test")
        engine.ingest(UNIT)
        events = list(engine.ask("What do you see?", 1.0))
        engine.session.check()
    assert "".join(event.text for event in events if isinstance(event, AnswerDelta)).strip() == text
    (answer,) = [event for event in events if isinstance(event, Answer)]
    assert (answer.text, answer.tokens, answer.thought_tokens) == (text, 6, 4)


def test_a_thought_without_an_end_is_told(
    manifest: Manifest, demo_files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine.open(demo_files, manifest.prompt, EngineOptions(threads=2, max_answer_tokens=3)) as engine:
        spoken = engine.session.generate_next
        monkeypatch.setattr(engine.session, "generate_next", lambda: (spoken(), b"<think>")[1])
        engine.start("test")
        events = list(engine.ask("What?", 0.0))
    (answer,) = [event for event in events if isinstance(event, Answer)]
    assert (answer.text, answer.stop, answer.thought_tokens) == ("", "length", 3)
    assert [event.code for event in events if isinstance(event, Notice)] == ["thoughts-too-long"]

"""`omnitide watch` around the engine: what is asked when, what goes where, how it ends."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.catalog.files import find_manifest

Omnitide = Callable[..., Any]


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_answer_goes_to_standard_output_and_the_summary_to_standard_error(
    omnitide: Omnitide, clip: Path, engine: Any
) -> None:
    result = omnitide("watch", clip, "--ask", "What is there?")
    assert result.code == 0
    assert result.out == "[0:03] What is there?\nA red circle.\n"
    assert "3 units" in result.err
    assert "\x1b" not in result.err
    assert engine.opened[0].closed


def test_questions_are_asked_when_they_are_due(omnitide: Omnitide, clip: Path, engine: Any, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"at": 0.5, "ask": "f"}\n{"ask": "g"}\n')
    omnitide("watch", clip, "--ask", "a", "--ask", "b", "--ask-at", "1.5=c", "--every", "2=d", "--questions", file)
    assert engine.opened[0].asked == [("f", 1.0), ("c", 2.0), ("d", 2.0), ("a", 3.0), ("b", 3.0), ("g", 3.0)]


def test_a_question_after_the_end_is_reported(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    result = omnitide("watch", clip, "--ask-at", "99=late?")
    assert result.code == 0
    assert "the stream ended at 0:03, before a question was asked (1:39)" in result.err


def test_in_a_pipe_nothing_is_asked_unasked_and_a_hint_is_given(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    result = omnitide("watch", clip)
    assert result.code == 0
    assert result.out == ""
    assert engine.opened[0].asked == []
    assert result.err.count("hint: ") == 1
    assert "--ask" in result.err


def test_no_ask_silences_everything(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    result = omnitide("watch", clip, "--ask", "a", "--no-ask")
    assert engine.opened[0].asked == []
    assert "hint" not in result.err


def test_quiet_leaves_only_answers(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    result = omnitide("-q", "watch", clip, "--ask", "a")
    assert result.err == ""
    assert result.out == "[0:03] a\nA red circle.\n"


def test_verbose_tells_every_unit(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    result = omnitide("-v", "watch", clip, "--ask", "a")
    assert result.err.count("unit 0  ") == 1
    assert "retention after unit 2" in result.err


def test_json_is_one_event_a_line_in_the_order_of_the_session(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    result = omnitide("watch", clip, "--json", "--ask", "What is there?")
    types = [event["type"] for event in events(result.out)]
    assert types[0] == "session"
    assert types[-1] == "summary"
    assert types[1:7] == ["unit", "retention"] * 3
    assert types[7:-1] == ["answer_delta"] * 3 + ["answer"]


def test_flags_reach_the_engine(omnitide: Omnitide, clip: Path, engine: Any, weights: Path) -> None:
    omnitide(
        *("watch", clip, "--policy", "fifo", "--layout", "native", "--positions", "sparse", "--recent-units", 3),
        *("--high-watermark", 900, "--low-watermark", 400, "--image-sinks", 1, "--audio-sinks", 2, "--text-budget", 9),
        *("--max-answer-tokens", 7, "--temperature", 0.5, "--seed", 3, "--ctx", 2048, "--threads", 1),
        *("--gpu-layers", 0, "--cache-type", "q8_0", "--flash-attn", "off", "--system", "Be brief."),
        *("--image-tokens", 64, "--unit-seconds", 0.5, "--no-audio"),
    )
    opened = engine.opened[0]
    options = opened.options
    assert (options.policy, options.layout, options.positions, options.recent_units) == ("fifo", "native", "sparse", 3)
    assert (options.high_watermark, options.low_watermark) == (900, 400)
    assert (options.image_sinks, options.audio_sinks, options.text_budget) == (1, 2, 9)
    assert (options.max_answer_tokens, options.temperature, options.seed) == (7, 0.5, 3)
    assert (options.ctx, options.threads, options.gpu_layers) == (2048, 1, 0)
    assert (options.cache_type, options.flash_attn) == ("q8_0", "off")
    manifest = find_manifest(str(weights / "tiny.gguf"), str(weights / "mmproj-tiny.gguf"))
    assert options.unit_tokens == manifest.unit_tokens(0.5, 64)
    assert 64 + 13 + 4 <= options.unit_tokens < 100
    assert opened.prompt.system_text == "Be brief."
    assert len(opened.units) == 6
    assert all(unit.audio is None for unit in opened.units)


def test_the_clip_can_be_cut_and_looped(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    omnitide("watch", clip, "--start", 1, "--duration", 1, "--loop", 4)
    assert [unit.start for unit in engine.opened[0].units] == [1, 2, 3, 4]


def test_realtime_waits_for_the_clock_and_reports_the_lag(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    result = omnitide("watch", clip, "--duration", 0.4, "--unit-seconds", 0.2, "--pace", "realtime", "--json")
    lags = [event["lag_ms"] for event in events(result.out) if event["type"] == "unit"]
    assert len(lags) == 2
    assert all(0 < lag < 200 for lag in lags)


def test_a_transcript_is_written_beside_the_answers(
    omnitide: Omnitide, clip: Path, engine: Any, tmp_path: Path
) -> None:
    path = tmp_path / "answers.vtt"
    result = omnitide("watch", clip, "--ask", "a", "--transcript", path)
    assert result.code == 0
    assert path.read_text() == "WEBVTT\n\n00:00:00.000 --> 00:00:11.000\na\nA red circle.\n"


def test_a_signal_while_a_unit_is_computed_ends_with_a_summary(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    engine.on_ingest = staticmethod(lambda self, index: os.kill(os.getpid(), signal.SIGINT) if index == 1 else None)
    result = omnitide("watch", clip, "--json", "--ask", "a")
    assert result.code == 130
    assert events(result.out)[-1]["type"] == "summary"
    assert events(result.out)[-1]["units"] == 2
    assert engine.opened[0].asked == []
    assert engine.opened[0].closed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_answering_finishes_the_word_in_hand(
    omnitide: Omnitide, clip: Path, engine: Any, number: signal.Signals
) -> None:
    before = signal.getsignal(number)
    engine.on_delta = staticmethod(lambda self, index: os.kill(os.getpid(), number) if index == 1 else None)
    result = omnitide("watch", clip, "--ask", "a", "--ask", "b")
    assert result.code == 130
    assert result.out == "[0:03] a\nA red\n"
    assert "3 units" in result.err
    assert signal.getsignal(number) is before


def test_a_failure_in_the_middle_is_one_line_after_a_summary(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    def fail(self: Any, index: int) -> None:
        if index == 1:
            raise RuntimeError("broken\nin two lines")

    engine.on_ingest = staticmethod(fail)
    result = omnitide("watch", clip, "--json")
    assert result.code == 1
    assert [event["type"] for event in events(result.out)][-2:] == ["error", "summary"]
    assert events(result.out)[-2]["code"] == "runtime-error"
    assert result.err.splitlines()[-1].startswith("omnitide: internal error: RuntimeError: broken in two lines.")
    assert "Traceback" not in result.err
    assert "Traceback" in omnitide("--debug", "watch", clip).err

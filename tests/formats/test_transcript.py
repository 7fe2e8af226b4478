"""Transcripts that players and programs can read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnitide_cli.errors import UsageError
from omnitide_cli.formats.transcript import open_transcript
from omnitide_cli.runtime.events import Answer, AnswerDelta, SessionStarted

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


def transcript(path: Path, *answers: tuple[float, str]) -> str:
    """The file after these answers."""
    sink = open_transcript(path)
    sink.emit(SESSION)
    for at, text in answers:
        sink.asking("Q?", at)
        sink.emit(AnswerDelta(at, text))
        sink.emit(Answer(at=at, unit=0, question="Q?", text=text, tokens=1, ttft_ms=1.0, tokens_per_s=1.0, stop="eos"))
    sink.close()
    return path.read_text("utf-8")


def test_jsonl_holds_the_answers_alone(tmp_path: Path) -> None:
    lines = transcript(tmp_path / "a.jsonl", (1, "grün"), (2, "b")).splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["grün", "b"]
    assert json.loads(lines[0])["type"] == "answer"


def test_srt_shows_an_answer_until_the_next_or_for_some_seconds(tmp_path: Path) -> None:
    assert transcript(tmp_path / "a.srt", (1, "a"), (3.5, "b"), (3661.25, "c")) == (
        "1\n00:00:01,000 --> 00:00:03,500\nQ?\na\n\n"
        "2\n00:00:03,500 --> 00:00:11,500\nQ?\nb\n\n"
        "3\n01:01:01,250 --> 01:01:09,250\nQ?\nc\n\n"
    )


def test_vtt_escapes_and_has_no_empty_line_within_a_cue(tmp_path: Path) -> None:
    assert transcript(tmp_path / "a.vtt", (1, "1 < 2 & \n\n3 --> 4")) == (
        "WEBVTT\n\n00:00:01.000 --> 00:00:09.000\nQ?\n1 &lt; 2 &amp; 3 --&gt; 4\n"
    )


def test_answers_at_one_moment_share_a_cue(tmp_path: Path) -> None:
    assert transcript(tmp_path / "a.vtt", (1, "a"), (1, "b")).count("-->") == 1


def test_a_session_without_answers_leaves_a_valid_file(tmp_path: Path) -> None:
    assert transcript(tmp_path / "a.vtt") == "WEBVTT\n"


def test_an_older_file_is_replaced_once_a_session_starts(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text("older")
    sink = open_transcript(path)
    sink.close()
    assert path.read_text() == "older"
    assert transcript(path) == ""


def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown file extension"):
        open_transcript(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []

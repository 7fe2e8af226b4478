"""Questions from a pipe, --manual, /help, and what is told of the shipped model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.session.run import what_the_demo_knows

Omnitide = Callable[..., Any]
EXAMPLE = Path(__file__).parents[2] / "examples" / "shapes-and-notes.mp4"


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Standard input is a pipe that holds a text and ends."""

    def pipe(text: str) -> None:
        end, other = os.pipe()
        os.write(other, text.encode())
        os.close(other)
        monkeypatch.setattr("sys.stdin", os.fdopen(end, encoding="utf-8"))

    return pipe


def asked(done: Any) -> list[tuple[float, str]]:
    events = [json.loads(line) for line in done.out.splitlines()]
    return [(event["at"], event["question"]) for event in events if event["type"] == "answer"]


@pytest.mark.usefixtures("engine")
def test_questions_come_on_standard_input(omnitide: Omnitide, clip: Path, piped: Callable[[str], None]) -> None:
    """A file is over sooner than anybody types: text is asked after its last second, in the order of the lines."""
    piped('What happened?\n{"at": "0:02", "ask": "timed"}\n{"ask": "last"}\n\nno newline at the end')
    done = omnitide("watch", clip, "--questions", "-", "--json")
    assert done.code == 0, done.err
    assert asked(done) == [(2.0, "timed"), (3.0, "What happened?"), (3.0, "last"), (3.0, "no newline at the end")]
    assert "nothing will be asked" not in done.err


@pytest.mark.usefixtures("engine")
def test_of_a_live_stream_they_are_asked_at_once(omnitide: Omnitide, clip: Path, piped: Callable[[str], None]) -> None:
    piped("now?\n")
    done = omnitide("watch", clip, "--questions", "-", "--json", "--pace", "realtime")
    assert asked(done) == [(1.0, "now?")]


@pytest.mark.usefixtures("engine")
def test_lines_of_a_pipe_cut_no_answer_short(omnitide: Omnitide, clip: Path, piped: Callable[[str], None]) -> None:
    piped("first?\nsecond?\n")
    done = omnitide("watch", clip, "--questions", "-", "--json", "--pace", "realtime")
    answers = [event for event in map(json.loads, done.out.splitlines()) if event["type"] == "answer"]
    assert [(answer["question"], answer["stop"]) for answer in answers] == [("first?", "eos"), ("second?", "eos")]


@pytest.mark.usefixtures("engine")
def test_a_line_that_is_no_question_is_told_and_the_others_are_asked(
    omnitide: Omnitide, clip: Path, piped: Callable[[str], None]
) -> None:
    piped('{"at": "soon", "ask": "x"}\n{"question": "x"}\nfine\n')
    done = omnitide("watch", clip, "--questions", "-", "--json")
    assert asked(done) == [(3.0, "fine")]
    assert "--questions -, line 1: " in done.err
    assert "--questions -, line 2: " in done.err
    piped('{"question": "x"}\n')
    done = omnitide("-q", "watch", clip, "--questions", "-")
    assert "--questions -, line 1: " in done.err


@pytest.mark.usefixtures("engine")
def test_a_pipe_that_nobody_reads_is_told(omnitide: Omnitide, clip: Path, piped: Callable[[str], None]) -> None:
    piped("What?\n")
    assert "--questions - asks what comes from it" in omnitide("watch", clip).err
    piped("What?\n")
    assert "standard input" not in omnitide("watch", clip, "--ask", "What?").err
    piped("")
    assert "standard input" not in omnitide("watch", clip).err


@pytest.mark.usefixtures("engine")
def test_a_pipe_beside_other_questions(omnitide: Omnitide, clip: Path, piped: Callable[[str], None]) -> None:
    piped("piped\n")
    done = omnitide("watch", clip, "--questions", "-", "--ask", "flag", "--json")
    assert asked(done) == [(3.0, "flag"), (3.0, "piped")]


def test_standard_input_is_one_thing_only(omnitide: Omnitide) -> None:
    done = omnitide("watch", "-", "--questions", "-")
    assert (done.code, done.out) == (2, "")
    assert "standard input is already the source" in done.err


@pytest.mark.usefixtures("engine")
def test_answers_is_a_second_name_of_transcript(omnitide: Omnitide, clip: Path) -> None:
    assert omnitide("watch", clip, "--ask", "What?", "--answers", "a.jsonl").code == 0
    assert omnitide("watch", clip, "--ask", "What?", "--transcript", "b.jsonl").code == 0
    assert Path("a.jsonl").read_text() == Path("b.jsonl").read_text() != ""
    Path("omnitide.toml").write_text('answers = "c.jsonl"\n')
    assert omnitide("watch", clip, "--ask", "What?").code == 0
    assert Path("c.jsonl").exists()


def test_whoever_gives_the_demo_a_video_of_their_own_is_told_what_it_knows(omnitide: Omnitide, tmp_path: Path) -> None:
    own = tmp_path / "party.mp4"
    shutil.copy(EXAMPLE, own)
    size = ["--duration", "0:01", "--ask", "What?"]
    said = f"hint: {what_the_demo_knows()}"
    assert "qwen2.5-omni-3b (3.6 GB" in said
    assert said in omnitide("watch", own, *size).err
    for quiet in (
        omnitide("watch", EXAMPLE, *size),
        omnitide("watch", own, *size, "-q"),
        omnitide("watch", own, *size, "--json"),
        omnitide("watch", own, *size, "--model", "omnitide-demo"),
    ):
        assert quiet.code == 0
        assert "hint" not in quiet.err

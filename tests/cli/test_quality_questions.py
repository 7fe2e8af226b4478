"""`omnitide bench quality --questions FILE.jsonl VIDEO...`: people's own clips."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.bench.quality.own_clips import Accepted, own_tasks, read_own_questions
from omnitide_cli.errors import UsageError
from omnitide_cli.media import FrameFit

Omnitide = Callable[..., Any]


def lines(path: Path, *questions: Any) -> Path:
    path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in questions) + "\n")
    return path


def test_clips_are_scored_and_every_answer_is_written(omnitide: Omnitide, clip: Path, tmp_path: Path) -> None:
    file = lines(
        tmp_path / "own.jsonl",
        {"at": "0:01", "ask": "What is there?", "accept": {"pattern": "."}},
        {"at": 2, "ask": "And now?", "accept": ["no such answer", "nor this one"], "kind": "hard"},
        {"ask": "At last?", "accept": "zebra"},
    )
    out = tmp_path / "rows"
    flags = ("--policy", "fifo", "--policy", "streaming-llm", "--sweep", "sinks=0,2", "--json", "--out", out)
    shown = omnitide("bench", "quality", "--questions", file, clip, *flags)
    assert shown.code == 0, shown.err
    rows = [json.loads(line) for line in shown.out.splitlines()]
    totals = [(row["policy"], row["setting"], row["n"]) for row in rows if row["kind"] == "all"]
    assert totals == [
        ("fifo", "", 3),
        ("streaming-llm", "", 3),
        ("streaming-llm", "sinks=2", 3),
        ("streaming-llm", "sinks=0", 3),
    ]
    assert {row["kind"] for row in rows} == {"clip", "hard", "all"}
    with (out / "quality-questions.csv").open(encoding="utf-8") as opened:
        answers = list(csv.DictReader(opened))
    assert len(answers) == 9
    first = answers[0]
    assert (first["policy"], first["stream"], first["at"], first["asked"]) == (
        "fifo",
        clip.name,
        "1.0",
        "What is there?",
    )
    assert (first["accepted"], first["right"]) == (".", str(bool(first["said"])))
    assert [row["right"] for row in answers[1:3]] == ["False", "False"]
    assert answers[1]["accepted"] == "no such answer | nor this one"


@pytest.mark.parametrize(
    ("accepted", "said", "right"),
    [
        (Accepted(("a cup",)), "It is A CUP.", True),
        (Accepted(("a cup",)), "a cupboard", False),
        (Accepted(("red", "blue")), "The ball is blue", True),
        (Accepted(("3",)), "13", False),
    ],
)
def test_what_counts_as_right(accepted: Accepted, said: str, right: bool) -> None:
    assert accepted.fits(said) == right


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("{", "line 2: not JSON"),
        ({"ask": "x"}, 'needs "ask" and "accept"'),
        ({"ask": "x", "accept": "y", "when": 3}, 'needs "ask" and "accept"'),
        ({"ask": " ", "accept": "y"}, '"ask" is empty'),
        ({"ask": "x", "accept": []}, '"accept" is a text'),
        ({"ask": "x", "accept": {"pattern": "("}}, "no regular expression"),
        ({"ask": "x", "accept": "y", "at": -1}, '"at" is not a time'),
        ({"ask": "x", "accept": "y", "at": "soon"}, '"at" is not a time'),
        ({"ask": "x", "accept": "y", "at": True}, '"at" is not a time'),
    ],
)
def test_wrong_lines_are_named(tmp_path: Path, line: Any, part: str) -> None:
    file = lines(tmp_path / "own.jsonl", {"ask": "x", "accept": "y"}, line)
    with pytest.raises(UsageError) as refused:
        read_own_questions(file)
    assert "line 2" in refused.value.message
    assert part in refused.value.message


def test_questions_belong_to_their_clip(tmp_path: Path, clip: Path) -> None:
    file = lines(
        tmp_path / "own.jsonl",
        {"at": "0:00:01", "ask": "here", "accept": "y", "video": clip.name},
        {"ask": "anywhere", "accept": "y"},
    )
    questions = read_own_questions(file)
    (task,) = own_tasks(questions, [str(clip)], FrameFit.square(112), None, hears=True)
    assert [question.text for due in task.due for question in due] == ["here", "anywhere"]
    with pytest.raises(UsageError, match="which is not among the clips"):
        own_tasks(questions, ["other.mp4"], FrameFit.square(112), None, hears=True)


def test_flags_that_do_not_go_together(omnitide: Omnitide, clip: Path, tmp_path: Path) -> None:
    file = lines(tmp_path / "own.jsonl", {"ask": "x", "accept": "y"})
    assert "go together" in omnitide("bench", "quality", clip).err
    assert "go together" in omnitide("bench", "quality", "--questions", file).err
    assert "can't be combined" in omnitide("bench", "quality", "--questions", file, clip, "--dataset", tmp_path).err
    missing = omnitide("bench", "quality", "--questions", tmp_path / "none.jsonl", clip)
    assert (missing.code, "can't be read" in missing.err) == (2, True)

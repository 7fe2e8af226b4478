"""`omnitide bench quality --dataset`: a miniature of StreamingBench, made here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.bench.quality.streamingbench import dataset_exams, find_video, read_questions, same_letter
from omnitide_cli.errors import SourceError
from omnitide_cli.media import FrameFit

Omnitide = Callable[..., Any]
FIT = FrameFit.square(112)


def question(stamp: str, answer: str, task: str = "Counting") -> dict[str, Any]:
    return {
        "task_type": task,
        "question": f"What at {stamp}?",
        "time_stamp": stamp,
        "answer": answer,
        "options": ["A. One.", "B. Two."],
    }


@pytest.fixture
def dataset(tmp_path: Path, clip: Path) -> Path:
    """Two videos of three seconds, of which one is missing; the present one comes up twice."""
    folder = tmp_path / "mini"
    (folder / "real").mkdir(parents=True)
    shutil.copy(clip, folder / "real" / "sample_1.mkv")
    entries = [
        {"video_path": "./videos/sample_1.mkv", "questions": [question("00:00:02", "B")]},
        {"video_path": "./videos/gone.mkv", "questions": [question("00:00:01", "A")]},
        {
            "video_path": "./videos/sample_1.mkv",
            "questions": [
                question("00:00:01", "A", "Object Perception"),
                question("00:01:10", "A"),
                {**question("00:00:01", "A"), "options": []},
            ],
        },
    ]
    (folder / "questions_real.json").write_text(json.dumps(entries))
    return folder


def test_questions_come_at_their_time(dataset: Path) -> None:
    (task,) = dataset_exams(dataset, FIT, limit=10, hears=True)
    assert task.name == "sample_1.mkv"
    assert [[(item.kind, item.answer) for item in due] for due in task.due] == [
        [("Object Perception", "A")],
        [("Counting", "B")],
        [("Counting", "A")],  # 1:10 is after the end
    ]
    assert [unit.end for unit in task.units] == [1.0, 2.0, 3.0]
    assert task.due[1][0].text.splitlines()[:3] == ["What at 00:00:02?", "A. One.", "B. Two."]


def test_the_rest_of_a_video_is_not_watched(dataset: Path) -> None:
    (task,) = dataset_exams(dataset, FIT, limit=1, hears=True)
    assert [len(due) for due in task.due] == [0, 1]


@pytest.mark.parametrize(
    ("said", "right"), [("B", True), ("(B)", True), ("B. Two.", True), ("B Two", True), ("Both", False), ("", False)]
)
def test_the_letter_counts(said: str, right: bool) -> None:
    assert same_letter(said, "B") is right
    assert not same_letter(said, "A")


def test_an_article_is_no_letter() -> None:
    assert not same_letter("A man is cooking.", "A")
    assert same_letter("A. A man is cooking.", "A")


def test_a_video_is_found_by_its_name(dataset: Path) -> None:
    assert find_video(dataset, "./videos/sample_1.mkv") == dataset / "real" / "sample_1.mkv"
    assert find_video(dataset, "./real/sample_1.mkv") == dataset / "real" / "sample_1.mkv"
    assert find_video(dataset, "./videos/gone.mkv") is None


def test_what_is_no_dataset_is_named(dataset: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SourceError, match="no multiple-choice question"):
        read_questions(empty)
    (dataset / "real" / "sample_1.mkv").unlink()
    with pytest.raises(SourceError, match="none of the videos asked about"):
        list(dataset_exams(dataset, FIT, limit=10, hears=True))
    (dataset / "other.json").write_text('{"questions": 1}')
    with pytest.raises(SourceError, match=r"other\.json is not a StreamingBench question file"):
        read_questions(dataset)


def test_the_command_asks_them(omnitide: Omnitide, dataset: Path) -> None:
    result = omnitide("bench", "quality", "--dataset", dataset, "--policy", "fifo", "--json", "--threads", 2)
    assert (result.code, result.err) == (0, "")
    rows = {row["kind"]: row for row in map(json.loads, result.out.splitlines())}
    assert {kind: row["n"] for kind, row in rows.items()} == {"Object Perception": 1, "Counting": 2, "all": 3}
    assert rows["all"]["senses"] == {}

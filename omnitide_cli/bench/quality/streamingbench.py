"""StreamingBench's question files and videos as tasks, where a user has them (arXiv 2411.03628).

A question file is a JSON list of {"video_path", "questions": [{"task_type", "question", "time_stamp": "00:03:26",
"options": ["A. …", …], "answer": "A"}]}; a video may come up more than once. Questions without options are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from omnitide_cli.bench.quality.task import Task, watched
from omnitide_cli.errors import SourceError
from omnitide_cli.media import FrameFit

ORDER = "Answer with the letter of the right option."
_LETTER = re.compile(r"\W*([A-Z])(?!\w)(?! [a-z])")  # "A map" is an article, "B Two" an option


@dataclass(frozen=True, slots=True)
class Choice:
    """A multiple-choice question at `at` seconds; the answer is a letter, the kind its task."""

    at: float
    kind: str
    text: str
    answer: str
    sense: str = ""
    age: int | None = None


def dataset_exams(folder: Path, fit: FrameFit, limit: int, *, hears: bool) -> Iterator[Task]:
    """A task for each video that is there, until `limit` questions are together; the rest of a video is not watched.

    Raises SourceError if the folder has no question file that can be read, or none of the videos.
    """
    found = 0
    for name, choices in read_questions(folder).items():
        video = find_video(folder, name)
        if video is None:
            continue
        chosen = sorted(choices[: limit - found], key=lambda choice: choice.at)
        found += len(chosen)
        units, due = watched(str(video), fit, chosen, hears=hears)
        yield Task(PurePosixPath(name).name, units, due, same_letter)
        if found == limit:
            return
    if not found:
        raise SourceError(f"{folder}: it has none of the videos asked about", "unpack them into that folder")


def read_questions(folder: Path) -> dict[str, list[Choice]]:
    """Multiple-choice questions of every question file below a folder, by the path that it has for their video."""
    videos: dict[str, list[Choice]] = {}
    for file in sorted(folder.rglob("*.json")):
        try:
            entries = json.loads(file.read_text(encoding="utf-8"))
            for entry in entries:
                choices = [_choice(question) for question in entry["questions"] if question.get("options")]
                known = videos.setdefault(entry["video_path"], [])
                known += [choice for choice in choices if choice not in known]  # some stand in two of its files
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SourceError(
                f"{file} is not a StreamingBench question file: {type(error).__name__}: {error}",
                "keep only question files and videos in the folder",
            ) from error
    videos = {name: choices for name, choices in videos.items() if choices}
    if not videos:
        raise SourceError(f"{folder} has no multiple-choice question in a .json file", "give StreamingBench's folder")
    return videos


def find_video(folder: Path, name: str) -> Path | None:
    """The file of a video: where its path says, or by its name anywhere below the folder."""
    path = folder / name
    return path if path.is_file() else next(iter(sorted(folder.rglob(PurePosixPath(name).name))), None)


def same_letter(said: str, true: str) -> bool:
    """Whether an answer begins with the right letter, as in "B", "(B)" or "B. A map."."""
    letter = _LETTER.match(said)
    return letter is not None and letter[1] == true


def _choice(question: dict[str, Any]) -> Choice:
    lines = [question["question"], *question["options"], ORDER]
    return Choice(_seconds(question["time_stamp"]), question["task_type"], "\n".join(lines), question["answer"].strip())


def _seconds(stamp: str) -> float:
    seconds = 0.0
    for part in stamp.split(":"):
        seconds = seconds * 60 + float(part)
    return seconds

"""A user's own clips and questions as tasks: `--questions FILE.jsonl VIDEO...`.

A line of the file is {"at": 12.5, "ask": "What is this?", "accept": "a cup"}. "at" may read "0:12" or "1:02:03", and
without it a question is asked after the end. "accept" is a text, a list of texts of which one is enough, or
{"pattern": "regular expression"}. "video" (a file's name) says which of several clips it is about, "kind" the group
that it is counted in.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnitide_cli.bench.quality.task import Task, watched
from omnitide_cli.errors import UsageError
from omnitide_cli.media import FrameFit

FIELDS = {"at", "ask", "accept", "video", "kind"}
EXPECTED = 'a line reads {"at": 12.5, "ask": "What is this?", "accept": "a cup"}'
KIND = "clip"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What counts as a right answer: one of `texts` in it, as whole words and whatever their case, or `pattern`."""

    texts: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None

    def fits(self, said: str) -> bool:
        """Whether an answer is right."""
        if self.pattern is not None:
            return self.pattern.search(said) is not None
        words = f" {_words(said)} "
        return any(f" {_words(text)} " in words for text in self.texts)

    def __str__(self) -> str:
        return self.pattern.pattern if self.pattern is not None else " | ".join(self.texts)


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A line of the file; `answer` is what it accepts, in words."""

    at: float
    text: str
    accepted: Accepted
    answer: str
    kind: str = KIND
    video: str | None = None
    sense: str = ""
    age: int | None = None


def read_own_questions(path: Path) -> list[OwnQuestion]:
    """The questions of a file. Raises UsageError naming the line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"--questions {path}: can't be read: {reason}", "give a JSONL file of questions") from error
    found = [
        _question(line, f"--questions {path}, line {number}") for number, line in enumerate(lines, 1) if line.strip()
    ]
    if not found:
        raise UsageError(f"--questions {path}: there is no question in it", EXPECTED)
    return found


def own_tasks(
    questions: Sequence[OwnQuestion], videos: Sequence[str], fit: FrameFit, limit: int | None, *, hears: bool
) -> Iterator[Task]:
    """A task for each video that a question is about, until `limit` questions are together (None: all).

    Raises UsageError for a question about a video that isn't given, SourceError for one that can't be read.
    """
    names = {Path(video).name for video in videos} | set(videos)
    for question in questions:
        if question.video is not None and question.video not in names:
            raise UsageError(f"a question is about {question.video}, which is not among the clips", "name that clip")
    return _tasks(questions, videos, fit, limit, hears=hears)


def _tasks(
    questions: Sequence[OwnQuestion], videos: Sequence[str], fit: FrameFit, limit: int | None, *, hears: bool
) -> Iterator[Task]:
    left = math.inf if limit is None else limit
    for video in videos:
        about = [each for each in questions if each.video in (None, video, Path(video).name)]
        chosen = sorted(about[: None if left == math.inf else int(left)], key=lambda each: each.at)
        if not chosen:
            continue
        left -= len(chosen)
        units, due = watched(video, fit, chosen, hears=hears)
        accepted = {each.answer: each.accepted for each in chosen}
        yield Task(Path(video).name, units, due, lambda said, true, accepted=accepted: accepted[true].fits(said))


def _question(line: str, where: str) -> OwnQuestion:
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON", EXPECTED) from error
    if not isinstance(fields, dict) or not {"ask", "accept"} <= fields.keys() <= FIELDS:
        raise UsageError(
            f'{where}: needs "ask" and "accept", may have "at", "video" and "kind", nothing else', EXPECTED
        )
    ask, video, kind = fields["ask"], fields.get("video"), fields.get("kind", KIND)
    if not isinstance(ask, str) or not ask.strip():
        raise UsageError(f'{where}: "ask" is empty or no text', EXPECTED)
    if not isinstance(video, str | None) or not isinstance(kind, str) or not kind:
        raise UsageError(f'{where}: "video" and "kind" are texts', EXPECTED)
    accepted = _accepted(fields["accept"], where)
    return OwnQuestion(_moment(fields.get("at"), where), ask, accepted, str(accepted), kind, video)


def _accepted(value: Any, where: str) -> Accepted:
    if isinstance(value, dict) and value.keys() == {"pattern"} and isinstance(value["pattern"], str):
        try:
            return Accepted(pattern=re.compile(value["pattern"]))
        except re.error as error:
            raise UsageError(f"{where}: the pattern is no regular expression: {error}", EXPECTED) from error
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and _words(text) for text in texts):
        raise UsageError(f'{where}: "accept" is a text, a list of texts, or {{"pattern": "..."}}', EXPECTED)
    return Accepted(tuple(texts))


def _moment(value: Any, where: str) -> float:
    """Seconds of 12.5, "12.5", "0:12" or "1:02:03"; without one, the end."""
    if value is None:
        return math.inf
    seconds = math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str) and re.fullmatch(r"(?:(?:\d+:)?\d{1,2}:)?\d+(?:\.\d+)?", value.strip()):
        seconds = 0.0
        for part in value.strip().split(":"):
            seconds = seconds * 60 + float(part)
    if not 0 <= seconds < math.inf:
        raise UsageError(f'{where}: "at" is not a time', f'seconds or "0:12"; {EXPECTED}')
    return seconds


def _words(text: str) -> str:
    """Lower-case words with a space between, without what is around them."""
    return " ".join(re.findall(r"\w+(?:['’.,]\w+)*", text.casefold()))

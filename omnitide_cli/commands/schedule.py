"""Which question is asked when: pure, on the media clock."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from omnitide_cli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Timed:
    """Asked after the first unit whose end ≥ `at`."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Repeated:
    """Asked whenever another `seconds` of media have passed, at most once a unit; `closing` asks about a rest, too."""

    seconds: float
    text: str
    closing: bool = False


class Schedule:
    """Hands out every question once it is due. Feed it the media clock; it never goes back."""

    def __init__(
        self, timed: Iterable[Timed] = (), repeated: Iterable[Repeated] = (), last: Iterable[str] = ()
    ) -> None:
        self._timed = sorted(timed, key=lambda question: question.at)
        self._repeated = list(repeated)
        self._last = list(last)
        self._asked_until = [0.0] * len(self._repeated)
        self._clock = 0.0

    def __bool__(self) -> bool:
        return bool(self._timed or self._repeated or self._last)

    def start_at(self, clock: float) -> None:
        """The stream begins here: repeated questions count from the next multiple on."""
        self._clock = clock
        self._asked_until = [clock] * len(self._repeated)

    def due(self, clock: float) -> list[str]:
        """Questions to ask after a unit that ends at `clock` seconds."""
        questions: list[str] = []
        while self._timed and self._timed[0].at <= clock:
            questions.append(self._timed.pop(0).text)
        for index, question in enumerate(self._repeated):
            # Floors are compared and not times added up: a tenth of a second has no exact float.
            if _periods(clock, question.seconds) > _periods(self._asked_until[index], question.seconds):
                self._asked_until[index] = clock
                questions.append(question.text)
        self._clock = clock
        return questions

    def final(self) -> list[str]:
        """Questions to ask after the last unit."""
        closing = [
            question.text
            for question, asked_until in zip(self._repeated, self._asked_until, strict=True)
            if question.closing and asked_until < self._clock
        ]
        return closing + self._last

    def unreached(self) -> list[Timed]:
        """Timed questions that the stream was too short for."""
        return list(self._timed)


def parse_timed(text: str, flag: str) -> Timed:
    """`SECONDS=TEXT`. Raises UsageError."""
    seconds, question = _split(text, flag)
    return Timed(seconds, question)


def parse_repeated(text: str, flag: str) -> Repeated:
    """`SECONDS=TEXT` with seconds above 0. Raises UsageError."""
    seconds, question = _split(text, flag)
    if seconds == 0:
        raise UsageError(f"{flag} '{text}': the interval is 0", "give the seconds between two questions")
    return Repeated(seconds, question)


def read_questions(path: Path) -> tuple[list[Timed], list[str]]:
    """Timed questions and those for the end, from a file with one `{"at": 12.5, "ask": "…"}` a line.

    Without "at" a question is asked after the last unit. Raises UsageError naming the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"--questions {path}: can't be read: {reason}", "give a JSONL file of questions") from error
    timed: list[Timed] = []
    last: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        at, text = _question(line, f"--questions {path}, line {number}")
        if at is None:
            last.append(text)
        else:
            timed.append(Timed(at, text))
    return timed, last


def _question(line: str, where: str) -> tuple[float | None, str]:
    expected = 'a line reads {"at": 12.5, "ask": "What is this?"}'
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON", expected) from error
    if not isinstance(fields, dict) or not fields.keys() <= {"at", "ask"}:
        raise UsageError(f'{where}: needs "ask" and may have "at", nothing else', expected)
    at, text = fields.get("at"), fields.get("ask")
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f'{where}: "ask" is missing or empty', expected)
    if at is not None and (isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < math.inf):
        raise UsageError(f'{where}: "at" is no time in seconds', expected)
    return at, text


def _split(text: str, flag: str) -> tuple[float, str]:
    expected = f'write {flag} "12.5=What is this?"'
    before, equals, question = text.partition("=")
    try:
        seconds = float(before)
    except ValueError:
        seconds = math.nan
    if not equals or not 0 <= seconds < math.inf:
        raise UsageError(f"{flag} '{text}': no time in seconds before a =", expected)
    if not question.strip():
        raise UsageError(f"{flag} '{text}': the question is empty", expected)
    return seconds, question.strip()


def _periods(clock: float, seconds: float) -> int:
    return math.floor(clock / seconds + 1e-9)

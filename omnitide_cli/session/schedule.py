"""Which question is asked when: pure, on the media clock."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from omnitide_cli.catalog import values
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.saved import SavedQuestions

DEFAULT_EVERY_S = 10.0


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
        self._asked: list[Timed] = []
        self._repeated = list(repeated)
        self._last = list(last)
        self._asked_until: list[float | None] = [None] * len(self._repeated)  # None: the stream has not begun
        self._asked_at: list[float] = [-math.inf] * len(self._repeated)  # on the computer's clock
        self.left_out = 0
        """Repeated questions that were not asked, since a stream that is late would have had them in a burst."""
        self._waiting: list[str] = []
        self._closed_at: float | None = None
        self._clock = 0.0

    @classmethod
    def of(cls, saved: SavedQuestions, clock: float) -> Schedule:
        """The questions of a session saved at `clock`, as far as they were not asked."""
        schedule = cls(
            [Timed(at, text) for at, text in saved.timed],
            [Repeated(seconds, text, closing) for seconds, text, closing, _ in saved.repeated],
            saved.last,
        )
        schedule.go_on(saved, clock)
        schedule._waiting = list(saved.waiting)
        schedule._closed_at = saved.closed_at
        return schedule

    def go_on(self, saved: SavedQuestions, clock: float) -> None:
        """Ask nothing again that a session saved at `clock` was asked at its time already."""
        self._clock = clock
        wanted = {question.text for question in (*self._timed, *self._repeated)}.union(self._last)
        self._waiting = [text for text in saved.waiting if text in wanted]
        self._asked = [Timed(at, text) for at, text in saved.asked]
        self._timed = [question for question in self._timed if question not in self._asked]
        until = {(seconds, text): asked_until for seconds, text, _, asked_until in saved.repeated}
        self._asked_until = [until.get((question.seconds, question.text)) for question in self._repeated]

    def __bool__(self) -> bool:
        return bool(self._timed or self._repeated or self._last or self._waiting)

    def start_at(self, clock: float) -> None:
        """The stream begins here: repeated questions count from the next multiple on."""
        self._clock = clock
        self._asked_until = [clock if until is None else until for until in self._asked_until]

    def due(self, clock: float, now: float = 0.0, *, is_late: bool = False) -> list[str]:
        """Questions to ask after a unit that ends at `clock` seconds. `now` is the computer's time.

        When a live stream is late, because the process was stopped or an answer took long, its seconds come in a burst:
        then a repeated question is not asked again before half of its interval has passed for the user, too.
        """
        questions: list[str] = []
        while self._timed and self._timed[0].at <= clock:
            self._asked.append(self._timed.pop(0))
            questions.append(self._asked[-1].text)
        for index, question in enumerate(self._repeated):
            # Floors are compared and not times added up: a tenth of a second has no exact float.
            if _periods(clock, question.seconds) > _periods(self._asked_until[index] or 0.0, question.seconds):
                self._asked_until[index] = clock
                if is_late and now - self._asked_at[index] < question.seconds / 2:
                    self.left_out += 1
                    continue
                self._asked_at[index] = now
                questions.append(question.text)
        self._clock = clock
        return questions

    def final(self) -> list[str]:
        """Questions to ask after the last unit; none when a saved session, which saw no more since, was asked them."""
        if self._closed_at is not None and self._closed_at >= self._clock:
            return []
        closing = [
            question.text
            for question, asked_until in zip(self._repeated, self._asked_until, strict=True)
            if question.closing and (asked_until or 0.0) < self._clock
        ]
        self._closed_at = self._clock
        return closing + self._last

    def add(self, question: Timed) -> None:
        """One more; one whose time has passed is asked after the next unit."""
        self._timed = sorted([*self._timed, question], key=lambda each: each.at)

    def put_back(self, questions: Iterable[str]) -> None:
        """These were due, but the session is over: one that resumes it asks them first."""
        self._waiting += questions

    def waiting(self) -> list[str]:
        """What was due when a saved session ended; told once."""
        questions, self._waiting = self._waiting, []
        return questions

    def saved(self) -> SavedQuestions:
        """All of it, for `of` and `go_on`."""
        return SavedQuestions(
            timed=tuple((question.at, question.text) for question in self._timed),
            asked=tuple((question.at, question.text) for question in self._asked),
            repeated=tuple(
                (question.seconds, question.text, question.closing, until or 0.0)
                for question, until in zip(self._repeated, self._asked_until, strict=True)
            ),
            last=tuple(self._last),
            waiting=tuple(self._waiting),
            closed_at=self._closed_at,
        )

    def unreached(self) -> list[Timed]:
        """Timed questions that the stream was too short for."""
        return list(self._timed)


def schedule_of(
    ask: list[str] | None,
    ask_at: list[str] | None,
    every: list[str] | None,
    questions: Path | None,
    *,
    silent: bool,
    default: str,
) -> Schedule:
    """From the flags of `watch` and `live`. `default` is asked every DEFAULT_EVERY_S. Raises UsageError."""
    if any(not text.strip() for text in ask or ()):
        raise UsageError("--ask '': the question is empty", "give a text, or leave out --ask")
    timed = [parse_timed(text, "--ask-at") for text in ask_at or ()]
    repeated = [parse_repeated(text, "--every") for text in every or ()]
    last = list(ask or ())
    if questions:
        timed_in_file, last_in_file = read_questions(questions)
        timed, last = timed + timed_in_file, last + last_in_file
    if default:
        repeated.append(Repeated(DEFAULT_EVERY_S, default, closing=True))
    return Schedule() if silent else Schedule(timed, repeated, last)


def parse_timed(text: str, flag: str) -> Timed:
    """`TIME=TEXT`. Raises UsageError."""
    seconds, question = _split(text, flag)
    return Timed(seconds, question)


def parse_repeated(text: str, flag: str) -> Repeated:
    """`TIME=TEXT` with a time above 0. Raises UsageError."""
    seconds, question = _split(text, flag)
    if seconds == 0:
        raise UsageError(f"{flag} '{text}': the interval is 0", "give the seconds between questions")
    return Repeated(seconds, question)


def read_questions(path: Path) -> tuple[list[Timed], list[str]]:
    """Timed questions and those for the end, from a file with one `{"at": "1:30", "ask": "…"}` a line.

    Without "at" a question is asked after the last unit. Raises UsageError naming the line.
    """
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")  # at no other character that some take for an end
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"--questions {path}: can't be read: {reason}", "give a JSONL file of questions") from error
    timed: list[Timed] = []
    last: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        at, text = parse_question(line, f"--questions {path}, line {number}")
        if at is None:
            last.append(text)
        else:
            timed.append(Timed(at, text))
    return timed, last


def parse_question(line: str, where: str) -> tuple[float | None, str]:
    expected = 'a line looks like {"at": 12.5, "ask": "What is this?"}'
    try:
        fields = json.loads(line)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON", expected) from error
    if not isinstance(fields, dict) or not fields.keys() <= {"at", "ask"}:
        raise UsageError(f'{where}: needs "ask" and may have "at", nothing else', expected)
    at, text = fields.get("at"), fields.get("ask")
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f'{where}: "ask" is missing or empty', expected)
    if at is None:
        return None, text
    try:
        return values.seconds()(at), text
    except ValueError as error:
        raise UsageError(f'{where}: "at" is {error}', expected) from error


def _split(text: str, flag: str) -> tuple[float, str]:
    expected = f'write {flag} "90=What is this?" or {flag} "1:30=What is this?"'
    before, equals, question = text.partition("=")
    try:
        seconds = values.seconds()(before if equals else "")
    except ValueError as error:
        raise UsageError(f"{flag} '{text}': before the = stands {error}", expected) from error
    if not question.strip():
        raise UsageError(f"{flag} '{text}': the question is empty", expected)
    return seconds, question.strip()


def _periods(clock: float, seconds: float) -> int:
    return math.floor(clock / seconds + 1e-9)

"""The answers and alerts of a session as a file: JSONL for programs, WebVTT and SRT for players.

An answer is in the file before it has been shown in full: nothing is kept back, whatever ends the process. A cue is
written with a provisional end; when the next begins, its end is corrected in place, by as many bytes.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from omnitide_cli.errors import UsageError
from omnitide_cli.formats import cues
from omnitide_cli.formats.alerts import alert_title
from omnitide_cli.formats.locked_file import open_locked, read_all, replace_locked
from omnitide_cli.formats.origins import origin
from omnitide_cli.formats.patient import PatientFile
from omnitide_cli.formats.sink import Sink
from omnitide_cli.paths import is_there
from omnitide_cli.runtime.events import Alert, Answer, AnswerDelta, Event, Notice, SessionStarted, Unwritten

FORMATS = (".jsonl", ".vtt", ".srt")
NOT_CUES = ("NOTE", "STYLE", "REGION")
PATIENCE_S = 0.2

Tell = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Existing:
    """What to do with a file that has something in it: refuse it, replace it, or go on behind it."""

    goes_on: bool = False
    replaces: bool = False


def open_transcripts(paths: Sequence[Path], existing: Existing, tell: Tell) -> list[TranscriptSink]:
    """Sinks that write the files, each in the format of its ending, once a session starts; `tell` gets warnings.

    Raises UsageError for a file that can't be written, is another session's, or has answers that would be lost.
    """
    sinks: list[TranscriptSink] = []
    known: set[Path] = set()
    try:
        for path in paths:
            if path.suffix.lower() not in FORMATS:
                raise UsageError(f"--transcript {path}: unknown file extension", f"use one of {', '.join(FORMATS)}")
            if path.resolve() not in known:
                known.add(path.resolve())
                sinks.append(TranscriptSink(path, existing, tell))
    except BaseException:
        for sink in sinks:
            sink.close()
        raise
    return sinks


class TranscriptSink(Sink):
    """Writes each answer at once. Made by `open_transcripts`."""

    def __init__(self, path: Path, existing: Existing, tell: Tell) -> None:
        self._path = path
        self._suffix = path.suffix.lower()
        self._existing = existing
        self._tell = tell
        self._lock = threading.RLock()  # who leaves at once does so from another thread
        self._is_new = not is_there(path)
        self._descriptor, self._is_regular = open_locked(path)
        self._file = PatientFile(self._descriptor, seekable=self._is_regular)
        self._started = self._closed = self._has_told = False
        self._before = b""
        self._spoken: tuple[str, float, str] | None = None
        try:
            if self._is_regular:
                self._before = read_all(self._descriptor)
                self._check(existing)
        except BaseException:
            self.close()
            raise
        self._cue: _Written | None = None
        self._previous: _Written | None = None
        self._number = 0
        self._ahead: list[tuple[float, str]] = []
        self._ends: list[int] = []
        """Where each answer ends in the file."""
        self._lost = 0
        self._over_at: float | None = None
        self._sorted = True

    # --- events

    def asking(self, question: str, at: float) -> None:
        self._spoken = (question, at, "")

    def emit(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, SessionStarted):
                self._start(event.resumed_at)
            elif isinstance(event, AnswerDelta) and self._spoken:
                self._spoken = (*self._spoken[:2], self._spoken[2] + event.text)
            elif isinstance(event, Answer):
                self._spoken = None
                self._answer(event)
            elif isinstance(event, Alert):
                self._alert(event)
            else:
                self._attempt(self._file.retry)
        self._tell_trouble()

    def media_over(self, at: float) -> None:
        """What is shown from here on would never be seen: it begins earlier."""
        self._over_at = at
        if self._cue and self._cue.at >= at and self._suffix != ".jsonl":
            self._move(self._cue)

    def close(self) -> None:
        if self._closed:
            return
        self.rescue()  # a reader who left, or a model that failed, has ended an answer in the middle
        if self._started and not self._sorted and not self.missing:
            with suppress(OSError):
                self._sort()
        if not self._started and self._is_new and self._is_regular:
            with suppress(OSError):
                self._path.unlink()
        self._closed = True
        os.close(self._descriptor)

    def rescue(self) -> None:
        """The session is left in the middle: what was being said is written, too. From any thread."""
        if not self._lock.acquire(timeout=PATIENCE_S):
            return
        spoken, self._spoken = self._spoken, None
        if self._started and spoken and spoken[2].strip():
            question, at, text = spoken
            self._answer(Answer(at, -1, question, text.strip(), 0, 0.0, 0.0, "interrupted"))
        self._attempt(self._file.retry)

    @property
    def missing(self) -> int:
        """Answers that are not, or not wholly, in the file."""
        return self._lost + sum(end > self._file.written for end in self._ends)

    @property
    def unwritten(self) -> Unwritten | None:
        """What the file lacks at the end of the session."""
        self._attempt(self._file.retry)
        return Unwritten(str(self._path), self.missing, self._file.reason) if self.missing else None

    # --- the file

    def _check(self, existing: Existing) -> None:
        if not self._before or existing.replaces:
            return
        if not existing.goes_on:
            raise UsageError(
                f"--transcript {self._path}: the file already exists",
                "--overwrite replaces it, --resume continues its session; or choose another file",
            )
        text = self._before.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
        first = text.lstrip("\n").partition("\n")[0]
        fits = {
            ".vtt": lambda: first.startswith("WEBVTT"),
            ".srt": lambda: first.strip().isdigit(),
            ".jsonl": lambda: first.startswith("{"),
        }[self._suffix]()
        if not fits:
            raise UsageError(
                f"--transcript {self._path}: its content is not {self._suffix[1:].upper()}, so it can't be continued",
                "--overwrite replaces it; or choose another file",
            )

    def _start(self, resumed_at: float | None) -> None:
        """Not before: a mistyped source must not cost an older transcript."""
        self._started = True
        if self._before and self._existing.goes_on and not self._existing.replaces:
            self._take_up(resumed_at or 0.0)
        else:
            if self._is_regular:
                self._attempt(lambda: os.ftruncate(self._descriptor, 0))
            self._file = PatientFile(self._descriptor, seekable=self._is_regular)
            self._append("WEBVTT\n" if self._suffix == ".vtt" else "")
        self._before = b""

    def _take_up(self, resumed_at: float) -> None:
        """Go on behind what is there; half a line that a kill or a full disk has left is completed or removed."""
        text = self._before.decode("utf-8", "surrogateescape")
        if self._suffix == ".jsonl":
            self._take_up_lines(text, resumed_at)
            return
        blocks = cues.parse(text)
        if "\r" in text or not cues.in_order(blocks):
            tidy = cues.ordered(cues.parse(re.sub("\r\n?", "\n", text)), self._suffix)
            with suppress(OSError):
                self._replace(tidy)
                text = tidy
            blocks = cues.parse(text)
        if len(blocks) > (self._suffix == ".vtt") and _is_torn(blocks[-1]):
            text = text[: blocks[-1].offset].rstrip("\n") + "\n"
            blocks.pop()
        elif not text.endswith("\n"):
            text += "\n"
        if blocks and blocks[-1].start is not None:
            text = text.rstrip("\n") + "\n"
        self._set_end(text)
        shown = [block for block in blocks if block.start is not None]
        self._number = len(shown)
        self._ahead = [(cue.start or 0.0, cue.words) for cue in shown if (cue.start or 0.0) >= resumed_at - 0.001]
        if shown and shown[-1] is blocks[-1] and "\r" not in text:
            last = shown[-1]
            end_at = last.offset + last.end_at
            if not text.startswith(cues.stamp(last.end, self._suffix), end_at):
                return  # another program's: its times are not as wide as ours, and stay
            place = len(text[:end_at].encode("utf-8", "surrogateescape"))
            self._cue = _Written(last.start or 0.0, last.start or 0.0, last.end, -1, place)

    def _take_up_lines(self, text: str, resumed_at: float) -> None:
        whole, newline, rest = text.rpartition("\n")
        if rest and _object(rest) is not None:
            whole, newline, rest = text, "\n", ""
        self._set_end(whole + newline)
        for line in whole.split("\n"):
            known = _object(line) or {}
            at = known.get("at")
            if isinstance(at, int | float) and at >= resumed_at - 0.001:
                self._ahead.append((at, f"{known.get('question')}\n{known.get('text')}"))

    def _set_end(self, text: str) -> None:
        """The file holds `text`, which is what was read but for its end."""
        data = text.encode("utf-8", "surrogateescape")
        same = next((at for at, (a, b) in enumerate(zip(data, self._before, strict=False)) if a != b), None)
        same = min(len(data), len(self._before)) if same is None else same
        if same < len(self._before):
            self._attempt(lambda: os.ftruncate(self._descriptor, same))
        self._file = PatientFile(self._descriptor, same)
        self._file.append(data[same:])

    def _sort(self) -> None:
        text = read_all(self._descriptor).decode("utf-8", "surrogateescape")
        self._replace(cues.ordered(cues.parse(text), self._suffix))

    def _replace(self, text: str) -> None:
        """Another file in the place of this one, at once, so that a kill leaves one of them whole."""
        data = text.encode("utf-8", "surrogateescape")
        self._descriptor, self._before = replace_locked(self._path, self._descriptor, data), data

    # --- answers

    def _answer(self, answer: Answer) -> None:
        if self._suffix == ".jsonl":
            self._line(answer)
            return
        where = origin(answer)
        said = f"{answer.text} ({where})" if where else answer.text
        self._show(answer, cues.words(answer.question, said, self._suffix))

    def _alert(self, alert: Alert) -> None:
        if self._suffix == ".jsonl":
            self._line(alert)
        else:
            self._show(alert, cues.words(f"Alert: {alert_title(alert)}", alert.text, self._suffix))

    def _line(self, event: Answer | Alert) -> None:
        if not self._is_known(event.at, f"{event.question}\n{event.text}"):
            self._append(json.dumps(event.to_json(), ensure_ascii=False) + "\n", is_answer=True)

    def _show(self, answer: Answer | Alert, words: str) -> None:
        """A cue of these words."""
        if self._is_known(answer.at, words):
            return
        last = self._cue
        if last and last.at == answer.at:
            # Two answers at one moment are shown together: cues that overlap hide each other in some players.
            self._append(f"{words}\n", is_answer=True)
            return
        if last and last.start <= answer.at:
            self._set_cue_end(last, cues.end_of(last.start, answer.at))
        self._sorted &= not (last and last.start > answer.at)
        self._number += 1
        start, end = answer.at, answer.at + cues.LONGEST_S
        gap = "\n" if self._file.end else ""
        text = cues.block(self._suffix, self._number, start, end, words, answer.wall or "")
        before = len(f"{gap}{text[: text.index(' --> ')]}".encode("utf-8", "replace"))
        width = len(cues.stamp(start, self._suffix))
        begin = self._file.end + before - width
        self._append(f"{gap}{text}\n", is_answer=True)
        self._previous, self._cue = last, _Written(answer.at, start, end, begin, begin + width + len(" --> "))
        if self._over_at is not None and answer.at >= self._over_at:
            self._move(self._cue)

    def _is_known(self, at: float, words: str) -> bool:
        """Whether a session that was killed has written the same answer after the checkpoint this one goes on from."""
        for index, (known_at, text) in enumerate(self._ahead):
            if abs(known_at - at) < 0.001 and words in text:
                self._ahead[index] = (known_at, text.replace(words, "", 1))  # a cue may hold another answer, too
                return True
        return False

    def _move(self, cue: _Written) -> None:
        """Let the newest cue begin before the end of the media."""
        previous = self._previous
        start = cues.start_before(cue.at, previous.start if previous else None)
        if cue.start_place < 0 or start >= cue.start:
            return
        self._file.patch(cue.start_place, cues.stamp(start, self._suffix).encode())
        cue.start = start
        if previous and previous.end > start:
            self._set_cue_end(previous, start)

    def _set_cue_end(self, cue: _Written, end: float) -> None:
        old, new = (cues.stamp(moment, self._suffix) for moment in (cue.end, end))
        if old != new and len(old) == len(new) and self._is_regular:
            self._file.patch(cue.end_place, new.encode())
            cue.end = end

    def _append(self, text: str, *, is_answer: bool = False) -> None:
        data = text.encode("utf-8", "replace")
        kept = self._attempt(lambda: self._file.append(data))
        if is_answer and kept is False:
            self._lost += 1
        elif is_answer:
            self._ends.append(self._file.end)
            if len(self._ends) > 64:
                self._ends = [end for end in self._ends if end > self._file.written]

    def _attempt(self, write: Callable[[], object]) -> object:
        """Whatever goes wrong with the file must not end the session."""
        try:
            return write()
        except OSError as error:
            self._file.reason = error.strerror or str(error)
            return None

    def _tell_trouble(self) -> None:
        if self._file.reason and not self._has_told:
            self._has_told = True
            message = f"{self._path} can't be written: {self._file.reason}; the session goes on without it"
            self._tell(Notice("transcript-waits", message, "free some disk space; OmniTide keeps trying"))


@dataclass(slots=True)
class _Written:
    """A cue in the file: when its answer was given, its times, and where in the file they stand (-1: of no matter)."""

    at: float
    start: float
    end: float
    start_place: int
    end_place: int


def _is_torn(last: cues.Cue) -> bool:
    """Whether the end of a file is a cue that could not be written as far as its text."""
    return not last.words.strip() if last.start is not None else not last.text.startswith(NOT_CUES)


def _object(line: str) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

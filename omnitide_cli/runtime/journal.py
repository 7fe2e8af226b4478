"""What a session leaves for people: its answers, and a small picture of what was seen at which second.

Kept beside the history, in a section of the session file (docs/session-file.md). It is bounded: over MOST_BYTES of
pictures, every second one of the older half goes, but for those that an answer was drawn from.
"""

from __future__ import annotations

import json
import math
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from omnitide_cli.errors import SessionFileError
from omnitide_cli.runtime.events import Alert, Answer, Event, UnitIngested
from omnitide_cli.runtime.saved import LONGEST_S, read_plain
from omnitide_cli.runtime.thumbnail import thumbnail

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_BYTES = 32 << 20  # of pictures: two hours of one a second, more of what changes little
MOST_ANSWERS = 20_000  # a day of one every five seconds
NEAR_S = 5.0
"""A moment whose own picture is gone is shown by one that is at most so far away."""
HEAD = struct.Struct("<I")
JPEG = b"\xff\xd8"


class Seen(Protocol):
    """What is kept of a unit."""

    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...
    @property
    def frame(self) -> NDArray[np.uint8] | None: ...


@dataclass(frozen=True, slots=True)
class Said:
    """A question and its answer. `recalled`: (start, end, score) of what came back for it."""

    at: float
    question: str
    text: str
    wall: str | None = None
    recalled: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """What was seen from `start` to `end`, media seconds, as a JPEG file."""

    start: float
    end: float
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class _Contents:
    """The JSON in front of the pictures; `pictures`: (start, end, bytes)."""

    answers: tuple[Said, ...]
    pictures: tuple[tuple[float, float, int], ...]


class Journal:
    """The answers and pictures of one session, by time."""

    def __init__(self, answers: Sequence[Said] = (), pictures: Sequence[Picture] = ()) -> None:
        self.answers = list(answers)
        self.pictures = list(pictures)
        self._bytes = sum(len(each.jpeg) for each in self.pictures)
        self._pending: Seen | None = None

    # --- while a session runs

    def saw(self, unit: Seen) -> None:
        """A unit goes to the model; its picture is kept once its event says that it is in the history."""
        self._pending = unit

    def note(self, event: Event) -> None:
        """Keep what an event leaves."""
        if isinstance(event, UnitIngested):
            unit, self._pending = self._pending, None
            if unit is not None and unit.frame is not None:
                self._keep(Picture(round(unit.start, 6), round(unit.end, 6), thumbnail(unit.frame)))
        elif isinstance(event, Answer) and event.text:
            moments = tuple((each.start, each.end, each.score) for each in event.recalled)
            self._say(Said(event.at, event.question, event.text, event.wall, moments))
        elif isinstance(event, Alert):
            self._say(Said(event.at, f"Alert: {event.rule}", event.text or event.question, event.wall))

    def _say(self, said: Said) -> None:
        self.answers.append(said)
        del self.answers[:-MOST_ANSWERS]

    def _keep(self, picture: Picture) -> None:
        last = self.pictures[-1] if self.pictures else None
        if last is not None and last.jpeg == picture.jpeg and last.end == picture.start:  # nothing has changed
            self.pictures[-1] = Picture(last.start, picture.end, last.jpeg)
            return
        self.pictures.append(picture)
        self._bytes += len(picture.jpeg)
        while self._bytes > MOST_BYTES and len(self.pictures) > 1:
            self._thin()

    def _thin(self) -> None:
        evidence = sorted((start, end) for said in self.answers for start, end, _ in said.recalled)
        half = max(2, len(self.pictures) // 2)
        older, newer = self.pictures[:half], self.pictures[half:]
        kept = [each for rank, each in enumerate(older) if rank % 2 == 0 or _is_in(each, evidence)]
        self.pictures = (kept if len(kept) < len(older) else older[1:]) + newer
        self._bytes = sum(len(each.jpeg) for each in self.pictures)

    # --- afterwards

    def pictures_of(self, start: float, end: float) -> list[Picture]:
        """The pictures of a stretch of time, media seconds; where they are gone, the next one close by, if any is."""
        found = [each for each in self.pictures if each.start < max(end, start + 1e-6) and each.end > start]
        if found:
            return found
        middle = (start + end) / 2
        closest = min(self.pictures, key=lambda each: _distance(each, middle), default=None)
        return [closest] if closest is not None and _distance(closest, middle) <= NEAR_S else []

    def to_bytes(self) -> bytes:
        """What `read` reads."""
        contents = _Contents(
            tuple(self.answers), tuple((each.start, each.end, len(each.jpeg)) for each in self.pictures)
        )
        text = json.dumps(asdict(contents), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        return b"".join([HEAD.pack(len(text)), text, *(each.jpeg for each in self.pictures)])

    @classmethod
    def read(cls, data: bytes) -> Journal:
        """Of bytes that may come from anyone; none are an empty one. Raises SessionFileError, without a file's name."""
        if not data:
            return cls()
        if len(data) < HEAD.size:
            raise SessionFileError("its journal ends too early")
        at = HEAD.size + HEAD.unpack_from(data)[0]
        try:
            contents: _Contents = read_plain(_Contents, json.loads(data[HEAD.size : at]))
        except (ValueError, RecursionError) as error:
            raise SessionFileError("its journal is not JSON") from error
        if any(not _is_time(each.at) for each in contents.answers):
            raise SessionFileError("a time in its journal is damaged")
        return cls(contents.answers, list(_read_pictures(contents.pictures, data, at)))


def _read_pictures(known: Sequence[tuple[float, float, int]], data: bytes, at: int) -> Iterator[Picture]:
    for start, end, size in known:
        jpeg = data[at : at + size] if 0 < size <= len(data) - at else b""
        if not jpeg.startswith(JPEG) or not (_is_time(start) and start <= end <= LONGEST_S):
            raise SessionFileError("a picture in its journal is damaged")
        at += size
        yield Picture(start, end, jpeg)
    if at != len(data):
        raise SessionFileError("its journal is of another size than it says")


def _is_time(value: Any) -> bool:
    return 0 <= value <= LONGEST_S


def _distance(picture: Picture, at: float) -> float:
    return max(picture.start - at, at - picture.end, 0.0)


def _is_in(picture: Picture, stretches: list[tuple[float, float]]) -> bool:
    """Whether a picture is of one of these stretches, which are sorted."""
    before = bisect_left(stretches, (picture.end, -math.inf))
    return any(end > picture.start for _, end in stretches[max(0, before - 8) : before])

"""Pictures as they arrive: at most one a unit waits for the thread that cuts units."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.media.fit import FrameFit

MOST_WAITING = 60
"""Units whose pictures wait for a model that is behind; older ones are dropped and counted."""

STAYS_S = 2.0
"""A slow camera's picture stays on screen for so long when no newer one comes."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What a camera saw at second `at` of the computer's clock, on the model's canvas."""

    at: float
    canvas: NDArray[np.uint8]


class PictureQueue:
    """One thread puts frames, another takes the picture of a unit: the first from its middle on, else its first one.

    A camera asks before it converts a frame: of thirty a second, two are looked at.
    """

    def __init__(self, fit: FrameFit, unit_seconds: float) -> None:
        self.fit = fit
        """How pictures are put on the canvas."""
        self._unit_seconds = unit_seconds
        self._lock = threading.Lock()
        self._origin: float | None = None
        self._waiting: dict[int, Picture] = {}
        self._shown: Picture | None = None
        self.evicted = 0
        """Pictures that had to make room before anyone took them."""

    def start(self, origin: float) -> None:
        """Unit 0 begins at second `origin` of the clock."""
        self._origin = origin

    def wants(self, at: float) -> bool:
        """Whether a frame of second `at` would be the picture of its unit."""
        if self._origin is None or at < self._origin:
            return False
        index = self._index(at)
        found = self._waiting.get(index)
        middle = self._origin + (index + 0.5) * self._unit_seconds
        return found is None or found.at < middle <= at

    def put(self, at: float, canvas: NDArray[np.uint8]) -> None:
        """Hand over a picture [H, W, 3] RGB, made with `fit`."""
        picture = Picture(at, canvas)
        with self._lock:
            self._waiting[self._index(at)] = picture
            if len(self._waiting) > MOST_WAITING:
                del self._waiting[min(self._waiting)]
                self.evicted += 1

    def take(self, index: int) -> Picture | None:
        """The picture of a unit, for good; that of a slow camera for up to STAYS_S longer."""
        assert self._origin is not None
        start = self._origin + index * self._unit_seconds
        with self._lock:
            picture = self._waiting.pop(index, None)
            for older in [i for i in self._waiting if i < index]:
                del self._waiting[older]
        if picture is not None:
            self._shown = picture
        return self._shown if self._shown is not None and self._shown.at >= start - STAYS_S else None

    def _index(self, at: float) -> int:
        return int((at - (self._origin or 0.0)) // self._unit_seconds)


class Thinning:
    """Which units go without a picture because the model is behind: the more wait, the fewer pictures.

    With a backlog of n units every n-th picture stays, so that the model catches up and still sees something.
    """

    def __init__(self) -> None:
        self._since = 0

    def keeps(self, waiting: int) -> bool:
        """Whether the next unit keeps its picture while `waiting` more units are complete already."""
        self._since += 1
        if self._since < waiting:
            return False
        self._since = 0
        return True

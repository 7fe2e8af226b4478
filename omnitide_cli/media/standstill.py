"""Notices that the whole process stood still: stopped by a signal, or by a machine that had no time for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

BEAT_S = 0.25
SHORTEST_S = 2.0
"""A thread that does nothing but count is never late by so much while the process runs."""


@dataclass(frozen=True, slots=True)
class Standstill:
    """From when to when, in seconds of the clock."""

    begin: float
    end: float


class Pulse(threading.Thread):
    """Beats, and tells of beats that did not come.

    Who is about to act on the time calls `beat` first: after a stop, any thread may be the first to run.
    """

    def __init__(self, stood_still: Callable[[Standstill], None], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(name="pulse", daemon=True)
        self._stood_still = stood_still
        self._clock = clock
        self._lock = threading.Lock()
        self._last = clock()
        self._closing = threading.Event()

    def beat(self) -> None:
        """Alive now; from any thread."""
        with self._lock:
            now = self._clock()
            last, self._last = self._last, max(now, self._last)
            if now - last > SHORTEST_S:
                self._stood_still(Standstill(last, now))

    def run(self) -> None:
        while not self._closing.wait(BEAT_S):
            self.beat()

    def close(self) -> None:
        """Beat no more."""
        self._closing.set()

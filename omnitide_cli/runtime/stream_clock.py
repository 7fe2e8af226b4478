"""The clock of a live stream: how late the model is, what time of day it was, and which upkeep cost nobody time."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Protocol


class TimedUnit(Protocol):
    """What of a media unit concerns the clock."""

    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...
    @property
    def complete_at(self) -> float | None: ...


def iso_time(unix_s: float) -> str:
    """A time of day as events carry it: ISO 8601 to the millisecond, with the offset from UTC that holds here."""
    return datetime.fromtimestamp(unix_s).astimezone().isoformat(timespec="milliseconds")


def iso_now() -> str:
    """The time of day, as `iso_time` writes it."""
    return iso_time(time.time())


class StreamClock:
    """Follows one stream, unit by unit. All of it is empty as long as units don't say when they were complete."""

    def __init__(self) -> None:
        self.idle_s = 0.0
        """Seconds of upkeep that ran while the next unit was still going on."""
        self._due: float | None = None
        self._next_due: float | None = None
        self._zero: float | None = None  # Unix time of media second 0, as the newest unit tells

    def take(self, unit: TimedUnit) -> None:
        """`unit` is the newest from now on."""
        self._due = unit.complete_at
        if self._due is None:
            self._next_due = None
            return
        self._next_due = self._due + unit.end - unit.start
        self._zero = time.time() - (time.monotonic() - self._due) - unit.end

    def lag_ms(self) -> float:
        """Milliseconds since the newest unit was complete; 0 for what isn't live."""
        return 0.0 if self._due is None else max(0.0, time.monotonic() - self._due) * 1000

    def wall(self, media_s: float) -> str | None:
        """The time of day at a media second; None for what isn't live."""
        return None if self._zero is None else iso_time(self._zero + media_s)

    def upkeep(self, began: float, ended: float) -> None:
        """Upkeep ran between two moments of time.monotonic()."""
        if self._next_due is not None:
            self.idle_s += max(0.0, min(ended, self._next_due) - began)

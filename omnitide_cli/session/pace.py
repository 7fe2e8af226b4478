"""When the seconds of a file are over that is played as if they came live."""

from __future__ import annotations

import time

from omnitide_cli.media.standstill import Pulse, Standstill


class Pace:
    """A clock that begins with the first unit, and stands still while the process does: stopped by Ctrl-Z, a file goes
    on where it was, and nothing of it comes in a burst."""

    def __init__(self, start: float) -> None:
        """`start`: media seconds of the first unit."""
        self._origin = time.monotonic() - start
        self._pulse = Pulse(self._stood_still)
        self._pulse.start()

    def due(self, end: float) -> float:
        """When media second `end` is over, on time.monotonic()'s clock."""
        self._pulse.beat()
        return self._origin + end

    def close(self) -> None:
        """The clock is looked at no more."""
        self._pulse.close()

    def _stood_still(self, gap: Standstill) -> None:
        self._origin += gap.end - gap.begin

"""How far behind a live stream a reader is that takes every second of it."""

from __future__ import annotations

import time
from collections.abc import Callable

BEHIND_S = 10.0


class Behind:
    """Compares when units were read with when they were. The freshest that was ever read tells the stream's clock.

    A stream is live if it has no end that is known; a recording that a server sends as fast as it is taken is never
    behind, because it gets fresher with each unit.
    """

    def __init__(
        self, tell: Callable[[str, str, str], None], hint: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._hint = hint
        self._clock = clock
        self._origin: float | None = None
        self._told = False

    def complete_at(self, end: float) -> float:
        """When the unit that ends at media second `end`, and has just been read, was over: second of the clock."""
        now = self._clock()
        origin = now - end
        self._origin = origin if self._origin is None else min(self._origin, origin)
        behind = origin - self._origin
        if behind > BEHIND_S and not self._told:
            self._told = True
            message = (
                f"the model is slower than the stream: it is {behind:.0f} s behind, and every second is still taken"
            )
            self._tell("behind-stream", message, self._hint)
        return self._origin + end

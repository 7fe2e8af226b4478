"""The rest of a second, in which a live session does its upkeep."""

from __future__ import annotations


class IdleTime:
    """How much of the upkeep ran while the next second was still going on: time that costs nobody anything."""

    def __init__(self) -> None:
        self.next_due: float | None = None
        """When the next unit will be complete; None while nothing is live."""
        self.used_s = 0.0

    def spent(self, began: float, ended: float) -> None:
        """Upkeep ran between two moments of time.monotonic()."""
        if self.next_due is not None:
            self.used_s += max(0.0, min(ended, self.next_due) - began)

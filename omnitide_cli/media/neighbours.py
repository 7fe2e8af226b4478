"""How busy the machine is with other things, so that who falls behind is told the remedy that helps."""

from __future__ import annotations

import os
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
BUSY = 0.25
"""Processors; less than that others take on any desktop."""
LEAST_S = 0.5
EVERY_S, KEPT = 5.0, 7
IDLE_FIELDS = (3, 4)  # of /proc/stat: idle, iowait
GUEST_FIELDS = 8  # what follows is counted in user and nice already


@dataclass(frozen=True, slots=True)
class _Moment:
    at: float
    all_s: float
    own_s: float


class Neighbours:
    """Knows the last half minute, as long as `look` is called now and then."""

    def __init__(self) -> None:
        self._moments: deque[_Moment | None] = deque([_now()], maxlen=KEPT)
        self._next = time.monotonic() + EVERY_S

    def look(self) -> None:
        """Cheap enough for every unit."""
        if time.monotonic() >= self._next:
            self._moments.append(_now())
            self._next = time.monotonic() + EVERY_S

    def cores(self) -> float | None:
        """Processors that other programs kept busy on average; None where the system doesn't say, or too early."""
        before, now = self._moments[0], _now()
        if before is None or now is None or now.at - before.at < LEAST_S:
            return None
        others = (now.all_s - before.all_s) - (now.own_s - before.own_s)
        return max(0.0, others) / (now.at - before.at)

    def remedy(self) -> str:
        """What keeps up with a live source: room on the machine if others take it, else less work."""
        taken, total = self.cores(), os.cpu_count() or 1
        load = os.getloadavg()[0]
        if taken is None and load > total:
            return f"The machine is busy (load {load:.1f}, {_cores(total)}): close other programs, or try --threads 1."
        if taken is not None and taken > BUSY:
            fewer = max(1, int(total - taken))
            threads = f", or try --threads {fewer}" if total > 1 else ""
            return f"Other programs take {taken:.1f} of {_cores(total)} (load {load:.1f}): close some of them{threads}."
        return "Use a smaller model, a lower --image-tokens, or shorter answers."


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _now() -> _Moment | None:
    try:
        words = STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
        ticks = [int(word) for word in words[1 : 1 + GUEST_FIELDS]]
        per_second = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None
    busy = sum(ticks) - sum(ticks[field] for field in IDLE_FIELDS)
    own = os.times()
    return _Moment(time.monotonic(), busy / per_second, own.user + own.system)

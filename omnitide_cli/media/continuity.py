"""The clock of a container, packet by packet: where it was set anew, time goes on for all its streams alike."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction

from av.packet import Packet

BACK_S = 1
"""Timestamps of one stream that go back by more were set anew; a little disorder is usual."""

TOGETHER_S = 3
"""Streams whose clocks jump to within so much of each other jump together, and stay in step."""

LOOK_AHEAD = 3
FARTHEST = 200
"""Packets of all streams that are read ahead at most to find LOOK_AHEAD of one."""

BELIEVABLE_S = 1e9

Tell = Callable[[str, str, str], None]


class Continuity:
    """Passes the packets of some streams on, their times corrected.

    A clock that goes back, or ahead by more than `longest_pause_s` while no other stream goes on meanwhile, was set
    anew: recordings joined, a camera that has asked for the time. One packet that is out of line is none of these and
    is left as it is. With `is_live` a pause that was waited for is a pause, however long.
    """

    def __init__(
        self, packets: Iterator[Packet], wanted: Collection[int], longest_pause_s: float, *, is_live: bool, tell: Tell
    ) -> None:
        self._packets = packets
        self._wanted = wanted
        self._longest_pause_s = longest_pause_s
        self._is_live = is_live
        self._tell = tell
        self._ahead: deque[Packet] = deque()
        self._ends: dict[int, Fraction] = {}  # of each stream's newest packet, on the corrected clock
        self._left_at: dict[int, Fraction] = {}  # where the newest pause of each stream began
        self._read_at: dict[int, float] = {}
        self._shifts: dict[int, Fraction] = {}
        self._newest_shift = Fraction(0)
        self._failure: Exception | None = None

    def __iter__(self) -> Iterator[Packet]:
        """Raises what reading raises, after the packets before it."""
        while (packet := self._ahead.popleft() if self._ahead else self._pull()) is not None:
            self._correct(packet)
            if packet.stream.index in self._wanted:
                yield packet
        if self._failure is not None:
            raise self._failure

    def _pull(self) -> Packet | None:
        if self._failure is not None:
            return None
        try:
            return next(self._packets, None)
        except Exception as error:
            self._failure = error
            return None

    def _correct(self, packet: Packet) -> None:
        index, begin = packet.stream.index, _time(packet)
        if begin is None or not packet.time_base:
            return
        now, last = time.monotonic(), self._ends.get(index)
        is_stray = False
        if last is not None:
            jump = begin + self._shifts.get(index, 0) - last
            waited = now - self._read_at[index] if self._is_live else 0.0
            if jump < -BACK_S and self._is_back(index, last + jump):
                pass
            elif jump < -BACK_S or self._is_too_long(jump, last, waited):
                is_stray = not self._is_confirmed(packet, begin)
                if not is_stray:
                    self._set_anew(index, begin, last, jump)
            elif jump > BACK_S:
                self._left_at[index] = last
        self._read_at[index] = now
        shift = self._shifts.get(index, Fraction(0))
        if shift:
            ticks = round(shift / packet.time_base)
            packet.pts = None if packet.pts is None else packet.pts + ticks
            packet.dts = None if packet.dts is None else packet.dts + ticks
        if not is_stray:
            self._ends[index] = begin + shift + (packet.duration or 0) * packet.time_base

    def _is_back(self, index: int, at: Fraction) -> bool:
        """Whether a stream goes on where it stood before its last pause, which was none: damage."""
        left_at = self._left_at.get(index)
        return left_at is not None and -BACK_S <= at - left_at <= TOGETHER_S

    def _is_too_long(self, jump: Fraction, last: Fraction, waited: float) -> bool:
        if jump - Fraction(waited) <= self._longest_pause_s:
            return False
        others = max((end for end in self._ends.values()), default=last)
        return others - last < jump / 2

    def _is_confirmed(self, packet: Packet, begin: Fraction) -> bool:
        """Whether the packets behind are where this one is."""
        index = packet.stream.index
        following = [
            time for ahead in self._ahead if ahead.stream.index == index and (time := _time(ahead)) is not None
        ]
        while len(following) < LOOK_AHEAD and len(self._ahead) < FARTHEST and (ahead := self._pull()) is not None:
            self._ahead.append(ahead)
            if ahead.stream.index == index and (at := _time(ahead)) is not None:
                following.append(at)
        return all(-BACK_S <= at - begin <= self._longest_pause_s for at in following)

    def _set_anew(self, index: int, begin: Fraction, last: Fraction, jump: Fraction) -> None:
        if self._newest_shift != self._shifts.get(index, 0) and abs(begin + self._newest_shift - last) <= TOGETHER_S:
            self._shifts[index] = self._newest_shift
            return
        self._shifts[index] = self._newest_shift = last - begin
        self._tell(
            "clock-jump",
            f"the source's time jumps by {float(jump):.1f} s; reading continues without the jump",
            "If picture and sound drift apart from here, remux the file to repair its timestamps.",
        )


def _time(packet: Packet) -> Fraction | None:
    """Seconds; None where the packet bears no believable time."""
    ticks = packet.dts if packet.dts is not None else packet.pts
    if ticks is None or not packet.time_base:
        return None
    begin = ticks * packet.time_base
    return begin if abs(begin) < BELIEVABLE_S else None

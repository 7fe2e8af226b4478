"""A sound card's own clock against the computer's: where on the clock do the samples belong that arrive now?

A sound card counts its samples by a quartz of its own, which is off by up to some hundred millionths: a third of a
second in an hour. Samples arrive late, never early: late by what buffers and a busy machine add. So the earliest
arrival of the last seconds tells when a sample was really heard, and sound is pulled towards it, by one sample in a
block: nobody hears that, and no sound is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnitide_cli.media.unit import WHISPER

WINDOW_S = 10.0
"""Half of the time over which the earliest arrival is looked for."""

TOLERANCE_S = 0.002
"""By so much sound may be off its place before it is pulled."""

LEAP_S = 0.1
"""So far behind its place, sound is missing and no clock is wrong."""


@dataclass(frozen=True, slots=True)
class Placing:
    """Where a block goes: after `gap` missing samples, made longer by `stretch` (−1, 0, 1) samples."""

    gap: int
    stretch: int


class SampleClock:
    """Follows one run of a device. Moments are seconds of the computer's clock; there are `rate` samples a second."""

    def __init__(self, rate: int = WHISPER.rate) -> None:
        self._rate = rate
        self.edge: int | None = None
        """Sample number, counted from second 0 of the clock, at which the next block begins."""
        self.skew = 0
        """Samples put in (or, below 0, taken out) so far to keep pace with the clock."""
        self._count = 0
        self._earliest = [float("inf"), float("inf")]  # second 0 of the device's count: in this window, in the last one
        self._window_ends = float("-inf")

    def place(self, samples: int, arrived: float, *, broken: bool = False) -> Placing:
        """Say where a block of `samples` goes that arrived at `arrived`; `broken`: the device lost some before it."""
        self._count += samples
        began = arrived - self._count / self._rate
        if broken:
            self._earliest = [float("inf"), float("inf")]
            self._window_ends = arrived + WINDOW_S
        elif arrived >= self._window_ends:
            self._earliest = [float("inf"), self._earliest[0]]
            self._window_ends = arrived + WINDOW_S
        self._earliest[0] = min(self._earliest[0], began)
        true_end = round((min(self._earliest) + self._count / self._rate) * self._rate)
        if self.edge is None:
            self.edge = true_end - samples
        off = true_end - (self.edge + samples)
        gap = off if off > LEAP_S * self._rate else 0
        stretch = 0 if gap or abs(off) <= TOLERANCE_S * self._rate or samples < 2 else 1 if off > 0 else -1
        self.skew += stretch
        self.edge += gap + samples + stretch
        return Placing(gap, stretch)

"""Sound as it arrives: a bounded queue between the thread of a microphone and the one that cuts units."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.media.skew import SampleClock
from omnitide_cli.media.sound import Block, Stretch
from omnitide_cli.media.unit import WHISPER, SoundFormat

LONGEST_S = 300
"""Seconds of sound that wait for a model that is behind: 19 MB."""


class SoundQueue:
    """Mono samples of a format in their places on the computer's clock; sample numbers count from its second 0.

    One thread pushes, another reads forwards. What is missing between blocks is silence and is counted.
    """

    def __init__(self, longest_s: float = LONGEST_S, *, form: SoundFormat = WHISPER) -> None:
        self.form = form
        self._lock = threading.Lock()
        self._blocks: deque[Block] = deque()
        self._longest = form.sample(longest_s)
        self._clock = SampleClock(form.rate)
        self._skew_before = 0  # of runs of the device that are over
        self._edge: int | None = None
        self._from: int | None = None  # sound before this sample is not wanted (any more)
        self._sealed: int | None = None  # what was read ends here
        self._reopened = True
        self._lost = 0
        self._still = (0, 0)  # the newest time in which the whole process stood still
        self._newest_gap = (0, 0)
        self._is_broken = False

    @property
    def edge(self) -> int | None:
        """Sample number up to which sound has arrived; None before the first."""
        return self._edge

    @property
    def lost_samples(self) -> int:
        """Samples since `start` that no unit holds: the device lost them, or the model was too far behind.

        What a device did not hear while it was gone is not among them.
        """
        return self._lost

    @property
    def skew_samples(self) -> int:
        """Samples put in (below 0: taken out) because the device's clock is slower (faster) than the computer's."""
        return self._skew_before + self._clock.skew

    def start(self, sample: int) -> None:
        """Sound is wanted from this sample number on; nothing counts as lost before it."""
        with self._lock:
            self._from = sample
            self._forget(sample - self.form.before)

    def stood_still(self, first: int, last: int) -> None:
        """The process was stopped between two sample numbers: what is missing there is not lost by a busy machine."""
        with self._lock:
            self._still = (first, last)
            self._is_broken = True  # a device's buffer holds a fraction of a second
            self._lost -= _overlap(self._newest_gap, self._still)

    def restart(self) -> None:
        """The device was reopened: its count of samples begins again."""
        with self._lock:
            self._skew_before += self._clock.skew
            self._clock = SampleClock(self.form.rate)
            self._reopened = True

    def push(self, samples: NDArray[np.float32], arrived: float, *, broken: bool = False) -> None:
        """Append a block that arrived at second `arrived` of the clock; `broken`: the device lost some before it."""
        with self._lock:
            placing = self._clock.place(len(samples), arrived, broken=broken or self._is_broken)
            self._is_broken = False
            if placing.stretch:
                samples = stretched(samples, placing.stretch)
            at = (self._clock.edge or 0) - len(samples)
            if self._edge is not None and at < self._edge:  # a reopened device may overlap what it said before
                samples = samples[self._edge - at :]
                at = self._edge
            if self._from is not None and self._edge is not None and not self._reopened:
                self._newest_gap = (max(self._edge, self._from), max(at, self._edge, self._from))
                self._lost += self._newest_gap[1] - self._newest_gap[0] - _overlap(self._newest_gap, self._still)
            if self._sealed is not None:
                self._lost += min(len(samples), max(0, self._sealed - at))
            self._reopened = False
            if len(samples):
                self._blocks.append(Block(at, samples))
                self._edge = at + len(samples)
                self._bound()

    def read(self, first: int, last: int) -> Stretch | None:
        """The sound between two sample numbers, for good; None if nothing of it was heard."""
        with self._lock:
            inside, heard = self._copy(first, last)
            left, left_heard = self._copy(first - self.form.before, first)
            right, right_heard = self._copy(last, last + self.form.after)
            self._from = self._sealed = last
            self._forget(last - self.form.before)
        if not heard:
            return None
        whole_left, whole_right = left_heard == len(left), right_heard == len(right)
        return Stretch(inside, left if whole_left else left[:0], right if whole_right else right[:0], heard)

    def _copy(self, first: int, last: int) -> tuple[NDArray[np.float32], int]:
        samples, heard = np.zeros(last - first, np.float32), 0
        for block in self._blocks:
            if block.at >= last:
                break
            begin, end = max(first, block.at), min(last, block.at + len(block.samples))
            if begin < end:
                samples[begin - first : end - first] = block.samples[begin - block.at : end - block.at]
                heard += end - begin
        return samples, heard

    def _forget(self, before: int) -> None:
        while self._blocks and self._blocks[0].at + len(self._blocks[0].samples) <= before:
            self._blocks.popleft()

    def _bound(self) -> None:
        """Of a backlog beyond all bounds the oldest second goes; before `start` only a second is kept."""
        assert self._edge is not None
        if self._from is None:
            self._forget(self._edge - self.form.rate)
        elif self._edge - self._from > self._longest:
            self._forget(self._from + self.form.rate)
            self._lost += self.form.rate
            self._from += self.form.rate


def stretched(samples: NDArray[np.float32], by: int) -> NDArray[np.float32]:
    """The block with `by` samples more (or less), its ends in place."""
    count = len(samples)
    at = np.linspace(0, count - 1, count + by)
    return np.interp(at, np.arange(count), samples).astype(np.float32)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))

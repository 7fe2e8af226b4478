"""A stream of moving pictures, asked unit by unit for the frame that was on screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import av
import numpy as np
from av.error import FFmpegError
from av.video.reformatter import Interpolation
from numpy.typing import NDArray

from omnitide_cli.media.clock import Timed
from omnitide_cli.media.demux import Lull
from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.passing import LOOKS, SIZE, Thumb, passing
from omnitide_cli.media.picture import upright_picture

EPSILON_S = 1e-6


@dataclass(frozen=True, slots=True)
class Shot:
    """A frame and when it comes on screen; a lull (frame None) says that nothing comes before `begin`."""

    begin: float
    end: float
    frame: av.VideoFrame | None


def shots(frames: Iterator[Timed | Lull]) -> Iterator[Shot]:
    """Decoded frames with their times, in seconds of the container's time."""
    for moment in frames:
        if isinstance(moment, Lull):
            yield Shot(float(moment.time), float(moment.time), None)
        elif isinstance(moment.frame, av.VideoFrame):
            yield Shot(float(moment.begin), float(moment.end), moment.frame)


class PictureTrack:
    """Pictures on the media clock, read forwards; holds two decoded frames and the last canvas."""

    def __init__(
        self, source: Iterator[Shot], fit: FrameFit, count_damage: Callable[[], None], *, passing: bool = False
    ) -> None:
        """`passing`: a unit's picture is that of what comes and goes within it, if anything does (passing.py)."""
        self._source = source
        self._count_damage = count_damage
        self._fit = fit
        self._takes_passing = passing
        self._origin = 0.0
        self._next = next(source, None)
        self._current: Shot | None = None
        self._shown: tuple[av.VideoFrame, NDArray[np.uint8] | None] | None = None

    @property
    def first(self) -> float | None:
        """Second of the container's time at which the picture begins; None if there is none or not yet."""
        return self._next.begin if self._next is not None and self._next.frame is not None else None

    @property
    def first_frame(self) -> av.VideoFrame | None:
        """The frame that comes next."""
        return self._next.frame if self._next is not None else None

    def set_origin(self, seconds: float) -> None:
        """Put 0 of the media clock at `seconds` of the container's time; before anything is read."""
        self._origin = seconds

    @property
    def end(self) -> float | None:
        """Second at which the last frame leaves the screen, once everything was read; else None."""
        if self._next is not None:
            return None
        return self._current.end - self._origin if self._current is not None else 0.0

    def skip(self, until: float) -> None:
        """Throw away what leaves the screen before second `until` of the media clock."""
        while self._next is not None and self._next.begin - self._origin <= until + EPSILON_S:
            self._advance()

    def read(self, start: float, end: float) -> NDArray[np.uint8] | None:
        """The picture on screen at the middle of the unit, else the first one in the unit.

        None before the first frame and after the last one left the screen.
        """
        middle = (start + end) / 2
        if self._takes_passing:
            self.skip(start)
        before, others = self._current, list[Shot]()
        chosen = self._current
        if self.end is not None and self.end <= start + EPSILON_S:
            chosen = None
        while self._next is not None and self._next.begin - self._origin < end - EPSILON_S:
            shot = self._next
            self._advance()
            if shot.frame is not None and (chosen is None or shot.begin - self._origin <= middle + EPSILON_S):
                chosen = shot
            slot = len(others) + 1
            if self._takes_passing and shot.frame and shot.begin - self._origin >= start + slot / LOOKS * (end - start):
                others.append(shot)
        if others and before and chosen and self._current:
            chosen = self._passing(before, chosen, self._current, others)
        return self._canvas(chosen.frame) if chosen is not None and chosen.frame is not None else None

    def _passing(self, before: Shot, usual: Shot, last: Shot, others: list[Shot]) -> Shot:
        """The one of `others` that shows something passing, else the usual one."""
        shots = (before, usual, last, *others)  # each has a frame: lulls are none of them
        try:
            before_it, shown, at_end, *rest = (_thumb(shot.frame) for shot in shots if shot.frame is not None)
        except (FFmpegError, MemoryError):  # the picture itself is tried, and counted, later
            return usual
        found = passing(before_it, shown, at_end, rest)
        return usual if found is None else others[found]

    def _advance(self) -> None:
        if self._next is not None and self._next.frame is not None:
            self._current = self._next
        self._next = next(self._source, None)

    def _canvas(self, frame: av.VideoFrame) -> NDArray[np.uint8] | None:
        if self._shown is None or self._shown[0] is not frame:
            try:
                picture = upright_picture(frame, self._fit)
            except (FFmpegError, MemoryError):  # pixels that libav can't convert, or a size that damage made up
                picture = None
                self._count_damage()
            self._shown = (frame, picture)
        return self._shown[1]


def _thumb(frame: av.VideoFrame) -> Thumb:
    grey = frame.reformat(width=SIZE[0], height=SIZE[1], format="gray", interpolation=Interpolation.AREA)
    return grey.to_ndarray().astype(np.uint8, copy=False)

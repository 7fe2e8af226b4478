"""A stream of sound, cut into stretches of mono samples by the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.error import FFmpegError
from numpy.typing import NDArray

from omnitide_cli.media.clock import Timed
from omnitide_cli.media.demux import Lull
from omnitide_cli.media.unit import NO_SOUND, WHISPER, SoundFormat

HIGHEST_RATE = 768_000
"""Samples a second that recorders reach; what says more is damaged and would ask the resampler for gigabytes."""

SLACK_S = 0.04
"""By so much timestamps may stray from the count of samples before sound is moved."""


@dataclass(frozen=True, slots=True)
class Block:
    """Samples that stand at sample number `at`, counted from time 0 of the container; none: a lull before `at`."""

    at: int
    samples: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Sound of one unit, of which `heard` samples lie between the first and the last moment of the stream's sound.

    The rest is padding; gaps between those two moments are silence, as in the recording.
    """

    samples: NDArray[np.float32]
    left: NDArray[np.float32]
    right: NDArray[np.float32]
    heard: int


def blocks(frames: Iterator[Timed | Lull], count_damage: Callable[[], None], rate: int) -> Iterator[Block]:
    """Resample decoded frames; a block stands where its predecessor ended unless the timestamps say otherwise."""
    resampler: av.AudioResampler | None = None
    shape: tuple[str, str, int] | None = None
    at = 0

    def converted(frame: AudioFrame | None) -> Iterator[Block]:
        nonlocal at, resampler
        if resampler is None:
            return
        try:
            parts = resampler.resample(frame)
        except (FFmpegError, ValueError):  # a number of channels that damage made up
            resampler = None
            count_damage()
            return
        for part in parts:
            samples = np.nan_to_num(part.to_ndarray().reshape(-1)).clip(-1, 1).astype(np.float32, copy=False)
            yield Block(at, samples)
            at += len(samples)

    expected = Fraction(0)  # where the next frame should begin
    for moment in frames:
        if isinstance(moment, Lull):
            yield Block(round(moment.time * rate), NO_SOUND)
            continue
        frame, begin = moment.frame, moment.begin
        if not isinstance(frame, AudioFrame):
            continue
        if not 0 < frame.sample_rate <= HIGHEST_RATE:
            count_damage()
            continue
        found = (frame.format.name, frame.layout.name, frame.sample_rate)
        if resampler is None or found != shape or abs(begin - expected) > SLACK_S:
            yield from converted(None)
            # Unnormalised, a stereo mix of equal channels would be 1.4 times as loud and clip.
            resampler = av.AudioResampler("flt", "mono", rate, options={"rematrix_maxval": "1.0"})
            shape, at, expected = found, round(begin * rate), begin
        expected += Fraction(frame.samples, frame.sample_rate)
        yield from converted(_untimed(frame))
    yield from converted(None)


def _untimed(frame: AudioFrame) -> AudioFrame:
    frame.pts = None  # the resampler would take jitter for gaps; `blocks` judges timestamps itself
    return frame


class SoundTrack:
    """Sound on the media clock, read forwards; holds no more than one unit and its surroundings."""

    def __init__(self, source: Iterator[Block], form: SoundFormat = WHISPER) -> None:
        """`form`: that of the blocks."""
        self._form = form
        self._source = source
        self._next = self._pull()
        self._buffer = NO_SOUND
        self._at = 0
        self._begun: int | None = None
        self._origin = 0
        self.late_samples = 0

    @property
    def first(self) -> float | None:
        """Second of the container's time at which sound begins; None if there is none or not yet."""
        return self._next.at / self._form.rate if self._next is not None and len(self._next.samples) else None

    def set_origin(self, seconds: float) -> None:
        """Put 0 of the media clock at `seconds` of the container's time; before anything is read."""
        self._origin = self._form.sample(seconds)

    @property
    def end(self) -> float | None:
        """Second at which the sound ends, once everything was read; else None."""
        return self._edge / self._form.rate if self._next is None else None

    def skip(self, until: float) -> None:
        """Throw away what lies before second `until` of the media clock, little by little."""
        rate = self._form.rate
        for sample in range(rate, self._form.sample(until) + 1, rate):
            self._fill(sample)
            self._forget(sample - self._form.before)

    def read(self, start: float, end: float) -> Stretch | None:
        """The sound between two seconds of the media clock, None if it has not begun or is over."""
        form = self._form
        first, last = form.sample(start), form.sample(end)
        self._forget(first - form.before)
        self._fill(last + form.after)
        edge = self._edge
        if self._begun is None or self._begun >= last or edge <= first:
            return None
        lead, tail = max(0, self._begun - first), max(0, last - edge)
        inside = self._slice(first, last)
        return Stretch(
            samples=np.pad(inside, (lead, tail)) if lead or tail else inside.copy(),
            left=self._slice(first - form.before, first).copy(),
            right=self._slice(last, last + form.after).copy(),
            heard=len(inside),
        )

    @property
    def _edge(self) -> int:
        return self._at + len(self._buffer)

    def _pull(self) -> Block | None:
        return next(self._source, None)

    def _slice(self, first: int, last: int) -> NDArray[np.float32]:
        return self._buffer[max(0, first - self._at) : max(0, last - self._at)]

    def _forget(self, before: int) -> None:
        gone = min(max(0, before - self._at), len(self._buffer))
        self._buffer = self._buffer[gone:]
        self._at += gone

    def _fill(self, until: int) -> None:
        """Decode up to sample `until`; where the stream has a gap, put silence."""
        parts = [self._buffer]
        edge = self._edge
        while self._next is not None and (self._begun is None or edge < until):
            at = self._next.at - self._origin
            samples = self._next.samples
            if self._begun is None and at >= until:
                break
            if self._begun is None and len(samples):
                self._begun = self._at = edge = at
            if self._begun is not None and at > edge:
                parts.append(np.zeros(min(at, until) - edge, np.float32))
                edge += len(parts[-1])
                if at > edge:
                    break
            late = min(edge - at, len(samples)) if self._begun is not None else 0
            self.late_samples += late
            parts.append(samples[late:])
            edge += len(samples) - late
            self._next = self._pull()
        self._buffer = np.concatenate(parts)

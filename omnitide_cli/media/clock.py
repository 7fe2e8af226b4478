"""Timestamps of a stream → seconds on one clock, with the mistakes of cameras and cutters taken out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from av.audio.frame import AudioFrame
from av.frame import Frame

from omnitide_cli.media.demux import Lull

JUMP_S = 1
LONGEST_PAUSE_S = 3600
LOOK_AHEAD = 4
FALLBACK_FRAME_S = Fraction(1, 25)


@dataclass(frozen=True, slots=True)
class Timed:
    """A frame and when it begins and ends, in seconds of the container's time."""

    frame: Frame
    begin: Fraction
    end: Fraction


def timed(
    frames: Iterator[Frame | Lull], default_duration: Fraction | None, warn: Callable[[str, str, str], None]
) -> Iterator[Timed | Lull]:
    """Say of each frame of one stream when it is.

    A frame without a timestamp follows the one before it, and so does one whose timestamp lies far off while those
    after it are back in line. Recordings that were glued together restart their clock, or jump ahead by hours: from
    there on, time goes on where it stood. A pause in the recording is none of these and stays.
    """
    ahead: deque[Frame | Lull] = deque()
    expected: Fraction | None = None
    shift = Fraction(0)
    while True:
        frame = ahead.popleft() if ahead else next(frames, None)
        if frame is None:
            return
        if isinstance(frame, Lull):
            yield frame
            continue
        begin = _timestamp(frame)
        begin = (expected or Fraction(0)) if begin is None else begin + shift
        if expected is not None and abs(begin - expected) > JUMP_S:
            ahead.extend(islice(frames, LOOK_AHEAD - len(ahead)))
            if _is_stray(begin, expected, [time + shift for time in map(_timestamp, ahead) if time is not None]):
                begin = expected
            elif not -JUMP_S <= begin - expected <= LONGEST_PAUSE_S:
                warn(
                    "clock-jump",
                    f"timestamps jump by {float(begin - expected):.1f} s; reading continues without the jump",
                    "If picture and sound drift apart from here, remux the file to repair its timestamps.",
                )
                shift += expected - begin
                begin = expected
        duration = _duration(frame) or default_duration
        if duration is None or duration > LONGEST_PAUSE_S:  # a frame of days is damage
            duration = FALLBACK_FRAME_S
        expected = begin + duration
        yield Timed(frame, begin, expected)


def arrived(frames: Iterator[Frame | Lull]) -> Iterator[Timed | Lull]:
    """Frames that bear the time at which they came: a stream without times of its own, live."""
    for frame in frames:
        if isinstance(frame, Lull):
            yield frame
        elif (begin := _timestamp(frame)) is not None:
            yield Timed(frame, begin, begin)


def _is_stray(begin: Fraction, expected: Fraction, following: list[Fraction]) -> bool:
    if begin > expected:
        return any(time < begin for time in following)
    return any(time >= expected - JUMP_S for time in following)


def _timestamp(frame: Frame | Lull) -> Fraction | None:
    if isinstance(frame, Lull) or frame.pts is None or frame.time_base is None:
        return None
    return frame.pts * frame.time_base


def _duration(frame: Frame) -> Fraction | None:
    """Seconds; None where the container does not tell."""
    if isinstance(frame, AudioFrame):
        return Fraction(frame.samples, frame.sample_rate)
    return frame.duration * frame.time_base if frame.duration > 0 and frame.time_base is not None else None

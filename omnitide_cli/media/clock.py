"""Timestamps of a stream → seconds on one clock, with the mistakes of cameras and cutters taken out."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from av.frame import Frame

BACKWARD_S = 1
FORWARD_S = 3600


class StreamClock:
    """Tells when each frame of one stream begins, in seconds of the container's own time.

    A frame without a timestamp follows the one before it. Recordings that were glued together start their time anew, or
    jump ahead by hours: from there on, time goes on where it stood.
    """

    def __init__(self, default_duration: Fraction, warn: Callable[[str, str, str], None]) -> None:
        self._default = default_duration
        self._warn = warn
        self._next: Fraction | None = None
        self._shift = Fraction(0)

    def interval(self, frame: Frame, duration: Fraction | None = None) -> tuple[Fraction, Fraction]:
        """When `frame` begins and ends; `duration` in seconds where the caller knows it better than the container."""
        if duration is None:
            known = frame.duration * frame.time_base if frame.duration and frame.time_base else Fraction(0)
            duration = known if known > 0 else self._default
        if frame.pts is None or frame.time_base is None:
            begin = self._next if self._next is not None else Fraction(0)
        else:
            begin = frame.pts * frame.time_base + self._shift
            if self._next is not None and not -BACKWARD_S <= begin - self._next <= FORWARD_S:
                self._warn(
                    "clock-jump",
                    f"the source's time jumps by {float(begin - self._next):.1f} s; it is read on without the jump",
                    "Picture and sound may be apart from here on; write the file anew to repair its timestamps.",
                )
                self._shift += self._next - begin
                begin = self._next
        self._next = begin + duration
        return begin, self._next

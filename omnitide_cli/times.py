"""Times as people read them."""

from __future__ import annotations


def clock(seconds: float) -> str:
    """Media time: 0:08, 12:30, 1:02:03."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def length(seconds: float) -> str:
    """How long something is: 4.2 s, from a minute on as a media time."""
    return f"{seconds:.1f} s" if seconds < 60 else clock(seconds)

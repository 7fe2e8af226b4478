"""Where in a source the next unit begins: what a saved session goes on from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """A moment of a source, on its own clock and on the session's."""

    position: float = 0.0
    """Seconds from the beginning of the file; of a stream that can't be gone back in, only `clock` counts."""
    clock: float = 0.0
    """Seconds on the media clock, which goes on over loops and over saved sessions."""
    index: int = 0
    """Number of the next unit."""
    loop: int = 0
    """How often the source was played to its end."""

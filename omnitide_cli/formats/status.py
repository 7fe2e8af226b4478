"""The one line on a terminal that says what is going on and is gone when something is printed."""

from __future__ import annotations

import os
import time
from typing import TextIO

from omnitide_cli.formats.words import printable

REFRESH_S = 0.1


class StatusLine:
    """A line that is rewritten in place; on anything but a capable terminal it doesn't exist.

    It hides no cursor and starts no thread: whatever ends the process, the terminal is as it was.
    """

    def __init__(self, stream: TextIO, *, enabled: bool = True) -> None:
        self._stream = stream
        self._enabled = enabled and is_capable(stream)
        self._shown = False
        self._next = 0.0

    def show(self, text: str, *, now: bool = False) -> None:
        """Replace the line, but not more often than people can read unless it must be seen `now`."""
        if not self._enabled or (time.monotonic() < self._next and not now):
            return
        from rich.cells import cell_len, set_cell_size

        text, width = printable(text), columns(self._stream) - 1
        self._stream.write("\r\x1b[2K" + (text if cell_len(text) <= width else set_cell_size(text, width)))
        self._stream.flush()
        self._shown = True
        self._next = time.monotonic() + REFRESH_S

    def clear(self) -> None:
        """Take the line away, so that the next thing printed starts in an empty one."""
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._shown = False


def columns(terminal: TextIO) -> int:
    """Width of a terminal; 80 where it doesn't know itself."""
    return os.get_terminal_size(terminal.fileno()).columns or 80


def is_capable(stream: TextIO) -> bool:
    """Whether a stream is a terminal that understands cursor codes."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")

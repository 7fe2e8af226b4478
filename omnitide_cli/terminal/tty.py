"""A terminal taken for a full screen and given back as it was, whatever ends the process."""

from __future__ import annotations

import codecs
import os
import termios
import threading
from typing import Any, TextIO

from omnitide_cli.formats.status import is_capable

ENTER = "\x1b[?1049h\x1b[?2004h\x1b[?7l\x1b[2J\x1b[H"  # other screen, marked pastes, no wrapping
LEAVE = "\x1b[0m\x1b[?7h\x1b[?2004l\x1b[?25h\x1b[?1049l"
PATIENCE_S = 0.2

IFLAG, LFLAG, CC = 0, 3, 6


def can_show(stdin: TextIO, stdout: TextIO) -> bool:
    """Whether there is a terminal on both sides that understands cursor codes and UTF-8, and it is ours to use."""
    if not (stdin.isatty() and is_capable(stdout)):
        return False
    return _speaks_utf8(stdout) and in_foreground(stdin)


def in_foreground(stdin: TextIO) -> bool:
    """Whether this process may read from the terminal; in the background the attempt would stop it."""
    try:
        return os.tcgetpgrp(stdin.fileno()) == os.getpgrp()
    except OSError:  # a terminal without job control
        return True


class Terminal:
    """Keys come one by one and unseen while entered; Ctrl-C stays a signal. Safe from any thread."""

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self.stdin = stdin.fileno()
        self.stdout = stdout.fileno()
        self._before: list[Any] | None = None
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Take the screen."""
        with self._lock:
            self._before = termios.tcgetattr(self.stdin)
            mode = termios.tcgetattr(self.stdin)
            mode[LFLAG] &= ~(termios.ICANON | termios.ECHO)
            mode[IFLAG] &= ~(termios.IXON | termios.ICRNL)  # Ctrl-S must not freeze the picture
            mode[CC] = [*mode[CC]]
            mode[CC][termios.VMIN], mode[CC][termios.VTIME] = 1, 0
            termios.tcsetattr(self.stdin, termios.TCSANOW, mode)
            self._put(ENTER)

    def write(self, text: str) -> None:
        """Draw, if the screen is ours. Raises OSError when the terminal is gone."""
        with self._lock:
            if self._before is not None:
                self._put(text)

    def leave(self) -> None:
        """Give the terminal back as it was; harmless when called twice, and when the terminal is gone."""
        # Who leaves at once must not wait for a drawing that a slow terminal holds up.
        locked = self._lock.acquire(timeout=PATIENCE_S)
        try:
            before, self._before = self._before, None
            if before is not None:
                try:
                    self._put(LEAVE)
                    termios.tcsetattr(self.stdin, termios.TCSANOW, before)
                except (OSError, termios.error):
                    return  # hung up: nothing is left to restore
        finally:
            if locked:
                self._lock.release()

    def size(self) -> tuple[int, int]:
        """Columns and rows; 80 by 24 where the terminal doesn't know itself."""
        size = os.get_terminal_size(self.stdout)
        return size.columns or 80, size.lines or 24

    def _put(self, text: str) -> None:
        data = memoryview(text.encode("utf-8", "replace"))
        while data:
            data = data[os.write(self.stdout, data) :]


def _speaks_utf8(stream: TextIO) -> bool:
    try:
        return codecs.lookup(stream.encoding).name == "utf-8"
    except LookupError:
        return False

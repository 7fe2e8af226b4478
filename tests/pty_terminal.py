"""A process on a pseudo-terminal, and what a person would see on it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pyte
import scripted

SCRIPT = [sys.executable, scripted.__file__]
OTHER_SCREEN, OWN_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


class Terminal:
    """A terminal of `size` columns and rows; the process is in its foreground, so that Ctrl-C reaches it."""

    def __init__(self, arguments: list[str], env: dict[str, str], cwd: Path, size: tuple[int, int] = (80, 24)) -> None:
        self.master, self.slave = pty.openpty()
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._set_size(*size)
        self.before = termios.tcgetattr(self.slave)
        self.text = ""
        self.process = subprocess.Popen(
            [*SCRIPT, *arguments],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            env=env,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )

    @property
    def rows(self) -> list[str]:
        """The lines on the screen."""
        return list(self._screen.display)

    @property
    def is_restored(self) -> bool:
        """Whether the terminal is set up as before, on its own screen, with a cursor."""
        screens = self.text.count(OTHER_SCREEN) == self.text.count(OWN_SCREEN)
        return screens and termios.tcgetattr(self.slave) == self.before and not self._screen.cursor.hidden

    def resize(self, columns: int, rows: int) -> None:
        """As a window manager does it."""
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)
        os.killpg(self.process.pid, signal.SIGWINCH)

    def wait_for(self, text: str, seconds: float = 20.0) -> None:
        """Read until `text` has been written."""
        self.wait_until(lambda: text in self.text, seconds)

    def wait_to_see(self, text: str, seconds: float = 20.0) -> None:
        """Read until `text` stands on the screen."""
        self.wait_until(lambda: any(text in row for row in self.rows), seconds)

    def wait_until(self, is_so: Callable[[], bool], seconds: float = 20.0) -> None:
        """Read until something is so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, "\n".join([*self.rows, repr(self.text[-2000:])])
            assert self.process.poll() is None or self._read(0), "\n".join([*self.rows, repr(self.text[-2000:])])
            self._read(0.05)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.master, text.encode())

    def end(self, seconds: float = 10.0) -> int:
        """Wait for the exit code."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.05)
        code = self.process.wait(0.1)
        while self._read(0):
            pass
        return code

    def close(self) -> None:
        """Leave nothing behind."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def _set_size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self, seconds: float) -> bool:
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        data = os.read(self.master, 65536)
        self._stream.feed(data)
        self.text += data.decode(errors="replace")
        return True

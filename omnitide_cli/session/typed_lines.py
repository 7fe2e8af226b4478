"""What a person types while a session runs and after its end: a question or a command a line."""

from __future__ import annotations

import fcntl
import os
import select
import stat
import sys
import termios
from array import array
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.terminal.slash import help_line

PROMPT = "> "


class Prompt(Protocol):
    """Lines that are typed; for one thread."""

    def poll(self) -> str | None:
        """A line that has been typed by now, without waiting; None: none."""
        ...

    def wait(self) -> str | None:
        """The next line; None when no more can come. A signal raises KeyboardInterrupt."""
        ...

    def ring(self) -> None:
        """End a `wait` with an empty line: there is something else to do. From any thread."""
        ...


class Silence:
    """Nobody types: the session ends with its stream."""

    def poll(self) -> str | None:
        return None

    def wait(self) -> str | None:
        return None

    def ring(self) -> None:
        pass


class TypedLines:
    """Lines of a terminal that edits them itself: nothing about it is changed and nothing has to be restored."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._file = sys.stdin.fileno()
        self._bell = os.pipe()
        os.set_blocking(self._bell[1], False)
        self._lines: deque[str] = deque()
        self._rest = b""
        self._has_more = True
        self._is_new = True

    def ring(self) -> None:
        with suppress(OSError):  # as many rings as a pipe holds are one
            os.write(self._bell[1], b"!")

    def poll(self) -> str | None:
        while not self._lines and self._has_more and select.select([self._file], [], [], 0)[0]:
            self._read()
        return self._lines.popleft() if self._lines else None

    def wait(self) -> str | None:
        if self._is_new:
            self._is_new = False
            print(help_line())
        print(PROMPT, end="", flush=True)
        line = self._next()
        if line is None:
            print()
        return line

    def _next(self) -> str | None:
        while not self._lines and self._has_more:
            with self._interrupt.raising():
                if not self._interrupt.wait_for_input(self._file, self._bell[0]):
                    os.read(self._bell[0], 4096)
                    return ""
                self._read()
        return self._lines.popleft() if self._lines else None

    def _read(self) -> None:
        try:
            chunk = os.read(self._file, 4096)
        except OSError:  # hung up
            chunk = b""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        if not chunk:
            self._has_more = False
            whole += [self._rest] if self._rest else []
        self._lines += [line.decode(sys.stdin.encoding, "replace") for line in whole]


class PipedLines(TypedLines):
    """Lines of a pipe: questions as if they were typed, or as in a file of questions.

    `take` gets each line first, and whether the stream is over, and returns what is to be asked, None for nothing. With
    `at_once` that is asked as soon as it comes, else after the stream, which is then over sooner than anybody types.
    """

    def __init__(self, interrupt: Interrupt, take: Callable[[str, bool], str | None], *, at_once: bool) -> None:
        super().__init__(interrupt)
        self._take = take
        self._at_once = at_once
        self._kept: deque[str] = deque()
        self._is_over = False

    def stream_ended(self) -> None:
        """From now on there is no later moment that a question could wait for."""
        self._is_over = True

    def poll(self) -> str | None:
        while (line := super().poll()) is not None:
            if (question := self._take(line, self._is_over)) is None:
                continue
            if self._at_once or self._is_over:
                return question
            self._kept.append(question)
        return None

    def wait(self) -> str | None:
        if self._kept:
            return self._kept.popleft()
        while (line := self._next()) is not None:
            if (question := self._take(line, True)) is not None:
                return question
        return None


class QueuedLines:
    """Lines that another thread hands over with `put`, and None after the last."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self.put = self._lines.put

    def ring(self) -> None:
        self._lines.put("")

    def poll(self) -> str | None:
        try:
            return self._lines.get_nowait()
        except Empty:
            return None

    def wait(self) -> str | None:
        with self._interrupt.raising():
            return self._lines.get()


def has_unread_pipe() -> bool:
    """Whether standard input is a pipe that somebody has written into."""
    try:
        if not stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
            return False
        waiting = array("i", [0])
        fcntl.ioctl(sys.stdin.fileno(), termios.FIONREAD, waiting)
    except (OSError, ValueError, AttributeError):  # closed, or none
        return False
    return waiting[0] > 0

"""What a person types while a session runs and after its end: a question or a command a line."""

from __future__ import annotations

import os
import select
import sys
from collections import deque
from queue import Empty, SimpleQueue
from typing import Protocol

from omnitide_cli.session.interrupt import Interrupt

PROMPT = "> "
HELP = "Type a question and press Enter; /kv shows the cache, /save FILE saves the session, /quit or Ctrl-D ends."


class Prompt(Protocol):
    """Lines that are typed; for one thread."""

    def poll(self) -> str | None:
        """A line that has been typed by now, without waiting; None: none."""
        ...

    def wait(self) -> str | None:
        """The next line; None when no more can come. A signal raises KeyboardInterrupt."""
        ...


class Silence:
    """Nobody types: the session ends with its stream."""

    def poll(self) -> str | None:
        return None

    def wait(self) -> str | None:
        return None


class TypedLines:
    """Lines of a terminal that edits them itself: nothing about it is changed and nothing has to be restored."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._file = sys.stdin.fileno()
        self._lines: deque[str] = deque()
        self._rest = b""
        self._has_more = True
        self._is_new = True

    def poll(self) -> str | None:
        while not self._lines and self._has_more and select.select([self._file], [], [], 0)[0]:
            self._read()
        return self._lines.popleft() if self._lines else None

    def wait(self) -> str | None:
        if self._is_new:
            self._is_new = False
            print(HELP)
        print(PROMPT, end="", flush=True)
        while not self._lines and self._has_more:
            with self._interrupt.raising():
                self._interrupt.wait_for_input(self._file)
                self._read()
        if self._lines:
            return self._lines.popleft()
        print()
        return None

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


class QueuedLines:
    """Lines that another thread hands over with `put`, and None after the last."""

    def __init__(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self.put = self._lines.put

    def poll(self) -> str | None:
        try:
            return self._lines.get_nowait()
        except Empty:
            return None

    def wait(self) -> str | None:
        with self._interrupt.raising():
            return self._lines.get()

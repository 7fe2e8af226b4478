"""Ctrl-C and SIGTERM: the first stops taking input, the second leaves at once."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from omnitide_cli.commands.run import INTERRUPTED

SIGNALS = (signal.SIGINT, signal.SIGTERM)
NAP_S = 0.05


class Interrupt:
    """While entered, remembers the first signal instead of raising it; native code is never torn out of its work.

    Use from the main thread. With `ends_input` standard input is what is watched: a signal ends it, because no
    exception gets through the reader that libav calls.
    """

    def __init__(self, *, ends_input: bool = False) -> None:
        self.requested = False
        self._ends_input = ends_input
        self._stop: Callable[[], None] | None = None
        self._raises = False
        self._before: dict[signal.Signals, Any] = {}
        self._terminal = _terminal_state()
        self._wake: tuple[int, int] | None = None
        self._wake_before = -1

    def __enter__(self) -> Interrupt:
        self._wake = os.pipe()
        for end in self._wake:
            os.set_blocking(end, False)
        self._wake_before = signal.set_wakeup_fd(self._wake[1], warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wake_before)
        if self._wake:
            os.close(self._wake[0])
            os.close(self._wake[1])
            self._wake = None

    def on_request(self, stop: Callable[[], None] | None) -> None:
        """What else to tell, in the signal handler, that the work shall end soon: it may only set a flag."""
        self._stop = stop

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Inside, a signal raises KeyboardInterrupt at once: for waiting, which nothing else would end."""
        if self.requested:
            raise KeyboardInterrupt
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Inside, a signal ends the wait for the source."""
        if self._ends_input:
            yield
        else:
            with self.raising():
                yield

    def wait_for_input(self, file: int) -> None:
        """Wait until `file` can be read; a signal that comes right before the wait begins ends it, too."""
        if self._wake:
            select.select([file, self._wake[0]], [], [])

    def sleep_until(self, moment: float) -> None:
        """Wait until time.monotonic() is `moment`, or until a signal comes."""
        while not self.requested and (left := moment - time.monotonic()) > 0:
            time.sleep(min(left, NAP_S))

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            _restore_terminal(self._terminal)
            os._exit(INTERRUPTED)
        self.requested = True
        if self._ends_input:
            _end_standard_input()
        if self._stop:
            self._stop()
        if self._raises:
            raise KeyboardInterrupt


def _end_standard_input() -> None:
    """Whoever reads from now on, or again after a signal, finds the end."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, sys.stdin.fileno())
    os.close(null)


def _terminal_state() -> list[Any] | None:
    """How the terminal is set up, or None where there is none."""
    try:
        import termios
    except ImportError:
        return None
    try:
        return termios.tcgetattr(sys.stdin.fileno())
    except (OSError, ValueError, AttributeError, termios.error):
        return None


def _restore_terminal(state: list[Any] | None) -> None:
    if state is not None:
        import termios

        termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, state)
    if os.isatty(2):
        os.write(2, b"\r\n")  # the shell's prompt starts in a line of its own

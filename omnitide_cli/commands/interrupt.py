"""Ctrl-C and SIGTERM: the first stops taking input, the second leaves at once."""

from __future__ import annotations

import os
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

    Use from the main thread. `stop` is called in the signal handler: it may only set a flag.
    """

    def __init__(self) -> None:
        self.requested = False
        self._stop: Callable[[], None] | None = None
        self._raises = False
        self._before: dict[signal.Signals, Any] = {}
        self._terminal = _terminal_state()

    def __enter__(self) -> Interrupt:
        self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def on_request(self, stop: Callable[[], None] | None) -> None:
        """What else to tell that the work shall end soon."""
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

    def sleep_until(self, moment: float) -> None:
        """Wait until time.monotonic() is `moment`, or until a signal comes."""
        while not self.requested and (left := moment - time.monotonic()) > 0:
            time.sleep(min(left, NAP_S))

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            _restore_terminal(self._terminal)
            os._exit(INTERRUPTED)
        self.requested = True
        if self._stop:
            self._stop()
        if self._raises:
            raise KeyboardInterrupt


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
    if state is None:
        return
    import termios

    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, state)

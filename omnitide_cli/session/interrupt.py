"""Ctrl-C, SIGTERM and a terminal that hangs up: the first stops taking input, the second leaves at once."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, NoReturn

from omnitide_cli.errors import INTERRUPTED

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NAP_S = 0.05
SAME_S = 0.5
"""What comes again so soon is the same press of a key: shells, `timeout` and `uv run` pass it on, too."""


class Interrupt:
    """While entered, remembers the first signal instead of raising it; native code is never torn out of its work.

    Python's handlers wait until native code gives the main thread back. So a thread of its own reads what has come from
    the pipe that every signal is written to at once: it tells the work to end, and leaves at the second signal.

    Use from the main thread. With `ends_input` standard input is what is watched: a signal ends it, because no
    exception gets through the reader that libav calls.
    """

    def __init__(self, *, ends_input: bool = False) -> None:
        self.requested = False
        self._ends_input = ends_input
        self._stop: Callable[[], None] | None = None
        self._leaving: Callable[[], None] | None = None
        self._ending: Callable[[], None] | None = None
        self._raises = False
        self._before: dict[signal.Signals, Any] = {}
        self._terminal = _terminal_state()
        self._telling = threading.Lock()
        self._signals: tuple[int, int] | None = None  # the pipe to the watcher
        self._seen: tuple[int, int] | None = None  # and from it, for who waits
        self._watcher: threading.Thread | None = None
        self._wakeup_before = -1

    def __enter__(self) -> Interrupt:
        self._signals, self._seen = os.pipe(), os.pipe()
        os.set_blocking(self._signals[1], False)
        self._watcher = threading.Thread(target=self._watch, args=(self._signals[0], self._seen[1]), daemon=True)
        self._watcher.start()
        self._wakeup_before = signal.set_wakeup_fd(self._signals[1], warn_on_full_buffer=False)
        # nohup has hanging up ignored, and so it stays.
        heeded = [
            number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN or number != signal.SIGHUP
        ]
        self._before = {number: signal.signal(number, self._handle) for number in heeded}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup_before)
        if self._signals and self._seen and self._watcher:
            os.close(self._signals[1])  # the watcher reads the end
            self._watcher.join()
            for end in (self._signals[0], *self._seen):
                os.close(end)
        self._signals = self._seen = self._watcher = None

    def on_request(self, stop: Callable[[], None] | None) -> None:
        """What else to tell that the work shall end soon, from any thread and more than once: it may only set a flag.

        With None, nobody is told any more once this returns.
        """
        with self._telling:
            self._stop = stop

    def on_leaving(self, restore: Callable[[], None] | None) -> None:
        """What else to do before the process is left at once, from any thread: give a terminal back."""
        self._leaving = restore

    def on_ending(self, tell: Callable[[], None] | None) -> None:
        """What to do at once when the first signal comes, from any thread: say so."""
        with self._telling:
            self._ending = tell

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

    def wait_for_input(self, file: int, bell: int) -> bool:
        """Wait until `file` can be read, or until the `bell` can, and `file` can't (False); a signal that comes right
        before the wait begins ends it, too."""
        if not self._seen:
            return True
        ready = select.select([file, bell, self._seen[0]], [], [])[0]
        return not ready or bell not in ready or file in ready

    def sleep_until(self, moment: float) -> None:
        """Wait until time.monotonic() is `moment`, or until a signal comes."""
        while not self.requested and (left := moment - time.monotonic()) > 0:
            time.sleep(min(left, NAP_S))

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:  # the watcher leaves if it is another one
            return
        self.requested = True
        if self._ends_input:
            _end_standard_input()
        if self._stop:
            self._stop()
        if self._raises:
            raise KeyboardInterrupt

    def _watch(self, signals: int, seen: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # they shall end a wait of the main thread
        counted: dict[int, float] = {}
        while numbers := os.read(signals, 64):
            for number in {number for number in numbers if number in SIGNALS}:
                now = time.monotonic()
                if now - counted.get(number, -SAME_S) < SAME_S:
                    continue
                is_first = not counted
                counted[number] = now
                if not is_first:
                    self._leave()
                with self._telling:
                    if self._stop:
                        self._stop()
                    if self._ending:
                        self._ending()
                os.write(seen, b"!")

    def _leave(self) -> NoReturn:
        if self._leaving:
            with suppress(Exception):
                self._leaving()
        _restore_terminal(self._terminal)
        os._exit(INTERRUPTED)


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

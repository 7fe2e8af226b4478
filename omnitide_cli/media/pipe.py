"""What can be read only once and only forwards: standard input, named pipes, /dev/fd."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

GLANCE_S = 0.2
"""How long a wait for data may be before it is looked whether anyone still wants them."""

PATIENCE_S = 3.0
"""How long nothing at all may come before it is told what is waited for."""


class PipeReader:
    """Reads what is there instead of waiting for a full buffer, so that a live stream is seen as it comes.

    A signal ends the input: libav calls `read`, and no exception gets through it.
    """

    def __init__(self, file: Any, *, owned: bool, still_waiting: Callable[[], None] | None = None) -> None:
        """`file`: an unbuffered binary file; one that is `owned` is closed with the reader. `still_waiting` is called
        once if nothing has come for PATIENCE_S."""
        self._file = file
        self._owned = owned
        self._ended = False
        self._ahead = b""
        self._still_waiting = still_waiting
        self.bytes_read = 0
        try:
            self._descriptor: int | None = file.fileno()
        except (OSError, ValueError, AttributeError):
            self._descriptor = None

    @classmethod
    def open(cls, path: Path, still_waiting: Callable[[], None] | None = None) -> PipeReader:
        """Open a pipe; for somebody who writes into it, `read` waits. Raises OSError."""
        # open(2) itself would wait for the writer, in silence; elsewhere a pipe without one looks like one at its end.
        descriptor = os.open(path, os.O_RDONLY | (os.O_NONBLOCK if sys.platform == "linux" else 0))
        os.set_blocking(descriptor, True)
        return cls(os.fdopen(descriptor, "rb", buffering=0), owned=True, still_waiting=still_waiting)

    def read(self, count: int) -> bytes:
        """At least one byte and at most `count`; none at the end."""
        if self._ahead:
            data, self._ahead = self._ahead[:count], self._ahead[count:]
            return data
        return self._read(count)

    def peek(self, count: int) -> bytes:
        """The first `count` bytes of what comes, or fewer if there are no more; they are read once more."""
        while len(self._ahead) < count and (data := self._read(count - len(self._ahead))):
            self._ahead += data
        return self._ahead[:count]

    def _read(self, count: int) -> bytes:
        try:
            self._wait()
            data: bytes = b"" if self._ended else self._file.read(count) or b""
        except (KeyboardInterrupt, OSError, ValueError):
            self._ended = True
            return b""
        self.bytes_read += len(data)
        return data

    def _wait(self) -> None:
        since = time.monotonic()
        while not self._ended and not self._has_data():
            if self._still_waiting and not self.bytes_read and time.monotonic() - since > PATIENCE_S:
                tell, self._still_waiting = self._still_waiting, None
                tell()

    def end(self) -> None:
        """Nobody wants more: who waits in `read`, in another thread, gets the end."""
        self._ended = True

    def close(self) -> None:
        """May be called twice."""
        self._ended = True
        if self._owned:
            with suppress(OSError):
                self._file.close()

    def __del__(self) -> None:
        self.close()

    def _has_data(self) -> bool:
        return self._descriptor is None or bool(select.select([self._descriptor], [], [], GLANCE_S)[0])

"""What can be read only once and only forwards: standard input, named pipes, /dev/fd."""

from __future__ import annotations

import os
import select
from contextlib import suppress
from pathlib import Path
from typing import Any

GLANCE_S = 0.2
"""How long a wait for data may be before it is looked whether anyone still wants them."""


class PipeReader:
    """Reads what is there instead of waiting for a full buffer, so that a live stream is seen as it comes.

    A signal ends the input: libav calls `read`, and no exception gets through it.
    """

    def __init__(self, file: Any, *, owned: bool) -> None:
        """`file`: an unbuffered binary file; one that is `owned` is closed with the reader."""
        self._file = file
        self._owned = owned
        self._ended = False
        self.bytes_read = 0
        try:
            self._descriptor: int | None = file.fileno()
        except (OSError, ValueError, AttributeError):
            self._descriptor = None

    @classmethod
    def open(cls, path: Path) -> PipeReader:
        """Open a pipe; waits for somebody who writes. Raises OSError."""
        return cls(os.fdopen(os.open(path, os.O_RDONLY), "rb", buffering=0), owned=True)

    def read(self, count: int) -> bytes:
        """At least one byte and at most `count`; none at the end."""
        try:
            while not self._ended and not self._has_data():
                pass
            data: bytes = b"" if self._ended else self._file.read(count) or b""
        except (KeyboardInterrupt, OSError, ValueError):
            self._ended = True
            return b""
        self.bytes_read += len(data)
        return data

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

"""Writing that a full disk does not end: what can't be written waits, and is tried again with whatever comes next."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TextIO

MOST_WAITING = 16 << 20
"""Bytes that wait at most; what comes after them is lost."""


class PatientFile:
    """The end of an open file, and what shall stand there. Offsets are bytes from the file's beginning."""

    def __init__(self, descriptor: int, at: int = 0, *, seekable: bool = True) -> None:
        """`at`: where the file ends now; a pipe is not `seekable`."""
        self.descriptor = descriptor
        self.reason = ""
        """Why something waits; empty while nothing does."""
        self.end = at
        """Where the file ends once all is written."""
        self.written = at
        self._waiting = bytearray()
        self._seekable = seekable

    @property
    def waiting(self) -> bytes:
        """What is not in the file yet."""
        return bytes(self._waiting)

    def append(self, data: bytes) -> bool:
        """Write behind all that is there, as far as the disk takes it. False: so much waits already that it is lost."""
        if len(self._waiting) + len(data) > MOST_WAITING:
            self.retry()
            if len(self._waiting) + len(data) > MOST_WAITING:
                return False
        self._waiting += data
        self.end += len(data)
        self.retry()
        return True

    def patch(self, at: int, data: bytes) -> None:
        """Other bytes in the place of as many at `at`."""
        split = max(0, min(len(data), self.written - at))
        if split:
            with suppress(OSError):  # it stays as it was, which is no loss
                os.pwrite(self.descriptor, data[:split], at)
        if split < len(data):
            begin = at + split - self.written
            self._waiting[begin : begin + len(data) - split] = data[split:]

    def retry(self) -> None:
        """Write what waits, as far as it goes. A reader who has left raises BrokenPipeError."""
        while self._waiting:
            try:
                done = self._write()
            except BrokenPipeError:
                raise
            except OSError as error:
                self.reason = error.strerror or str(error)
                return
            self.written += done
            del self._waiting[:done]
        self.reason = ""

    def _write(self) -> int:
        if self._seekable:
            return os.pwrite(self.descriptor, self._waiting, self.written)
        return os.write(self.descriptor, self._waiting)


class PatientStream:
    """A text stream of the process in whose place it stands: what a full disk doesn't take, waits.

    `strict` streams raise BrokenPipeError when their reader has left; others are silent about everything.
    """

    def __init__(self, stream: TextIO, *, strict: bool = True) -> None:
        self._stream = stream
        self._strict = strict
        self._file = PatientFile(stream.fileno(), seekable=False)
        self.encoding = stream.encoding or "utf-8"
        self.errors = getattr(stream, "errors", None) or "replace"
        self.lost = 0
        """Writes for which there was no room even to wait."""

    @property
    def reason(self) -> str:
        """Why something waits."""
        return self._file.reason

    @property
    def waiting_lines(self) -> int:
        """Lines that could not be written yet, and those for which there is no room even to wait."""
        return self._file.waiting.count(b"\n") + self.lost

    def write(self, text: str) -> int:
        """As a text stream does, but nothing is kept back."""
        try:
            self._stream.flush()  # what others have put there comes first
            self.lost += not self._file.append(text.encode(self.encoding, self.errors))
        except OSError:
            if self._strict:
                raise
        return len(text)

    def flush(self) -> None:
        """Try again to write what waits."""
        try:
            self._file.retry()
        except OSError:
            if self._strict:
                raise

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

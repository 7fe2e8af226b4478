"""The file of a transcript: one session's at a time, however many were given the same path."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from omnitide_cli.errors import UsageError
from omnitide_cli.paths import is_there


def open_locked(path: Path) -> tuple[int, bool]:
    """The file, locked for this session, and whether it is a regular one. Raises UsageError."""
    try:
        while True:
            is_regular = not is_there(path) or path.is_file()
            flags = os.O_RDWR | os.O_CREAT if is_regular else os.O_WRONLY
            descriptor = os.open(path, flags | os.O_CLOEXEC, 0o666)
            if not is_regular:
                return descriptor, False
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise UsageError(f"--transcript {path}: another session is writing it", "choose another file") from None
            except OSError:
                return descriptor, True  # a file system without locks
            with suppress(OSError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    return descriptor, True
            os.close(descriptor)  # replaced between the two
    except OSError as error:
        raise UsageError(f"--transcript {path}: can't be written: {error.strerror}", "choose another file") from error


def read_all(descriptor: int) -> bytes:
    """All that an open file holds, wherever it stands."""
    size = os.fstat(descriptor).st_size
    parts, at = [], 0
    while at < size and (part := os.pread(descriptor, size - at, at)):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def replace_locked(path: Path, old: int, data: bytes) -> int:
    """Put another file with `data` in the place of the one that is open as `old`, and return its descriptor.

    It is there at once, so that a kill leaves one of them whole. Raises OSError, and then leaves the old one as it was.
    """
    path = path.resolve()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.fchmod(descriptor, stat.S_IMODE(os.fstat(old).st_mode))
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        os.close(descriptor)
        with suppress(OSError):
            Path(name).unlink()
        raise
    os.close(old)
    return descriptor

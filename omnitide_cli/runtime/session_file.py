"""Session files (`.tide`): written so that there is always a whole one, read as if an enemy had made them.

    magic, format, bytes of the header, bytes of the state    24 bytes, little-endian
    header                                                    JSON, see saved.py
    state                                                     ledger and cached rows, as the native session writes them
    sections: a tag of 4 bytes, bytes of it, then these       as many as there are; format 1 has none
    SHA-256 of all before                                     32 bytes

A section that a reader doesn't know is passed over: nothing in it may be needed to go on with the session.

The checksum tells damage from what is whole; it protects from nobody. That no byte can crash anything is the readers'.
Anyone may write a session, so one that holds what a camera saw is readable by its owner alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import RuntimeFailure, SessionFileError, UsageError
from omnitide_cli.paths import is_file, is_folder, is_there
from omnitide_cli.runtime.saved import Saved, read_saved

MAGIC = b"TIDE\r\n\x1a\n"  # as PNG's: a transfer that changes line ends is found out
FORMAT = 2  # also to be raised when llama.cpp changes what rows of keys and values mean
READ = (1, FORMAT)
PREFIX = struct.Struct("<8sIIQ")
SECTION = struct.Struct("<4sQ")
JOURNAL = b"JRNL"
ARCHIVE = b"RCLL"
CHANGE = b"CHNG"
DIGEST_BYTES = 32
LARGEST_HEADER = 1 << 24


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session at rest: what it was, its native state, and what more there is of it, by tags of four bytes."""

    saved: Saved
    state: NDArray[np.uint8]
    sections: Mapping[bytes, bytes | memoryview] = field(default_factory=dict)


def check_writable(path: Path, flag: str, begins: bytes = MAGIC) -> None:
    """Raise UsageError when a session could not be written there, or when something else lies there: a file is only
    ever replaced by one of its own kind, which begins the same."""
    folder = path.resolve().parent
    if not (is_folder(folder) or is_there(folder)):
        raise UsageError(f"{flag} {path}: there is no folder {folder}", "create it, or choose another place")
    if is_folder(path) or not os.access(folder, os.W_OK):
        raise UsageError(f"{flag} {path}: it can't be written there", "choose another place")
    if is_file(path) and _beginning(path, len(begins)) not in (b"", begins):
        raise UsageError(f"{flag} {path}: a file of another kind is there", "choose another name, or delete that file")


def _beginning(path: Path, length: int) -> bytes:
    """The first bytes of a file; nothing of one that can't be read, since that is no reason not to replace it."""
    try:
        with path.open("rb") as file:
            return file.read(length)
    except OSError:
        return b""


def write_session(path: Path, session: SessionFile) -> None:
    """Write the file so that a crash leaves the old or the new one, never a part. Raises RuntimeFailure."""
    header = json.dumps(session.saved.to_json(), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    parts: list[Any] = [PREFIX.pack(MAGIC, FORMAT, len(header), session.state.size), header, session.state.data]
    for tag, section in session.sections.items():
        parts += [SECTION.pack(tag, len(section)), section]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    try:
        replace_file(path.resolve(), [*parts, digest.digest()])
    except OSError as error:
        message = f"{path} can't be written: {error.strerror or error}"
        raise RuntimeFailure(message, "make room, or choose another place") from error


def replace_file(path: Path, parts: list[Any]) -> None:
    """Write bytes to a file, for its owner alone: a crash leaves the old or the new one whole. Raises OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)  # 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # so that the new name survives a power cut, too
    finally:
        os.close(folder)


def read_session(path: Path) -> SessionFile:
    """Raises SessionFileError for a file that is missing, foreign, damaged or of another format."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            return _read(file, path)
    except FileNotFoundError as error:
        message = f"{path} does not exist"
        raise SessionFileError(message, "check the path") from error
    except OSError as error:
        message = f"{path} can't be read: {error.strerror or error}"
        raise SessionFileError(message, "check the path and its permissions") from error
    except MemoryError as error:
        raise SessionFileError(f"{path} is larger than memory", "use it on a machine with more memory") from error


def read_header(path: Path) -> Saved:
    """What a session was, without its state and without looking for damage in it. Raises SessionFileError."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            _, header_bytes, *_ = _read_prefix(file, path)
            return _saved(file.read(header_bytes), path)
    except OSError as error:
        message = f"{path} can't be read: {error.strerror or error}"
        raise SessionFileError(message, "check the path and its permissions") from error


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)  # a pipe that nobody writes to


def _read(file: BinaryIO, path: Path) -> SessionFile:
    prefix, header_bytes, state_bytes, section_bytes = _read_prefix(file, path)
    body = file.read(header_bytes + state_bytes + section_bytes)
    digest = hashlib.sha256(prefix)
    digest.update(body)
    if digest.digest() != file.read(DIGEST_BYTES):
        damaged(path, "its checksum is wrong")
    state = np.frombuffer(body, dtype=np.uint8, offset=header_bytes, count=state_bytes)
    return SessionFile(_saved(body[:header_bytes], path), state, _sections(body, header_bytes + state_bytes, path))


def _sections(body: bytes, at: int, path: Path) -> dict[bytes, memoryview]:
    found: dict[bytes, memoryview] = {}
    while at < len(body):
        if at + SECTION.size > len(body):
            damaged(path, "a section of it ends too early")
        tag, size = SECTION.unpack_from(body, at)
        at += SECTION.size
        if at + size > len(body) or tag in found:
            damaged(path, "a section of it ends too early" if tag not in found else "it has a section twice")
        found[tag] = memoryview(body)[at : at + size]  # an archive is too large for a second copy
        at += size
    return found


def _read_prefix(file: BinaryIO, path: Path) -> tuple[bytes, int, int, int]:
    """The first bytes, and how many the header, the state and the sections have."""
    status = os.fstat(file.fileno())
    prefix = file.read(PREFIX.size) if stat.S_ISREG(status.st_mode) else b""
    if prefix[: len(MAGIC)] != MAGIC:
        hint = "give a file written by --save-session, /save or a checkpoint"
        raise SessionFileError(f"{path} is not an OmniTide session", hint)
    if len(prefix) < PREFIX.size:
        damaged(path, "it ends too early")
    _, number, header_bytes, state_bytes = PREFIX.unpack(prefix)
    if number not in READ:
        message = f"{path} has format {number}; this version of OmniTide reads formats up to {FORMAT}"
        raise SessionFileError(message, "resume it with the version that saved it")
    section_bytes = status.st_size - (PREFIX.size + header_bytes + state_bytes + DIGEST_BYTES)
    if section_bytes < 0 or (section_bytes > 0 and number == 1) or header_bytes > LARGEST_HEADER:
        damaged(path, "its size differs from what its header says")
    return prefix, header_bytes, state_bytes, section_bytes


def _saved(header: bytes, path: Path) -> Saved:
    try:
        return read_saved(json.loads(header))
    except SessionFileError as error:
        damaged(path, error.message)
    except (ValueError, RecursionError):
        damaged(path, "its header is not JSON")


def damaged(path: Path, what: str) -> NoReturn:
    """Raise the SessionFileError for a file that can't be used."""
    raise SessionFileError(f"{path} is damaged: {what}", "use another copy")

"""The sessions that this machine has saved: checkpoints of its own accord, files where the user wanted them.

A session that writes checkpoints holds a lock as long as it lives, and takes it away when it ends in order. So a
checkpoint whose lock nobody holds is that of a killed session: its only trace, which nothing but its end removes.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from omnitide_cli.addresses import short_name
from omnitide_cli.catalog.folders import state_dir
from omnitide_cli.errors import OmniTideError, SessionFileError
from omnitide_cli.runtime.published import is_locked, lock
from omnitide_cli.runtime.saved import SavedMedia
from omnitide_cli.runtime.session_file import read_header

KEPT = 4  # checkpoints of sessions that ended in order, and said so
REMEMBERED = 50
SUFFIX = ".tide"
LAST = "last"

Fate = Literal["running", "killed", "ended"]
Matches = Callable[[SavedMedia], bool]


@dataclass(frozen=True, slots=True)
class Save:
    """A saved session: where it is, what it watched, and when it was written (Unix time)."""

    path: Path
    media: SavedMedia
    written: float


def checkpoint_folder() -> Path:
    """Where sessions leave checkpoints."""
    return state_dir() / "checkpoints"


def checkpoint_path(source: str) -> Path:
    """Where a session without a file of its own leaves checkpoints; its name tells source and time."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return checkpoint_folder() / f"{short_name(source)}-{stamp}-{os.getpid()}{SUFFIX}"


def is_checkpoint(path: Path) -> bool:
    """Whether a file lies where sessions leave checkpoints."""
    return path.resolve().parent == checkpoint_folder().resolve()


class Claim:
    """A session's hold on its checkpoint while it lives."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, also when another session has it."""
        self._file = _lock_of(path)
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = lock(self._file)
        if self._lock is None:
            raise BlockingIOError(0, "another session has it", str(path))

    def release(self) -> None:
        """The session has ended in order; harmless when called twice."""
        if self._lock is not None:
            with suppress(OSError):
                self._file.unlink()
            os.close(self._lock)
        self._lock = None


def fate(checkpoint: Path) -> Fate:
    """What has become of the session that wrote a checkpoint."""
    file = _lock_of(checkpoint)
    if not file.exists():
        return "ended"
    return "running" if is_locked(file) else "killed"


def forget(checkpoint: Path) -> None:
    """Remove a checkpoint that is of no more use."""
    for file in (checkpoint, _lock_of(checkpoint)):
        with suppress(OSError):
            file.unlink()


def make_room(folder: Path) -> None:
    """Make the folder of checkpoints, for its owner alone; of those of ended sessions, the newest stay."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):  # another session may do the same
        ended = [path for path in folder.glob(f"*{SUFFIX}") if fate(path) == "ended"]
        for _, path in sorted((path.stat().st_mtime, path) for path in ended)[: -(KEPT - 1)]:
            path.unlink()


def remember(path: Path) -> None:
    """Note that a session was saved where the user wanted it, for `--resume last`."""
    known = [each for each in _remembered() if each != path.resolve()]
    file = _list()
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = file.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps([str(each) for each in [*known, path.resolve()][-REMEMBERED:]]), encoding="utf-8")
        fresh.replace(file)


def newest(matches: Matches | None) -> Path:
    """The newest saved session that doesn't run, of one source if `matches` says which. Raises SessionFileError."""
    for save in _saves(lambda path: fate(path) != "running", matches):
        return save.path
    of = " of this source" if matches and any(_saves(lambda path: True, None)) else ""
    raise SessionFileError(
        f"--resume {LAST}: there is no saved session{of}", "name a file that --save-session or /save has written"
    )


def newest_to_read() -> Path:
    """The newest saved session, be it that of one that runs: it is read and left as it is. Raises SessionFileError."""
    for save in _saves(lambda path: True, None):
        return save.path
    raise SessionFileError(
        "there is no saved session", "name a file that --save-session, /save or a checkpoint has written"
    )


def killed(matches: Matches) -> Save | None:
    """The newest checkpoint that a killed session of a source has left."""
    return next((save for save in _saves(lambda path: fate(path) == "killed", matches, named=False)), None)


def _saves(wanted: Callable[[Path], bool], matches: Matches | None, *, named: bool = True) -> Iterator[Save]:
    """The newest first; what can't be read is passed over."""
    paths = [path for path in _checkpoints() if wanted(path)] + (_remembered() if named else [])
    dated = []
    for path in paths:
        with suppress(OSError):
            dated.append((path.stat().st_mtime, path))
    for written, path in sorted(dated, reverse=True):
        with suppress(OmniTideError):
            media = read_header(path).media
            if matches is None or matches(media):
                yield Save(path, media, written)


def _checkpoints() -> list[Path]:
    with suppress(OSError):
        return list(checkpoint_folder().glob(f"*{SUFFIX}"))
    return []


def _remembered() -> list[Path]:
    try:
        known = json.loads(_list().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [Path(each) for each in known if isinstance(each, str)] if isinstance(known, list) else []


def _list() -> Path:
    return state_dir() / "saved.json"


def _lock_of(checkpoint: Path) -> Path:
    return state_dir() / "locks" / f"{checkpoint.name}.lock"

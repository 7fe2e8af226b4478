"""The folder in which sessions publish their snapshots: who runs, who ended, what is old.

A session holds a lock on `NAME.lock` as long as it lives, so that a killed one is known to be over whoever has its
process number now. Nothing listens on a network: whoever can read the folder (0700) can look.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from omnitide_cli.errors import SessionFileError
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.runtime.snapshot_file import read_snapshot

KEPT = 20
SHOWN = 8
KEPT_S = 7 * 24 * 3600.0
LEFTOVER_S = 3600.0


def open_folder(folder: Path) -> None:
    """Make it, for this user alone. Raises OSError, also when it belongs to somebody else."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = folder.lstat()
    trusted = folder.parent.stat().st_uid in (0, os.getuid())  # who owns the parent could put another in its place
    if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.getuid() or not trusted:
        raise PermissionError(0, "it isn't a folder that belongs to this user", str(folder))
    if stat.S_IMODE(known.st_mode) != 0o700:
        folder.chmod(0o700)


def sessions(folder: Path) -> tuple[list[SessionSnapshot], int]:
    """All that can be read, running ones first and then the newest first; and how many files are damaged."""
    found, damaged = [], 0
    for path in _snapshots(folder):
        try:
            found.append(read_session(path))
        except SessionFileError:
            damaged += path.exists()  # pruned meanwhile is not damaged
    found.sort(
        key=lambda each: (each.state.running, each.started if each.state.running else each.written), reverse=True
    )
    return found, damaged


def choose(folder: Path, wanted: str | None) -> tuple[SessionSnapshot, str]:
    """The session that is meant, and a remark about others. `wanted`: a name, its beginning, or a process number;
    None is the newest that runs, else the one that ended last. Raises SessionFileError when there is none.
    """
    found, damaged = sessions(folder)
    unread = f"damaged snapshot files in {folder} were skipped: {damaged}" if damaged else ""
    if not found:
        raise SessionFileError(
            "there is no session to inspect" + (f" ({unread})" if unread else ""),
            "start one in another terminal, for example omnitide watch FILE --pace realtime;"
            " or simulate one: omnitide inspect-kv --simulate 60 --image 256 --audio 25",
        )
    names = [each.state.session for each in found]
    if wanted is None:
        meant = found[:1]
    else:
        meant = [each for each in found if wanted in (each.state.session, str(each.pid))][:1]
        meant = meant or [each for each in found if each.state.session.startswith(wanted)]
    if len(meant) != 1:
        several = [each.state.session for each in meant]
        what = (
            f"the names of {len(several)} sessions begin with '{wanted}'"
            if several
            else f"no session is called '{wanted}'"
        )
        raise SessionFileError(what, f"choose from {', '.join((several or names)[:SHOWN])}")
    others = [each.state.session for each in found if each.state.running and each is not meant[0]]
    running = f"Also running: {', '.join(others[:SHOWN])}." if others else ""
    return meant[0], " ".join(part for part in (running, f"{unread}." if unread else "") if part)


def read_session(path: Path) -> SessionSnapshot:
    """One session, with whether it runs. Raises SessionFileError."""
    snapshot = read_snapshot(path)
    running = not snapshot.ended and is_locked(path.with_suffix(".lock"))
    if not running and not snapshot.ended:
        snapshot = read_snapshot(path)  # it may have taken leave between the two looks
    return replace(snapshot, state=replace(snapshot.state, session=path.stem, running=running))


def is_locked(path: Path) -> bool:
    """Whether a living process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def lock(path: Path, wait_s: float = 0.2) -> int | None:
    """The descriptor that holds the lock until it is closed; None if somebody else has it. Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError:
            if time.monotonic() > until:  # a reader holds it for a moment only
                os.close(descriptor)
                return None
            time.sleep(0.01)


def prune(folder: Path) -> None:
    """Remove what ended long ago, all but the newest of what ended, and what killed sessions left behind."""
    now = time.time()
    ended = sorted(
        ((_age(path, now), path) for path in _snapshots(folder) if not is_locked(path.with_suffix(".lock"))),
    )
    for rank, (age, path) in enumerate(ended):
        if rank >= KEPT or age > KEPT_S:
            _remove(path)
    for pattern in ("*.new", "*.lock"):
        for path in folder.glob(pattern):
            if _age(path, now) > LEFTOVER_S and not is_locked(path.with_suffix(".lock")):
                _remove(path)


def _snapshots(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.glob("*.json"))
    return []


def _age(path: Path, now: float) -> float:
    with suppress(OSError):
        return now - path.lstat().st_mtime
    return 0.0


def _remove(path: Path) -> None:
    with suppress(OSError):  # a folder, or gone already
        path.unlink()

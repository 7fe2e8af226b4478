"""What lies at a path, also where the system doesn't tell: in folders that are closed to this user."""

from __future__ import annotations

from pathlib import Path


def is_file(path: Path) -> bool:
    """Whether it is a regular file, as far as this user may know."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether it is a folder, as far as this user may know."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_there(path: Path) -> bool:
    """Whether something may be there: what can't be looked at isn't missing, and opening it says why."""
    try:
        path.stat()
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True

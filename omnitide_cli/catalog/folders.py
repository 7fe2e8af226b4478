"""Where OmniTide keeps things on this machine.

`OMNITIDE_HOME` moves all of it into one folder, so that tests (and people who want so) leave nothing anywhere else.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from pathlib import Path

from omnitide_cli.errors import UsageError


def config_dir() -> Path:
    """The user's `omnitide.toml` lies here."""
    return _folder("config")


def cache_dir() -> Path:
    """What can be made or fetched again."""
    return _folder("cache")


def runtime_dir() -> Path:
    """Running sessions publish here what `inspect-kv` shows; for the user's eyes alone."""
    return _folder("runtime")


def costs_file() -> Path:
    """What `omnitide bench calibrate` found out about this machine."""
    return cache_dir() / "costs.json"


def state_dir() -> Path:
    """What a session leaves behind."""
    return _folder("state")


def hub_dir() -> Path | None:
    """Downloaded weights; None is Hugging Face's own folder, so that what other tools have fetched is found."""
    elsewhere = not _has_home() and not {"HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"} & os.environ.keys()
    return cache_dir() / "hub" if elsewhere or os.environ.get("OMNITIDE_HOME") else None


def expanded(path: str | Path) -> Path:
    """With a ~ at its beginning replaced. Raises UsageError where nobody knows by what."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{path}: no home folder is known for it", "write the whole path, or set HOME") from error


def _has_home() -> bool:
    """Whether this user has a home; in containers the user number may be unknown and HOME unset."""
    return os.path.expanduser("~") != "~"  # noqa: PTH111 - Path raises an error instead


def _in_temporary_folder() -> Path:
    """For users without a home: what is kept here lasts as long as the machine runs. Raises UsageError."""
    folder = Path(tempfile.gettempdir()) / f"omnitide-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        known = folder.lstat()
    except OSError as error:
        message = f"this user has no home folder, and {folder} can't be made: {error.strerror}"
        raise UsageError(message, "set OMNITIDE_HOME to a folder") from error
    if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.getuid():  # anyone may put one there
        raise UsageError(f"this user has no home folder, and {folder} is not its own", "set OMNITIDE_HOME to a folder")
    return folder


def _folder(kind: str) -> Path:
    home = os.environ.get("OMNITIDE_HOME")
    if home:
        return expanded(home) / kind
    if not _has_home():
        return _in_temporary_folder() / kind
    import platformdirs

    folders = {
        "config": platformdirs.user_config_path,
        "cache": platformdirs.user_cache_path,
        "runtime": platformdirs.user_runtime_path,
        "state": platformdirs.user_state_path,
    }
    with warnings.catch_warnings(action="ignore"):  # that a machine without logins has no runtime folder of its own
        return folders[kind]("omnitide", appauthor=False)

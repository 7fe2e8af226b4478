"""Where OmniTide keeps things on this machine.

`OMNITIDE_HOME` moves all of it into one folder, so that tests (and people who want so) leave nothing anywhere else.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path


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
    return cache_dir() / "hub" if os.environ.get("OMNITIDE_HOME") else None


def _folder(kind: str) -> Path:
    home = os.environ.get("OMNITIDE_HOME")
    if home:
        return Path(home).expanduser() / kind
    import platformdirs

    folders = {
        "config": platformdirs.user_config_path,
        "cache": platformdirs.user_cache_path,
        "runtime": platformdirs.user_runtime_path,
        "state": platformdirs.user_state_path,
    }
    with warnings.catch_warnings(action="ignore"):  # that a machine without logins has no runtime folder of its own
        return folders[kind]("omnitide", appauthor=False)

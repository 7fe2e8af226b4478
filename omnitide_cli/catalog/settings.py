"""Defaults from files: `omnitide.toml` in the folder, over the user's own in the config folder.

Keys are the flags without their dashes in front: `high-watermark = 2000`. Typer itself puts flags and OMNITIDE_*
variables above them; what no one has set comes from the model's manifest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from omnitide_cli.catalog.folders import config_dir
from omnitide_cli.catalog.values import did_you_mean, explained
from omnitide_cli.errors import UsageError

FILE_NAME = "omnitide.toml"
QUESTIONS = "Questions"
"""The panel of help of the options that ask something."""


ALERTS = "Alerts"
"""And of those that watch for something."""


def default_map(context: typer.Context) -> dict[str, Any]:
    """The defaults of every command of the group that `context` belongs to. Raises UsageError naming file and key."""
    merged: dict[str, Any] = {}
    files = settings_files()
    if not files:
        return merged
    places = list(_places(context.command, merged))
    known = {key for key, _, _ in places}
    for path in files:
        for key, value in _read(path).items():
            if key not in known:
                hint = did_you_mean(key, known) or "keys are the flags of omnitide watch without the leading --"
                raise UsageError(f"{path}: unknown key '{key}'", hint)
            for name, option, defaults in places:
                if name == key:
                    defaults[option.name] = _checked(context, option, value, path, key)
    return merged


def _places(group: Any, merged: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Every setting of every command: its key, its option, and the command's table within `merged`, made on the way."""
    assert isinstance(group, TyperGroup)
    for name in group.commands:
        command = loaded(group, name)
        defaults = merged.setdefault(name, {})
        if isinstance(command, TyperGroup):
            yield from _places(command, defaults)
            continue
        for option in command.params:
            if is_setting(option):
                yield from ((flag[2:], option, defaults) for flag in option.opts if flag.startswith("--"))


def loaded(group: Any, name: str) -> Any:
    """A command of a group, imported if it wasn't yet."""
    load = getattr(group, "loaded", None)
    return load(name) if load else group.commands[name]


def settings_files() -> list[Path]:
    """The files that exist, the weakest first."""
    return [path for path in (config_dir() / FILE_NAME, Path(FILE_NAME)) if path.is_file()]


def is_setting(parameter: Any) -> bool:
    """Whether files may set it: what has a variable, and questions. Everything else describes one run."""
    return bool(parameter.envvar) or getattr(parameter, "rich_help_panel", None) in (QUESTIONS, ALERTS)


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # most have no such file, and wait for help alone

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: can't be read: {error}", "correct the file or remove it") from error


def _checked(context: typer.Context, option: Any, value: Any, path: Path, key: str) -> Any:
    """The value as the flag would have parsed it, so that a wrong one is reported with its file."""
    if option.multiple and not isinstance(value, list):
        value = [value]
    try:
        if isinstance(value, dict) or (isinstance(value, list) and not option.multiple):
            raise ValueError("it takes a single value, not a list")
        option.process_value(context, value)
    except typer.BadParameter as error:
        reason, meant = explained(error)
        raise UsageError(f"{path}: {key} = {value!r}: {reason}", meant or "correct the file") from error
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {key}: {error}", "correct the file") from error
    return value

"""The commands of `omnitide`, each loaded: groups import theirs when they are used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from omnitide_cli.app import app

ROOT_COMMAND: Any = typer.main.get_command(app)


def below(command: Any) -> dict[str, Any]:
    """The commands of a group by name; none of a command."""
    load = getattr(command, "loaded", None)
    return {name: load(name) if load else inner for name, inner in getattr(command, "commands", {}).items()}


def commands(command: Any = ROOT_COMMAND, path: str = "omnitide") -> Iterator[tuple[str, Any]]:
    """A command and all below it, each with how it is called."""
    yield path, command
    for name, inner in below(command).items():
        yield from commands(inner, f"{path} {name}")

"""OMNITIDE_* variables of the environment: which are settings of a command, and which nobody knows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from typer.core import TyperGroup

from omnitide_cli.catalog.settings import loaded
from omnitide_cli.catalog.values import nearest

PREFIX = "OMNITIDE_"
OTHERS = frozenset({"OMNITIDE_HOME", "OMNITIDE_RELOCATION"})
"""Known ones that are no option: where everything lies, and a switch for those who look for faults."""


def given() -> dict[str, str]:
    """All that are set, by name."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(PREFIX)}


def unknown(group: Any) -> dict[str, str]:
    """Those that are set and mean nothing to any command of a group, each with a hint."""
    unsure = given().keys() - OTHERS
    if not unsure:
        return {}
    known = {name.removeprefix(PREFIX): name for name in (*_variables(group), *OTHERS)}
    wrong = sorted(unsure - set(known.values()))
    near = {name: [known[each] for each in nearest(name.removeprefix(PREFIX), known)] for name in wrong}
    return {name: f"did you mean {' or '.join(meant)}?" if meant else "it is ignored" for name, meant in near.items()}


def shown(value: str) -> str:
    """A value as it may be printed: addresses may hold passwords."""
    scheme, mark, _ = value.partition("://")
    return f"{scheme}://…" if mark else value


def _variables(group: Any) -> Iterator[str]:
    for name in group.commands:
        command = loaded(group, name)
        if isinstance(command, TyperGroup):
            yield from _variables(command)
        yield from (option.envvar for option in command.params if isinstance(option.envvar, str))

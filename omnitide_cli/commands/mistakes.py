"""A command line that can't be, in our words: which flag or variable, what is wrong with it, what was meant."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import typer


def explained(error: typer.TyperException) -> tuple[str, str]:
    """Message and hint; both are empty where Typer has printed help instead."""
    if isinstance(error, typer.BadParameter) and getattr(error, "param", None) is not None and error.message:
        return _bad_value(error)
    message = error.format_message()
    return (message, _elsewhere(error) or _where_to_look(error)) if message else ("", "")


def _bad_value(error: typer.BadParameter) -> tuple[str, str]:
    from omnitide_cli.catalog import values

    parameter: Any = error.param
    reason, meant = values.explained(error)
    name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.human_readable_name
    value, variable = values.wrong_value(error), _variable(error)
    where = f"{variable}={value}" if variable else f"{name} {value}".strip()
    return f"{where}: {reason}", meant or _where_to_look(error)


def _variable(error: typer.BadParameter) -> str:
    """The variable that the value comes from, or ""."""
    context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
    if context is None or parameter is None:
        return ""
    source = context.get_parameter_source(parameter.name)
    variable = parameter.envvar
    name = variable if isinstance(variable, str) else ""
    return name if source is not None and source.name == "ENVIRONMENT" and name in os.environ else ""


def _elsewhere(error: typer.TyperException) -> str:
    """Where an option that stands before the command belongs behind one, its name."""
    context, option = getattr(error, "ctx", None), getattr(error, "option_name", "")
    if not option or context is None or context.parent is not None:
        return ""
    group = context.command
    loaded = getattr(group, "loaded", None)
    if loaded is None:
        return ""
    names = [name for name in group.commands if option in _flags(loaded(name))]
    if not names:
        return ""
    return f"put it after the command: omnitide {names[0]} … {option}"


def _flags(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from parameter.opts


def _where_to_look(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path} --help" if context else "see omnitide --help"

"""Commands that are imported when they are used, so that `--help` needs none of them; and the flags that all have."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from omnitide_cli.session.global_options import GlobalOptions

PANEL = "Everywhere"


class Entry(NamedTuple):
    """Where a command or a group is, and its line in the help of the group that it belongs to."""

    place: str
    """`module:function`, or `module:app` of a Typer app."""
    help: str = ""
    """Of a group; a function's docstring is read from its file."""


class TracedCommand(TyperCommand):
    """A command whose parser's errors say which command they are of, so that its help can be named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if getattr(error, "ctx", self) is None:  # the parser doesn't tell where a value is missing
                error.ctx = ctx  # pyright: ignore[reportAttributeAccessIssue]
            raise


class Command(TracedCommand):
    """A command that says first which variables nobody knows."""

    def invoke(self, ctx: Any) -> Any:
        state = ctx.ensure_object(GlobalOptions)
        if not state.quiet and self.name != "doctor":  # which tells it in its own way
            from omnitide_cli.catalog.variables import unknown
            from omnitide_cli.formats.words import with_hint

            for name, hint in unknown(ctx.find_root().command).items():
                print(f"omnitide: warning: {with_hint(f'the variable {name} is not a setting', hint)}", file=sys.stderr)
        return super().invoke(ctx)


class LazyGroup(TyperGroup):
    """A group whose commands are known by name and help alone until one is used; see `lazily`."""

    entries: Mapping[str, Entry] = {}

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, entry in self.entries.items():
            self.commands[name] = TyperCommand(name, help=entry.help)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and not command.help:
            command.help = _docstring(self.entries[cmd_name])
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.loaded(name) if name else command, rest

    def loaded(self, name: str) -> Any:
        """The command itself."""
        command = self.commands[name]
        if command.callback is None and name in self.entries:
            command = self.commands[name] = _load(name, self.entries[name])
        return command


def lazily(entries: Mapping[str, Entry]) -> type[LazyGroup]:
    """The class (`cls`) of a Typer app that has these commands."""
    return type("LazyGroup", (LazyGroup,), {"entries": entries})


def _load(name: str, entry: Entry) -> Any:
    module_name, _, attribute = entry.place.partition(":")
    module = import_module(module_name)
    found = getattr(module, attribute)
    command: Any = (
        get_group(found) if isinstance(found, typer.Typer) else _command(found, getattr(module, "EPILOG", ""))
    )
    command.name = name
    command.help = entry.help or command.help
    add_global_flags(command)
    for each in getattr(command, "commands", {}).values():
        if each.callback is not None:  # else it is one that is loaded later
            add_global_flags(each)
    return command


def _docstring(entry: Entry) -> str:
    """Of the function, without importing its module."""
    module, _, name = entry.place.partition(":")
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    tree = ast.parse(Path(spec.origin).read_bytes())
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return next((ast.get_docstring(node) or "" for node in found), "")


def _command(function: Callable[..., Any], epilog: str) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.command(cls=Command, epilog=epilog or None)(function)
    return get_command(app)


def add_global_flags(command: Any) -> None:
    """Let a command take the flags that may stand before it, too; those that it has itself mean what it says."""
    taken = {flag for parameter in command.params for flag in parameter.opts}
    command.params += [each for each in _command(_global_flags, "").params if not taken & set(each.opts)]


def _heed(context: typer.Context, parameter: typer.CallbackParam, value: bool) -> None:
    if value:
        setattr(context.ensure_object(GlobalOptions), str(parameter.name), True)


def _flag(*names: str, text: str) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=PANEL, callback=_heed, expose_value=False, is_eager=True)


def _global_flags(
    quiet: Annotated[bool, _flag("--quiet", "-q", text="Print answers, results and errors only.")] = False,
    verbose: Annotated[bool, _flag("--verbose", "-v", text="Print a line for every unit and every eviction.")] = False,
    debug: Annotated[bool, _flag("--debug", text="Show a traceback when something fails.")] = False,
) -> None: ...

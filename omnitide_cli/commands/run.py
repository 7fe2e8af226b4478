"""The one place where an error becomes a line on standard error and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import typer

from omnitide_cli.errors import OmniTideError

INTERRUPTED = 130


@dataclass(slots=True)
class Globals:
    """The options before the command; every command finds them as `context.obj`."""

    quiet: bool = False
    verbose: bool = False
    debug: bool = False


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; nothing is raised."""
    _replace_what_cannot_be_encoded(sys.stdout)
    state = Globals()
    try:
        code = _invoke(app, arguments, state)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _end_quietly()
    except KeyboardInterrupt:
        return INTERRUPTED
    except typer.Abort:
        return INTERRUPTED
    except OmniTideError as error:
        return _report(error, error.message, error.hint, error.exit_code, state)
    except typer.TyperException as error:
        return _report(error, error.format_message(), _where_to_look(error), error.exit_code, state)
    except Exception as error:  # a bug of ours: still one line, and a way to report it
        message = f"internal error: {type(error).__name__}: {error}"
        return _report(error, message, "please report it with the output of --debug", 1, state)


def _invoke(app: typer.Typer, arguments: Sequence[str], state: Globals) -> int:
    try:
        code = app(list(arguments), prog_name="omnitide", standalone_mode=False, obj=state)
    except SystemExit as leaving:
        # Typer turns a closed pipe into exit 1 before we see it.
        if isinstance(leaving.__context__, BrokenPipeError):
            raise BrokenPipeError from leaving
        code = leaving.code
    return code if isinstance(code, int) else 0


def _report(error: BaseException, message: str, hint: str, code: int, state: Globals) -> int:
    if state.debug:
        traceback.print_exception(error)
    from omnitide_cli.display.words import with_hint

    try:
        print(f"omnitide: {with_hint(message, hint)}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        return _end_quietly()
    return code


def _where_to_look(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"see {context.command_path} --help" if context else "see omnitide --help"


def _end_quietly() -> int:
    """The reader has left: what is still buffered must not complain when the interpreter closes its streams."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(null, stream.fileno())
    os.close(null)
    return 0


def _replace_what_cannot_be_encoded(stream: TextIO) -> None:
    """An answer in Chinese on an ASCII terminal is shown with replacements, not lost to an exception."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="replace")

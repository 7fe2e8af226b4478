"""The one place where an error becomes a line on standard error and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

import typer

from omnitide_cli.addresses import display_name, redact
from omnitide_cli.commands.mistakes import explained
from omnitide_cli.errors import INTERRUPTED, OmniTideError
from omnitide_cli.session.global_options import GlobalOptions


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code; nothing is raised."""
    _prepare_streams()
    state = GlobalOptions()
    for argument in arguments:
        display_name(argument.partition("=")[2] if argument.startswith("--") else argument)  # for what `redact` knows
    try:
        code = _invoke(app, arguments, state)
        sys.stdout.flush()
    except BrokenPipeError:
        code = 0  # the reader has had enough
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except OmniTideError as error:
        code = _report(error, error.message, error.hint, error.exit_code, state)
    except typer.TyperException as error:
        message, hint = explained(error)
        code = _report(error, message, hint, error.exit_code, state)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        code = _report(error, f"{where}{error.strerror or error}", "", 1, state)
    except ImportError as error:
        hint = "see omnitide doctor, or run: pip install --force-reinstall omnitide"
        code = _report(error, f"a library can't be loaded: {error}", hint, 1, state)
    except Exception as error:  # a bug of ours: still one line, and a way to report it
        message = f"internal error: {type(error).__name__}: {error}"
        code = _report(error, message, "please report it with the output of --debug", 1, state)
    _give_up_unwritten()
    return code


def _invoke(app: typer.Typer, arguments: Sequence[str], state: GlobalOptions) -> int:
    try:
        code = app(list(arguments), prog_name="omnitide", standalone_mode=False, obj=state)
    except SystemExit as leaving:
        # Typer turns a closed pipe into exit 1 before we see it.
        if isinstance(leaving.__context__, BrokenPipeError):
            raise BrokenPipeError from leaving
        code = leaving.code
    return code if isinstance(code, int) else 0


def _report(error: BaseException, message: str, hint: str, code: int, state: GlobalOptions) -> int:
    from omnitide_cli.formats.words import with_hint

    with suppress(OSError):
        if state.debug:
            print(redact("".join(traceback.format_exception(error))), file=sys.stderr, end="")
        if not message and not hint:  # help was printed instead
            return code
        print(f"omnitide: {with_hint(redact(message), redact(hint))}", file=sys.stderr, flush=True)
    return code


def _prepare_streams() -> None:
    """A stream that the caller has closed swallows what is written; what can't be encoded is replaced, not fatal."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(errors="replace")


def _give_up_unwritten() -> None:
    """What can't be written must not make the interpreter complain when it closes its streams."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)

"""The command `omnitide`: wires the commands together, nothing else.

Nothing heavy is imported here: `--help` and shell completion answer as fast as Typer lets them.
"""

from __future__ import annotations

import signal
import sys
from typing import Annotated, NoReturn

import typer

from omnitide_cli import __version__
from omnitide_cli.commands.lazy import Entry, lazily
from omnitide_cli.commands.run import run
from omnitide_cli.errors import INTERRUPTED
from omnitide_cli.session.global_options import GlobalOptions

COMMANDS = {
    "watch": Entry("omnitide_cli.commands.watch:watch"),
    "live": Entry("omnitide_cli.commands.live:live"),
    "ask": Entry("omnitide_cli.commands.ask:ask"),
    "find": Entry("omnitide_cli.commands.find:find"),
    "timeline": Entry("omnitide_cli.commands.timeline:timeline"),
    "inspect-kv": Entry("omnitide_cli.commands.inspect_kv:inspect_kv"),
    "models": Entry("omnitide_cli.commands.models:app", "List, download and remove models."),
    "doctor": Entry("omnitide_cli.commands.doctor:doctor"),
    "bench": Entry("omnitide_cli.bench.app:app", "Measure speed, memory, stability and answers on this machine."),
}

app = typer.Typer(
    name="omnitide",
    cls=lazily(COMMANDS),
    help="Ask questions about live or recorded video and sound, for hours, on your own machine.",
    epilog="Defaults come from OMNITIDE_* variables, ./omnitide.toml, your own omnitide.toml and the model's manifest.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if not wanted:
        return
    typer.echo(f"omnitide {__version__}")
    try:
        from omnitide_cli.runtime.versions import describe

        typer.echo(describe())
    except ImportError as error:
        typer.echo(f"native runtime: can't be loaded ({error}); reinstall omnitide")
    raise typer.Exit


@app.callback(invoke_without_command=True)
def _global(
    context: typer.Context,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print answers and errors only.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print a line for every unit and every eviction.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback when something fails.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show versions and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    state = context.ensure_object(GlobalOptions)
    state.quiet, state.verbose, state.debug = quiet, verbose, debug
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        return
    if context.invoked_subcommand != "doctor":  # who tells what is wrong with them
        from omnitide_cli.catalog.settings import default_map

        context.default_map = default_map(context)


def main() -> NoReturn:
    """The entry point."""
    code = run(app, sys.argv[1:])
    if code == INTERRUPTED:  # the same Ctrl-C may come once more, and all is done by now
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)

"""`omnitide ask`: questions to a saved session without its source, or to one that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnitide_cli.commands import options
from omnitide_cli.errors import INTERRUPTED, SessionFileError, UsageError
from omnitide_cli.session.global_options import GlobalOptions

SAVED = ".tide"

EPILOG = """
[bold]Examples[/bold]

omnitide ask "What happened?"                   the session that runs, or the newest saved one

omnitide ask talk.tide "Who spoke?" "When?"     a saved session, two questions

omnitide ask talk.tide "Who spoke?" --json      events, as omnitide watch --json has them

omnitide ask --session 4711 "What is it now?"   one of several that run

A saved session is asked without its video or camera; the file isn't changed.
"""

WORDS_HELP = "Questions; before them, a saved FILE.tide. By default the session that runs, else the newest saved one."


def ask(
    context: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="[SESSION.tide] TEXT...", help=WORDS_HELP, show_default=False)],
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            help="A session's name or how it begins, its process id, or a FILE.tide.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    recall_tokens: options.RecallTokens = None,
    max_answer_tokens: options.MaxAnswerTokens = None,
    temperature: options.Temperature = None,
    seed: options.Seed = None,
    show_thoughts: options.ShowThoughts = False,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    json_lines: options.Json = False,
    evidence: options.Evidence = None,
    transcript: options.Transcript = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Ask a saved session without its source, or one that runs in another terminal."""
    from omnitide_cli.session import saves
    from omnitide_cli.session.asking import AskOptions, ask_saved
    from omnitide_cli.session.outputs import OutputOptions
    from omnitide_cli.session.visiting import ask_running, running, where

    state = context.ensure_object(GlobalOptions)
    output = OutputOptions(json_lines, transcript or (), overwrite, dashboard=False, no_ask=True)
    wanted, questions = options.session_and_words(session, words)
    if not questions:
        raise UsageError("Missing argument 'TEXT'.", "see omnitide ask --help")
    path = Path(wanted) if wanted and Path(wanted).suffix == SAVED else None
    if path is None:
        known = running(wanted)
        if known is not None:
            if evidence is not None:
                raise UsageError(
                    "--evidence: a running session writes its own", "start it with --evidence, or name a FILE.tide"
                )
            if not state.quiet and not wanted:
                typer.echo(where(known), err=True)
            if not ask_running(known, questions, output, state):
                raise typer.Exit(INTERRUPTED)
            return
        if wanted:
            raise SessionFileError(
                f"no session that runs is called '{wanted}'", "omnitide inspect-kv names them; or give a FILE.tide"
            )
        path = saves.newest_to_read()
        if not state.quiet:
            typer.echo(f"asking {path}", err=True)
    settings = {
        "recall_tokens": recall_tokens,
        "max_answer_tokens": max_answer_tokens,
        "temperature": temperature,
        "seed": seed,
        "show_thoughts": show_thoughts,
        "threads": threads,
        "gpu_layers": gpu_layers,
    }
    if not ask_saved(path, questions, AskOptions(*options.of_saved(context), settings, output, evidence), state):
        raise typer.Exit(INTERRUPTED)

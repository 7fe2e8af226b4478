"""`omnitide find`: the moments of a saved session that a text is about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from omnitide_cli.commands import options
from omnitide_cli.errors import UsageError
from omnitide_cli.session.global_options import GlobalOptions

EPILOG = """
[bold]Examples[/bold]

omnitide find "a red car"                        in the newest saved session

omnitide find talk.tide "the budget" --limit 3   the three best moments of this one

omnitide find talk.tide "the budget" --evidence found   their pictures, too

Nothing is generated: the model compares the text with what it saw and heard,
and what was said is searched by its words. The file isn't changed.
"""


def find(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[SESSION.tide] TEXT",
            help="What to find; before it, a saved FILE.tide. By default the newest.",
            show_default=False,
        ),
    ],
    limit: Annotated[int, typer.Option("--limit", help="List at most N moments.", min=1, metavar="N")] = 8,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Write one JSON object per moment to standard output.")
    ] = False,
    evidence: options.Evidence = None,
) -> None:
    """List the moments of a saved session that a text is about, without an answer."""
    from omnitide_cli.formats.words import printable, stretch
    from omnitide_cli.session import saves
    from omnitide_cli.session.asking import AskOptions
    from omnitide_cli.session.evidence import Evidence
    from omnitide_cli.session.finding import find_saved
    from omnitide_cli.session.outputs import OutputOptions
    from omnitide_cli.times import clock

    wanted, texts = options.session_and_words(None, words)
    if not texts:
        raise UsageError("Missing argument 'TEXT'.", "see omnitide find --help")
    folder = Evidence.into(evidence)
    path = Path(wanted) if wanted else saves.newest_to_read()
    settings = {"threads": threads, "gpu_layers": gpu_layers}
    asked = AskOptions(*options.of_saved(context), settings, OutputOptions(json_lines=json_lines))
    state = context.ensure_object(GlobalOptions)
    found = find_saved(path, " ".join(texts), asked, state, limit=limit)
    for hit in found.hits:
        picture = folder.picture(found.journal, hit.start, hit.end) if folder else None
        if json_lines:
            print(json.dumps(hit.to_json(picture), ensure_ascii=True), flush=True)
            continue
        parts = [f"{stretch(hit.start, hit.end):>13}", f"{hit.score:.2f}", hit.words, picture or ""]
        print(printable("  ".join(part for part in parts if part)), flush=True)
    if state.quiet or json_lines:
        return
    if found.oldest is None and not found.hits:
        typer.echo("nothing is left of what was seen or heard, and nothing was said", err=True)
    elif found.oldest is not None:
        typer.echo(f"searched {found.searched:g} s, from {clock(found.oldest)} on, in {path}", err=True)

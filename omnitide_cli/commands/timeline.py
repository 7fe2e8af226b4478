"""`omnitide timeline`: what a saved session leaves, by time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from omnitide_cli.errors import UsageError
from omnitide_cli.session.global_options import GlobalOptions

ENDINGS = (".html", ".htm")

EPILOG = """
[bold]Examples[/bold]

omnitide timeline                           the newest saved session

omnitide timeline talk.tide --html a.html   as a page with the pictures inside

omnitide timeline talk.tide --json          one JSON object a line

The page asks nothing of any server. It shows pictures evenly over time
(--pictures), and every one that an answer was drawn from.
"""


def timeline(
    context: typer.Context,
    session: Annotated[
        Path | None,
        typer.Argument(metavar="SESSION.tide", help="A saved session. By default the newest.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", help="Write a page with the pictures.", metavar="FILE.html", show_default=False),
    ] = None,
    pictures: Annotated[int, typer.Option("--pictures", help="About how many pictures.", min=0, metavar="N")] = 240,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Write one JSON object per entry to standard output.")
    ] = False,
) -> None:
    """List the answers, recalled moments and pictures of a saved session by time."""
    from omnitide_cli.formats.timeline_page import BEGINS
    from omnitide_cli.formats.words import evidence, moment, one_line, printable, stretch
    from omnitide_cli.runtime.session_file import check_writable
    from omnitide_cli.session import saves
    from omnitide_cli.session.chronicle import ANSWER, Chronicle
    from omnitide_cli.times import clock

    if html is not None and html.suffix.lower() not in ENDINGS:
        raise UsageError(
            f"--html {html}: only HTML files are written", f"for example --html {html.with_suffix('.html')}"
        )
    if html is not None:
        check_writable(html, "--html", begins=BEGINS)
    path = session or saves.newest_to_read()
    chronicle = Chronicle.of(path)
    state = context.ensure_object(GlobalOptions)
    if html is not None:
        chronicle.write_page(html, pictures)
        if not state.quiet:
            typer.echo(f"wrote {html} ({chronicle.title}, {chronicle.about})", err=True)
        if not json_lines:
            return
    for entry in chronicle.entries(pictures):
        if json_lines:
            print(json.dumps(entry, ensure_ascii=True), flush=True)
        elif entry["type"] == ANSWER:
            where = evidence((each["start"], each["end"]) for each in entry["recalled"])
            said = f"{one_line(entry['question'])} {one_line(entry['text'])}" + (f" ({where})" if where else "")
            print(printable(f"{moment(entry['at'], entry['wall']):>8}  {said}"), flush=True)
        elif state.verbose:
            print(f"{clock(entry['at']):>8}  picture {stretch(entry['start'], entry['end'])}", flush=True)
    kept = chronicle.journal.pictures
    if not (state.quiet or json_lines):
        seen = f"{len(kept)} pictures from {clock(kept[0].start)} to {clock(kept[-1].end)}" if kept else "no pictures"
        typer.echo(f"{path}: {chronicle.about}, {seen}; --html FILE shows them", err=True)

"""`omnitide bench startup`: how long the command line takes to answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, save_rows, show_all


def startup(
    repeat: Annotated[int, typer.Option("--repeat", help="Runs of each.", min=1, metavar="N")] = 15,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Time `omnitide --help` and `omnitide watch --help` against a bare Typer app.

    The app has three commands, one of them with as many options as `watch`.
    """
    from omnitide_cli.bench.startup.measure import startup as run

    rows = [asdict(row) for row in run(repeat)]
    show_all(rows, json_lines)
    save_rows(out, "startup", rows)

"""`omnitide bench startup`: how long the command line takes to answer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, save_rows, show


def startup(
    repeat: Annotated[int, typer.Option("--repeat", help="Runs of each.", min=1, metavar="N")] = 15,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Time `omnitide --help` against a bare Typer app with three commands."""
    from omnitide_cli.bench.startup.measure import startup as run

    row = run(repeat)
    show(row, json_lines)
    save_rows(out, "startup", [asdict(row)])

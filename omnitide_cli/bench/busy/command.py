"""`omnitide bench busy`: what other programs on the machine cost a session."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import Annotated, Any

import typer

from omnitide_cli.bench.common.rows import Json, Out, save_rows, show_all
from omnitide_cli.bench.common.subject import say
from omnitide_cli.commands import options


def busy(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="A clip.", metavar="SOURCE", show_default=False)],
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", help="Busy processes to run beside it.", min=1, metavar="N", show_default="two a core"
        ),
    ] = None,
    units: Annotated[
        int | None,
        typer.Option("--units", help="Stop after this many units.", min=1, metavar="N", show_default="once"),
    ] = None,
    rounds: Annotated[int, typer.Option("--repeat", help="Rounds of all six runs.", min=1, metavar="N")] = 5,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    threads: options.Threads = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Run a clip alone and beside busy processes, for each way threads can wait: briefly awake, asleep, spinning.

    Sessions wait briefly awake, then asleep. `busy ÷ idle` is what busy programs
    cost; `idle ÷ spinning` is what sleeping costs when there are none. Run it on
    a machine that is otherwise idle. Ctrl-C prints the rounds that were finished.
    """
    from omnitide_cli.bench.busy.measure import Busy
    from omnitide_cli.bench.session.measure import Job
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.errors import INTERRUPTED
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.runtime.limits import cores
    from omnitide_cli.session.configuration import engine_options, frame_fit, settings_of
    from omnitide_cli.session.interrupt import Interrupt

    manifest = find_manifest(model, mmproj)
    settings = {**settings_of(context.params), "unit_tokens": manifest.unit_tokens(1.0)}
    chosen = engine_options(manifest, settings)
    job = Job(
        fetch_files(manifest, mmproj, say),
        manifest.prompt,
        chosen,
        source,
        frame_fit(manifest, None),
        manifest.hears,
        units,
    )
    bench = Busy(
        job,
        threads=threads or cores().usable,
        processes=processes or 2 * (os.cpu_count() or 1),
        rounds=rounds,
    )
    status = StatusLine(sys.stderr)
    if os.getloadavg()[0] > 1:
        say(f"the machine is not quiet (load {os.getloadavg()[0]:.1f}): times alone are too long")
    with Interrupt() as interrupt:
        try:
            found = bench.run(lambda what: status.show(what, now=True), lambda: interrupt.requested)
        finally:
            status.clear()
    rows = [asdict(row) for row in found]
    if rows:
        show_all(rows if json_lines else [_cells(row) for row in rows], json_lines)
    save_rows(out, "busy", rows)
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    """A row that fits 80 columns."""
    return {
        "threads wait": row["waiting"],
        "threads": row["threads"],
        "processes": row["processes"],
        "idle, s": f"{row['idle_s']:.2f}",
        "busy, s": f"{row['busy_s']:.2f}",
        "busy ÷ idle": f"{row['busy_ratio']:.2f}",
        "idle ÷ spinning": f"{row['idle_ratio']:.3f}",
    }

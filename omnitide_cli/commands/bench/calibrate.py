"""`omnitide bench calibrate`: what attention and moving cost on this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.commands import options
from omnitide_cli.commands.bench.rows import Json, Out, Row, save_rows, show_all
from omnitide_cli.commands.bench.subject import Layers, Repeat, Shape, language_model, machine_options

if TYPE_CHECKING:
    from omnitide_cli.display.plot import Figure


def calibrate(
    context: typer.Context,
    model: options.Model = None,
    shape: Shape = None,
    layers: Layers = None,
    repeat: Repeat = 5,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    save: Annotated[bool, typer.Option("--save/--no-save", help="Keep the costs for later sessions.")] = True,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Measure what attention and moving cost here, for --layout auto, and how well that foretells other layouts."""
    from omnitide_cli.bench.calibrate import calibrate as run
    from omnitide_cli.bench.stage import Stage
    from omnitide_cli.catalog.folders import costs_file
    from omnitide_cli.commands.setup import settings_of
    from omnitide_cli.display.status import StatusLine
    from omnitide_cli.runtime.costs import save_costs

    file, unit_tokens = language_model(model, shape, layers)
    status = StatusLine(sys.stderr)
    with Stage(file, machine_options(**settings_of(context))) as stage:
        found = run(stage, unit_tokens, repeat, lambda done, of: status.show(f"layout {done} of {of}"))
        status.clear()
        if save:
            save_costs(costs_file(), stage.model.cost_key(stage.options), found.costs)
    show_all([{"type": "costs", **asdict(found.costs)}], json_lines)
    rows = [asdict(prediction) for prediction in found.predictions]
    show_all(rows, json_lines)
    save_rows(out, "calibrate", rows, _figure(rows) if out else None)


def _figure(rows: list[Row]) -> Figure:
    from omnitide_cli.display.plot import Bars, Figure, Value

    groups = [f"{row['layout']}, {row['tokens']}" for row in rows]
    series = {name: [Value(row[f"{name}_ms"]) for row in rows] for name in ("predicted", "measured")}
    return Figure(
        "Updates over layouts, foretold and measured", [Bars("ms; layout, tokens of the update", groups, series)]
    )

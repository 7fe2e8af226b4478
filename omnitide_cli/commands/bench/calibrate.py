"""`omnitide bench calibrate`: what attention and moving cost on this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.commands import options
from omnitide_cli.commands.bench.rows import Json, Out, Row, save_rows, show_all
from omnitide_cli.commands.bench.subject import Layers, Repeat, Shape, language_model, machine_options, say

if TYPE_CHECKING:
    from omnitide_cli.display.plot import Figure
    from omnitide_cli.display.status import StatusLine


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
    """Measure what attention and moving cost here, for --layout auto, and how well that foretells other layouts.

    Without --flash-attn both ways are measured, and kept, the faster one is the default for this model from then on.
    """
    from omnitide_cli.bench.calibrate import calibrate as run
    from omnitide_cli.bench.stage import Stage
    from omnitide_cli.catalog.folders import costs_file
    from omnitide_cli.commands.setup import settings_of
    from omnitide_cli.display.status import StatusLine
    from omnitide_cli.runtime.costs import save_costs

    file, unit_tokens = language_model(model, shape, layers)
    wanted = machine_options(**settings_of(context))
    both = wanted.flash_attn == "auto" and wanted.cache_type != "q8_0"  # which plain kernels can't read
    ways = [replace(wanted, flash_attn=way) for way in ("off", "on")] if both else [wanted]
    status = StatusLine(sys.stderr)
    costs: list[Row] = []
    rows: list[Row] = []
    for index, way in enumerate(ways):
        part = f"{index + 1} of {len(ways)}, " if both else ""
        with Stage(file, way) as stage:
            found = run(stage, unit_tokens, repeat, partial(_progress, status, part))
            status.clear()
            if save:
                save_costs(costs_file(), stage.model.cost_key(way), found.costs, found.unit_ms)
        named = {"flash_attn": way.flash_attn}
        costs.append({"type": "costs", **named, **asdict(found.costs), "unit_ms": found.unit_ms})
        rows += [{**named, **asdict(prediction)} for prediction in found.predictions]
    show_all(costs, json_lines)
    show_all(rows, json_lines)
    if both:
        say(_verdict(*(row["unit_ms"] for row in costs), kept=save))
    save_rows(out, "calibrate", rows, _figure(rows) if out else None)


def _progress(status: StatusLine, part: str, done: int, of: int) -> None:
    status.show(f"{part}layout {done} of {of}")


def _verdict(plain_ms: float, flash_ms: float, *, kept: bool) -> str:
    way = "on" if flash_ms < plain_ms else "off"
    times = f"{flash_ms:.4g} ms a unit with flash attention, {plain_ms:.4g} ms without"
    return f"{times}: " + (
        f"{way} is this model's default here from now on" if kept else f"--flash-attn {way} is faster"
    )


def _figure(rows: list[Row]) -> Figure:
    from omnitide_cli.display.plot import Bars, Figure, Value

    groups = [f"{row['flash_attn']}, {row['layout']}, {row['tokens']}" for row in rows]
    series = {name: [Value(row[f"{name}_ms"]) for row in rows] for name in ("predicted", "measured")}
    return Figure(
        "Updates over layouts, foretold and measured",
        [Bars("ms; flash attention, layout, tokens of the update", groups, series)],
    )

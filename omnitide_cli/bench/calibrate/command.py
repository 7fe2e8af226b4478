"""`omnitide bench calibrate`: what attention and moving cost on this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, Row, save_rows, show_all
from omnitide_cli.bench.common.subject import Layers, Repeat, Shape, language_model, machine_options, say
from omnitide_cli.commands import options

if TYPE_CHECKING:
    from omnitide_cli.bench.common.fixture import Fixture
    from omnitide_cli.formats.plot import Figure
    from omnitide_cli.formats.status import StatusLine


def calibrate(
    context: typer.Context,
    model: options.Model = None,
    shape: Shape = None,
    layers: Layers = None,
    repeat: Repeat = 5,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    save: Annotated[bool, typer.Option("--save/--no-save", help="Save the costs for later sessions.")] = True,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Measure what attention and moves cost on this machine, for --layout auto, and how well that predicts.

    Unless --flash-attn is given, both settings are measured and saved, and
    the faster one becomes this model's default on this machine.
    """
    from contextlib import ExitStack

    from omnitide_cli.bench.calibrate.measure import calibrate as run
    from omnitide_cli.bench.calibrate.measure import unit_times
    from omnitide_cli.bench.common.fixture import Fixture
    from omnitide_cli.catalog.folders import costs_file
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.runtime.costs import save_costs
    from omnitide_cli.session.configuration import settings_of

    file, unit_tokens = language_model(model, shape, layers)
    wanted = machine_options(**settings_of(context.params))
    both = wanted.flash_attn == "auto" and wanted.cache_type != "q8_0"  # which plain kernels can't read
    ways = [replace(wanted, flash_attn=way) for way in ("off", "on")] if both else [wanted]
    status = StatusLine(sys.stderr)
    with ExitStack() as stack:
        fixtures = [stack.enter_context(Fixture(file, way)) for way in ways]
        found = [run(fixture, unit_tokens, repeat, partial(_progress, status, fixture)) for fixture in fixtures]
        status.show("a unit with and without flash attention")
        times = unit_times(fixtures, unit_tokens, repeat)
        status.clear()
        if save:
            for fixture, one, unit_ms in zip(fixtures, found, times, strict=True):
                save_costs(costs_file(), fixture.model.cost_key(fixture.options), one.costs, unit_ms)
    named = [{"flash_attn": way.flash_attn} for way in ways]
    costs = [
        {"type": "costs", **name, **asdict(one.costs), "unit_ms": unit_ms}
        for name, one, unit_ms in zip(named, found, times, strict=True)
    ]
    rows = [{**name, **asdict(row)} for name, one in zip(named, found, strict=True) for row in one.predictions]
    if json_lines:
        show_all([*costs, *rows], json_lines)
    else:
        names = [name for name in costs[0] if name not in ("type", "flash_attn")]
        show_all(
            [{"cost": name, **{f"flash {row['flash_attn']}": row[name] for row in costs}} for name in names], False
        )
        for way in costs:
            print(f"flash attention {way['flash_attn']}; times in milliseconds")
            show_all([_cells(row) for row in rows if row["flash_attn"] == way["flash_attn"]], False)
    if both:
        say(_verdict(*times, kept=save))
    save_rows(out, "calibrate", rows, _figure(rows) if out else None)


def _cells(row: Row) -> Row:
    """A row that fits 80 columns."""
    return {
        "layout": row["layout"],
        "tokens": row["tokens"],
        "used": row["used_cells"],
        "span": row["physical_span"],
        "predicted": row["predicted_ms"],
        "measured": row["measured_ms"],
        "error": f"{row['error']:+.1%}",
        "fitted": row["fitted"],
    }


def _progress(status: StatusLine, fixture: Fixture, done: int, of: int) -> None:
    status.show(f"flash attention {fixture.options.flash_attn}: layout {done} of {of}")


def _verdict(plain_ms: float, flash_ms: float, *, kept: bool) -> str:
    way = "on" if flash_ms < plain_ms else "off"
    times = f"{flash_ms:.4g} ms per unit with flash attention, {plain_ms:.4g} ms without"
    return f"{times}: " + (f"{way} is now this model's default here" if kept else f"--flash-attn {way} is faster")


def _figure(rows: list[Row]) -> Figure:
    from omnitide_cli.formats.plot import Bars, Figure, Value

    groups = [f"{row['flash_attn']}, {row['layout']}, {row['tokens']}" for row in rows]
    series = {name: [Value(row[f"{name}_ms"]) for row in rows] for name in ("predicted", "measured")}
    return Figure(
        "Updates over layouts, predicted and measured",
        [Bars("ms; flash attention, layout, tokens of the update", groups, series)],
    )

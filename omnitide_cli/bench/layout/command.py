"""`omnitide bench layout`: layouts under identical retention."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, Row, save_rows, show_all
from omnitide_cli.bench.common.subject import Layers, Repeat, Shape, language_model, machine_options
from omnitide_cli.commands import options
from omnitide_cli.runtime.options import LAYOUTS

if TYPE_CHECKING:
    from omnitide_cli.bench.layout.measure import LayoutRow
    from omnitide_cli.formats.plot import Figure


def layout(
    context: typer.Context,
    model: options.Model = None,
    shape: Shape = None,
    layers: Layers = None,
    layouts: Annotated[
        list[str] | None,
        typer.Option(
            "--layout",
            help="Layout to compare with native and eager. Repeatable.",
            metavar="LAYOUT",
            show_default="all",
        ),
    ] = None,
    image: Annotated[int | None, typer.Option("--image", help="Image tokens per unit.", min=0, metavar="N")] = None,
    audio: Annotated[int, typer.Option("--audio", help="Audio tokens per unit.", min=0, metavar="N")] = 25,
    cycles: Annotated[int, typer.Option("--cycles", help="Evictions to measure.", min=1, metavar="N")] = 4,
    units: Annotated[
        int | None,
        typer.Option("--units", help="Units to measure instead.", min=1, metavar="N", show_default=False),
    ] = None,
    repeat: Repeat = 3,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Compare layouts under identical evictions: attention, moves, and the share of eager's gain that is left."""
    from dataclasses import replace

    from omnitide_cli.bench.common.fixture import Fixture
    from omnitide_cli.bench.layout.measure import Length, compare_layouts
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.runtime.options import check_watermarks
    from omnitide_cli.runtime.simulation import Stream, image_tokens
    from omnitide_cli.session.configuration import settings_of

    names = layouts or ["class-packing", "ordered-suffix", "hole-filling", "auto"]
    options.check_names("layout", names, LAYOUTS)
    file, unit_tokens = language_model(model, shape, layers)
    chosen = machine_options(**settings_of(context.params))
    check_watermarks(chosen)
    stream = Stream(0, image_tokens(unit_tokens) if image is None else image, audio)
    status = StatusLine(sys.stderr)
    with Fixture(file, replace(chosen, unit_tokens=stream.unit_tokens)) as fixture:
        length = Length(cycles=None if units else cycles, units=units)
        found = compare_layouts(fixture, stream, names, length, repeat, status.show)
        rows = [{**asdict(row), **fixture.settings()} for row in found]
    status.clear()
    if json_lines:
        show_all(rows, json_lines)
    else:
        print(f"means of {found[0].units} units; flash attention {rows[0]['flash_attn']}; times in milliseconds")
        show_all([_cells(row) for row in found], json_lines)
    save_rows(out, "layout", rows, _figure(rows) if out else None)


def _cells(row: LayoutRow) -> Row:
    """A row that fits 80 columns."""

    def share(value: float | None) -> str:
        return "–" if value is None else f"{value:.0%}"

    return {
        "layout": row.layout,
        "useful": round(row.useful_cells),
        "span": round(row.page_span),
        "update": row.update_ms,
        "decode": row.decode_ms,
        "upkeep": row.migration_ms,
        "moved": row.rows_moved,
        "share": share(row.share_prefill),
        "decode share": share(row.share_decode),
    }


def _figure(rows: list[Row]) -> Figure:
    from omnitide_cli.formats.plot import Bars, Figure, Value

    def values(name: str, factor: float = 1.0) -> list[Value | None]:
        return [None if row[name] is None else Value(row[name] * factor) for row in rows]

    groups = [row["layout"] for row in rows]
    shares = {"prefill": values("share_prefill", 100), "decode": values("share_decode", 100)}
    spent = {"attention, prefill": values("attention_prefill_ms"), "migration": values("migration_ms")}
    return Figure(
        "Layouts under identical retention",
        [
            Bars("share of what packing everything saves, after its own moves, %", groups, shares),
            Bars("ms per unit", groups, spent),
            Bars("cells, mean", groups, {"useful": values("useful_cells"), "page span": values("page_span")}),
        ],
    )

"""`omnitide bench latency`: what an update costs under each policy, at histories of any length."""

from __future__ import annotations

import sys
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnitide_cli.bench.common.rows import Json, Out, save_rows, show_all
from omnitide_cli.bench.common.subject import (
    Layers,
    Repeat,
    Shape,
    language_model,
    machine_options,
    policies_to_compare,
)
from omnitide_cli.commands import options
from omnitide_cli.runtime.options import LAYOUTS

if TYPE_CHECKING:
    from omnitide_cli.bench.latency.measure import LatencyRow
    from omnitide_cli.formats.plot import Figure


def latency(
    context: typer.Context,
    model: options.Model = None,
    shape: Shape = None,
    layers: Layers = None,
    histories: Annotated[
        list[int] | None,
        typer.Option(
            "--history", help="Tokens of the stream so far. Repeatable.", min=1, metavar="N", show_default="32768"
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="Policy to measure. Repeatable.", metavar="POLICY", show_default="all"),
    ] = None,
    layouts: Annotated[
        list[str] | None,
        typer.Option(
            "--layout", help="Layout of omnipick. Repeatable.", metavar="LAYOUT", show_default="native, auto and eager"
        ),
    ] = None,
    image: Annotated[
        int | None,
        typer.Option("--image", help="Image tokens per unit.", min=0, metavar="N", show_default="the model's"),
    ] = None,
    audio: Annotated[int, typer.Option("--audio", help="Audio tokens per unit.", min=0, metavar="N")] = 25,
    repeat: Repeat = 5,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Time a unit's update, its attention, and one token of an answer under each policy, over long histories.

    Histories are set up without prefilling them. The row `limit` is the same
    update with omnipick's tokens packed from cell 0.
    Ctrl-C prints what has been measured so far.
    """
    from dataclasses import replace

    from omnitide_cli.bench.common.fixture import Fixture
    from omnitide_cli.bench.latency.measure import Latency
    from omnitide_cli.errors import INTERRUPTED
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.runtime.options import check_watermarks
    from omnitide_cli.runtime.simulation import Stream, image_tokens
    from omnitide_cli.session.configuration import settings_of
    from omnitide_cli.session.interrupt import Interrupt

    chosen_layouts = list(dict.fromkeys(layouts or ["native", "auto", "eager"]))
    options.check_names("layout", chosen_layouts, LAYOUTS)
    chosen = machine_options(**settings_of(context.params))
    check_watermarks(chosen)
    names = policies_to_compare(policies, chosen)
    file, unit_tokens = language_model(model, shape, layers)
    stream = Stream(0, image_tokens(unit_tokens, audio) if image is None else image, audio)
    status = StatusLine(sys.stderr)

    def notice(text: str) -> None:
        status.clear()
        print(text, file=sys.stderr)

    bench = Latency(shape or file.stem, sorted(set(histories or [32768])), names, chosen_layouts, stream, repeat)
    with Interrupt() as interrupt, Fixture(file, replace(chosen, unit_tokens=stream.unit_tokens)) as fixture:
        interrupt.on_request(fixture.interrupt)
        try:
            rows = bench.run(fixture, lambda what: status.show(what, now=True), notice, lambda: interrupt.requested)
        finally:
            interrupt.on_request(None)
            status.clear()
        kept = [{**asdict(row), **fixture.settings()} for row in rows]
    if json_lines:
        show_all(kept, json_lines)
    else:
        for history, group in groupby(rows, key=lambda row: row.history):
            print(f"after {history} tokens; flash attention {kept[0]['flash_attn']}; times in milliseconds")
            show_all([_cells(row) for row in group], json_lines)
    save_rows(out, "latency", kept, _figure(rows) if out and rows else None)
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def _name(row: LatencyRow) -> str:
    return f"{row.policy}/{row.layout}" if row.policy == "omnipick" else row.policy


def _cells(row: LatencyRow) -> dict[str, Any]:
    """A row that fits 80 columns."""

    def ms(value: float) -> str:
        return f"{value:.1f}" if value < 1000 else f"{value:.0f}"

    def times(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}x"

    return {
        "policy": _name(row),
        "kept": round(row.history_tokens),
        "span": round(row.physical_span),
        "update": ms(row.update_ms),
        "attn": ms(row.attention_ms),
        "share": f"{row.attention_share:.0%}",
        "decode": ms(row.decode_ms_per_token),
        "update ×": times(row.speedup_update),
        "attn ×": times(row.speedup_attention),
    }


def _figure(rows: list[LatencyRow]) -> Figure:
    from omnitide_cli.formats.plot import Bars, Figure, Lines, Value

    names = list(dict.fromkeys(map(_name, rows)))
    by_case = {(_name(row), row.history): row for row in rows}

    def chart(title: str, field: str) -> Bars | Lines:
        if len({row.history for row in rows}) > 1:
            grown = {name: [(row.history, getattr(row, field)) for row in rows if _name(row) == name] for name in names}
            return Lines(title, "tokens of the stream so far", grown, log_x=True)
        series: dict[str, list[Value | None]] = {}
        for history in dict.fromkeys(row.history for row in rows):
            found = [by_case.get((name, history)) for name in names]
            series[f"{history} tokens"] = [None if row is None else Value(getattr(row, field)) for row in found]
        return Bars(title, names, series)

    return Figure(
        f"One unit after a long stream: {rows[0].shape}",
        [
            chart("update, ms", "update_ms"),
            chart("attention in it, ms", "attention_ms"),
            chart("one token of an answer, ms", "decode_ms_per_token"),
        ],
    )

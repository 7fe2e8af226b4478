"""`omnitide bench peers`: stock llama.cpp beside ours."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, Row, save_rows, show_all
from omnitide_cli.bench.common.subject import Repeat, language_model, machine_options, say
from omnitide_cli.commands import options

if TYPE_CHECKING:
    from omnitide_cli.formats.plot import Figure

PLAIN_SHAPE = "minicpm-o-4.5"
"""Its positions are plain: llama.cpp can shift them."""


def peers(
    context: typer.Context,
    model: options.Model = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", help="Measure random weights of this shape.", metavar="NAME", show_default=PLAIN_SHAPE),
    ] = None,
    layers: Annotated[
        int, typer.Option("--layers", help="Use only this many layers of the shape.", min=1, metavar="N")
    ] = 2,
    cells: Annotated[
        int, typer.Option("--cells", help="Cache size for the position shift.", min=1, metavar="N")
    ] = 32768,
    repeat: Repeat = 5,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Compare with stock llama.cpp in one run: position shift, context shift, re-prefill, a second of sound.

    k-shift: planning and relocating an eviction, against rotating all cells.
    context-shift: an eviction and the next unit, against seq_rm, seq_add, decode.
    re-prefill: one unit, against its whole window.
    sound: one second through the shipped model's encoder.
    A ratio above 1 means that OmniTide is faster.
    """
    from dataclasses import replace

    from omnitide_cli.bench.common.fixture import Fixture
    from omnitide_cli.bench.peers.measure import compare_peers, compare_sound
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.runtime.options import check_watermarks
    from omnitide_cli.runtime.simulation import SOUND_TOKENS, Stream, image_tokens
    from omnitide_cli.session.configuration import settings_of

    named = shape or (None if model else PLAIN_SHAPE)
    file, unit_tokens = language_model(model, named, layers if named else None)
    chosen = machine_options(**settings_of(context.params))
    check_watermarks(replace(chosen, ctx=cells))
    stream = Stream(0, image_tokens(unit_tokens), SOUND_TOKENS)
    status = StatusLine(sys.stderr)
    with Fixture(file, replace(chosen, unit_tokens=stream.unit_tokens)) as fixture:
        found = [
            {**asdict(row), **fixture.settings()} for row in compare_peers(fixture, stream, cells, repeat, status.show)
        ]
    files = fetch_files(find_manifest(None), None, say)
    with Fixture(files.model, chosen, files.mmproj) as fixture:
        rows = [*found, {**asdict(compare_sound(fixture, repeat, status.show)), **fixture.settings()}]
    status.clear()
    show_all(rows if json_lines else [_shown(row) for row in rows], json_lines)
    if not json_lines:
        for row in rows:
            print(f"{row['what']}: {row['detail']}")
    save_rows(out, "peers", rows, _figure(rows) if out else None)


def _shown(row: Row) -> Row:
    return {name: row[name] for name in ("type", "what", "subject", "ours_ms", "peer_ms", "ratio", "repeat")}


def _figure(rows: list[Row]) -> Figure:
    from omnitide_cli.formats.plot import Bars, Figure, Value

    ratios = Bars(
        "stock llama.cpp's time divided by ours",
        [row["what"] for row in rows],
        {"ratio": [Value(row["ratio"]) for row in rows]},
    )
    times = [
        Bars(
            f"{row['what']}, ms: {row['detail']}",
            ["ours", "stock"],
            {"ms": [Value(row["ours_ms"]), Value(row["peer_ms"])]},
        )
        for row in rows
    ]
    return Figure("Stock llama.cpp compared with OmniTide", [ratios, *times])

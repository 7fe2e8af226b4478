"""`omnitide bench soak`: hours of media time on one clip."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnitide_cli.commands import options
from omnitide_cli.commands.bench.rows import Json, show
from omnitide_cli.errors import UsageError

LEAST_UNITS = 300


def soak(
    source: Annotated[str, typer.Argument(help="A short clip; it is fed again and again.", metavar="SOURCE")],
    units: Annotated[int, typer.Option("--units", help="How many units to feed.", min=1, metavar="N")] = 2000,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    layout: options.LayoutOption = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    json_lines: Json = False,
) -> None:
    """Feed a clip for hours of media time and compare the end with the beginning: memory, time, cost of upkeep."""
    from omnitide_cli.bench.soak import decoded
    from omnitide_cli.bench.soak import soak as run
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.commands.setup import engine_options, frame_fit
    from omnitide_cli.display.status import StatusLine

    if units < LEAST_UNITS:
        raise UsageError(f"--units {units}: the comparison needs at least {LEAST_UNITS}", f"--units {LEAST_UNITS}")
    manifest = find_manifest(model)
    flags = {
        "layout": layout,
        "high_watermark": high_watermark,
        "low_watermark": low_watermark,
        "threads": threads,
        "cache_type": cache_type,
        "flash_attn": flash_attn,
        "unit_tokens": manifest.unit_tokens(1.0),
    }
    chosen = engine_options(manifest, flags)
    status = StatusLine(sys.stderr)
    files = fetch_files(manifest, mmproj, lambda message: print(message, file=sys.stderr))
    clip = decoded(source, frame_fit(manifest, None), audio=manifest.hears)
    row = run(files, manifest.prompt, chosen, clip, units, lambda done: status.show(f"unit {done} of {units}"))
    status.clear()
    show(row, json_lines)

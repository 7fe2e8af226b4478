"""`omnitide bench soak`: hours of media time on one clip."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, save_rows, show
from omnitide_cli.bench.common.subject import say
from omnitide_cli.commands import options
from omnitide_cli.errors import UsageError

if TYPE_CHECKING:
    from omnitide_cli.bench.soak.measure import Sample
    from omnitide_cli.formats.plot import Figure


def soak(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="A short clip; it is played in a loop.", metavar="SOURCE")],
    units: Annotated[int, typer.Option("--units", help="Number of units; a day has 86400.", min=1, metavar="N")] = 2000,
    with_faults: Annotated[
        bool, typer.Option("--faults", help="Damage, truncate or interrupt every 50th unit.")
    ] = False,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    layout: options.LayoutOption = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Feed a clip for hours of media time, and compare memory, time and eviction cost at the start and the end.

    In runs of three hours or more, the last hour is compared with the second;
    in shorter ones, the last hundred units with units 200 to 300.
    Ctrl-C prints the results so far.
    """
    from omnitide_cli.bench.soak.measure import LEAST_UNITS, decoded
    from omnitide_cli.bench.soak.measure import soak as run
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.errors import INTERRUPTED
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.session.configuration import engine_options, frame_fit, settings_of
    from omnitide_cli.session.interrupt import Interrupt

    if units < LEAST_UNITS:
        raise UsageError(
            f"--units {units}: the comparison needs at least {LEAST_UNITS} units", f"--units {LEAST_UNITS}"
        )
    manifest = find_manifest(model, mmproj)
    chosen = engine_options(manifest, settings_of(context.params))
    status = StatusLine(sys.stderr)
    files = fetch_files(manifest, mmproj, say)
    clip = decoded(source, frame_fit(manifest, None), audio=manifest.hears)
    began = time.monotonic()
    with Interrupt() as interrupt:
        found = run(
            files,
            manifest.prompt,
            chosen,
            clip,
            units,
            lambda done: status.show(_progress(done, units, time.monotonic() - began)),
            with_faults=with_faults,
            stopped=lambda: interrupt.requested,
        )
    status.clear()
    show(found.row, json_lines)
    save_rows(out, "soak", [asdict(found.row)], _figure(found.samples) if out and found.samples else None)
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def _progress(done: int, units: int, seconds: float) -> str:
    from omnitide_cli.formats.words import size
    from omnitide_cli.runtime.memory import resident_bytes
    from omnitide_cli.times import clock

    left = clock(seconds / done * (units - done))
    return f"unit {done} of {units}, {seconds / done * 1000:.1f} ms per unit, {size(resident_bytes())}, {left} left"


def _figure(samples: list[Sample]) -> Figure:
    from omnitide_cli.formats.plot import Figure, Lines

    scale, unit = (3600, "hours of media") if samples[-1].unit >= 2 * 3600 else (60, "minutes of media")

    def line(title: str, values: list[float]) -> Lines:
        points = [(sample.unit / scale, value) for sample, value in zip(samples, values, strict=True)]
        return Lines(title, unit, {title: points})

    medians = line("ms per unit, median of each hundred", [sample.unit_ms for sample in samples])
    return Figure("Soak", [medians, line("resident memory, MB", [sample.rss / 1e6 for sample in samples])])

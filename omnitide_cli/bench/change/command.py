"""`omnitide bench change`: what leaving out unchanged pictures saves, and what it costs in answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, save_rows
from omnitide_cli.bench.common.subject import say
from omnitide_cli.commands import options

if TYPE_CHECKING:
    from omnitide_cli.bench.change.measure import ChangeRow

DEFAULT_STAYS = (0.0, 0.9)


def change(
    context: typer.Context,
    stays: Annotated[
        list[float] | None,
        typer.Option(
            "--stay",
            help="Chance that a second keeps the picture of the one before. Repeatable.",
            min=0.0,
            max=1.0,
            metavar="SHARE",
            show_default="0 and 0.9",
        ),
    ] = None,
    streams: Annotated[int, typer.Option("--streams", help="Streams of each kind.", min=1, metavar="N")] = 60,
    units: Annotated[int, typer.Option("--units", help="Seconds per stream.", min=2, metavar="N")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first stream.", min=0, metavar="N")] = 0,
    split: Annotated[
        str, typer.Option("--split", help="Tune on validation; report test.", metavar="test|validation")
    ] = "test",
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    refresh: options.Refresh = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Watch the same streams with --change off and auto, and compare.

    Tokens, pictures, seconds of work, how far history reaches back, and the
    answers to the same questions.
    Ctrl-C prints the results so far.
    """
    from omnitide_cli.bench.change.measure import Examiner, measure
    from omnitide_cli.bench.world.split import SPLITS
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.errors import INTERRUPTED
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.session.configuration import engine_options, settings_of
    from omnitide_cli.session.interrupt import Interrupt

    options.check_names("split", [split], list(SPLITS))
    manifest = find_manifest(model, mmproj)
    chosen = engine_options(manifest, settings_of(context.params))
    files = fetch_files(manifest, mmproj, say)
    status = StatusLine(sys.stderr)
    with Interrupt() as interrupt, Examiner(files, manifest.prompt, chosen) as examiner:
        seeds = range(seed, seed + streams)
        kinds = stays or DEFAULT_STAYS
        stopped = lambda: interrupt.requested  # noqa: E731
        found = list(measure(examiner, chosen, SPLITS[split], seeds, units, kinds, stopped, status.show))
    status.clear()
    rows = [{**asdict(row), "model": manifest.name, "split": split, "units": units} for row in found]
    for line in map(json.dumps, rows) if json_lines else _table(found):
        print(line)
    save_rows(out, "change", rows)
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def _table(found: Sequence[ChangeRow]) -> Iterator[str]:
    from omnitide_cli.formats.table import columns

    if not found:
        return
    kinds = list(dict.fromkeys(kind for row in found for kind in row.right))
    head = ["stay", "change", "pictures", "left out", "tokens", "work", "history", *kinds]
    yield from columns([head, *(_cells(row, kinds) for row in found)])
    yield ""
    yield "work, history: seconds; right answers in %, and in brackets points worse than off, with 95 % intervals"


def _cells(row: ChangeRow, kinds: Sequence[str]) -> list[str]:
    cells = [f"{row.stay:.0%}", row.change, f"{row.pictures}", f"{row.same_pictures}", f"{row.tokens}"]
    cells += [f"{row.loop_s:.1f}", f"{row.history_s:.0f}"]
    for kind in kinds:
        text = f"{100 * row.right[kind]:.1f}" if kind in row.right else ""
        if kind in row.worse:
            text += " ({:+.1f}: {:+.1f} … {:+.1f})".format(*(100 * value for value in row.worse[kind]))
        cells.append(text)
    return cells

"""`omnitide bench recall`: whether what was seen or heard once, long ago, is found and answered."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnitide_cli.bench.common.rows import Json, Out, save_rows
from omnitide_cli.bench.common.subject import say
from omnitide_cli.commands import options
from omnitide_cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnitide_cli.bench.recall.measure import Line

DEFAULT_AGES = (1.0, 5.0)


def recall(
    context: typer.Context,
    ages: Annotated[
        list[float] | None,
        typer.Option(
            "--age",
            help="Ask after this many minutes. Repeatable.",
            min=0.5,
            metavar="MINUTES",
            show_default=", ".join(f"{age:g}" for age in DEFAULT_AGES),
        ),
    ] = None,
    streams: Annotated[int, typer.Option("--streams", help="How many streams.", min=1, metavar="N")] = 25,
    seed: Annotated[int, typer.Option("--seed", help="The first of them.", min=0, metavar="N")] = 0,
    split: Annotated[
        str, typer.Option("--split", help="Streams to report on (test) or to choose settings by (validation).")
    ] = "test",
    layers: Annotated[
        list[int] | None,
        typer.Option("--layer", help="Layer to search by, instead of the model's. Repeatable.", min=0, metavar="N"),
    ] = None,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    policy: options.PolicyOption = None,
    layout: options.LayoutOption = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    recall_tokens: options.RecallTokens = None,
    archive_memory: options.ArchiveMemory = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Ask about what happened once, minutes ago: with recall, without it, and with the right second put back by hand.

    The model is the shipped one, whose world the streams are made of.
    Questions about now are asked as well: recall must not spoil them.
    Nothing that is asked stays in the history.
    Ctrl-C prints the results so far.
    """
    from omnitide_cli.bench.quality.encodings import SharedModel
    from omnitide_cli.bench.recall.measure import lines, measure
    from omnitide_cli.bench.world.split import SPLITS
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.errors import INTERRUPTED
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.session.configuration import RECALLED_SHARE, engine_options, settings_of, with_recall
    from omnitide_cli.session.interrupt import Interrupt

    options.check_names("split", [split], list(SPLITS))
    manifest = find_manifest(model, mmproj)
    chosen = engine_options(manifest, settings_of(context.params))
    if chosen.recall_tokens is None:
        chosen = replace(chosen, recall_tokens=chosen.low_watermark // RECALLED_SHARE)
    chosen = with_recall(manifest, chosen)
    if layers:
        chosen = replace(chosen, recall_layers=tuple(sorted(set(layers))))
    if not chosen.recall_budget:
        raise UsageError(f"{manifest.name} recalls nothing with these settings", "give --layer and --recall-tokens")
    files = fetch_files(manifest, mmproj, say)
    status = StatusLine(sys.stderr)
    ages_s = sorted({round(60 * age) for age in ages or DEFAULT_AGES})
    with Interrupt() as interrupt, SharedModel(files, manifest.prompt, chosen) as shared:
        shared.check(chosen)
        seeds = range(seed, seed + streams)
        trials = list(measure(shared, chosen, SPLITS[split], seeds, ages_s, lambda: interrupt.requested, status.show))
    status.clear()
    found = lines(trials)
    settings: dict[str, Any] = {"model": manifest.name, "split": split, "layers": list(chosen.recall_layers)}
    rows = [{**asdict(line), **settings, "recall_tokens": chosen.recall_budget} for line in found]
    for line in map(json.dumps, rows) if json_lines else _table(found):
        print(line)
    save_rows(out, "recall", rows)
    save_rows(out, "recall-questions", [asdict(trial) for trial in trials])
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def _table(found: Sequence[Line]) -> Iterator[str]:
    from omnitide_cli.formats.table import columns

    head = ["asked after", "for", "n", "hits at 1/4/8", "recalled", "right", "without", "oracle", "search", "insert"]
    yield from columns([head, *map(_cells, found)])
    yield ""
    yield "right: answers of n; without: without recall; oracle: with the right second put back by hand; times in ms"


def _cells(line: Line) -> list[str]:
    what = "now" if line.kind == "now" else {"sound": "a word", "image": "a figure"}[line.sense]
    hits = "" if line.kind == "now" else "/".join(map(str, line.hits))
    oracle = "" if line.kind == "now" else f"{line.oracle}"
    counts = [f"{line.recalled}", f"{line.right}", f"{line.without}", oracle]
    times = [f"{line.search_ms:.1f}", f"{line.insert_ms:.1f}"]
    return [f"{line.age_s / 60:g} min", what, f"{line.n}", hits, *counts, *times]

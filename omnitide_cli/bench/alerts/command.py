"""`omnitide bench alerts`: whether rules tell what happens, in time and once, and what they cost."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, save_rows
from omnitide_cli.bench.common.subject import say
from omnitide_cli.commands import options

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from omnitide_cli.bench.alerts.measure import Line

THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
HOLDS = (1, 2)


def alerts(
    context: typer.Context,
    streams: Annotated[int, typer.Option("--streams", help="How many streams with events.", min=1, metavar="N")] = 30,
    eventless: Annotated[int, typer.Option("--eventless", help="How many without any.", min=0, metavar="N")] = 30,
    units: Annotated[int, typer.Option("--units", help="Seconds of a stream.", min=30, metavar="N")] = 120,
    seed: Annotated[int, typer.Option("--seed", help="The first stream.", min=0, metavar="N")] = 0,
    split: Annotated[
        str, typer.Option("--split", help="Streams to report on (test) or to choose settings by (validation).")
    ] = "test",
    thresholds: Annotated[
        list[float] | None,
        typer.Option(
            "--threshold",
            help="Probability from which a yes counts. Repeatable.",
            min=0.001,
            max=0.999,
            metavar="P",
            show_default=", ".join(map(str, THRESHOLDS)),
        ),
    ] = None,
    holds: Annotated[
        list[int] | None,
        typer.Option(
            "--hold",
            help="Yeses in a row. Repeatable.",
            min=1,
            max=100,
            metavar="N",
            show_default=", ".join(map(str, HOLDS)),
        ),
    ] = None,
    hints: Annotated[
        bool, typer.Option("--hints/--no-hints", help="Let rules say which senses they are about.")
    ] = True,
    alert_every: options.AlertEvery = 2.0,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    policy: options.PolicyOption = None,
    layout: options.LayoutOption = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Let a figure be seen, a word be heard, or both, now and then: what rules tell of it, and how late.

    The model is the shipped one, whose world the streams are made of.
    Each stream has three rules, one for each of these.
    In streams without events, every alert is a false alarm.
    Ctrl-C prints the results so far.
    """
    from omnitide_cli.bench.alerts.measure import lines, traces
    from omnitide_cli.bench.quality.encodings import SharedModel
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
    with Interrupt() as interrupt, SharedModel(files, manifest.prompt, chosen) as shared:
        shared.check(chosen)
        busy, calm = (
            list(
                traces(
                    shared,
                    chosen,
                    SPLITS[split],
                    range(first, first + count),
                    units,
                    lambda: interrupt.requested,
                    status.show,
                    happens=happens,
                )
            )
            for first, count, happens in ((seed, streams, True), (seed + streams, eventless, False))
        )
        status.clear()
    found = [
        line
        for threshold in sorted(set(thresholds or THRESHOLDS))
        for hold in sorted(set(holds or HOLDS))
        for line in lines(busy, calm, threshold, hold, alert_every, hints=hints)
    ]
    rows = [
        {**asdict(line), "model": manifest.name, "split": split, "every": alert_every, "hints": hints} for line in found
    ]
    for text in map(json.dumps, rows) if json_lines else _table(found):
        print(text)
    save_rows(out, "alerts", rows)
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def _table(found: Sequence[Line]) -> Iterator[str]:
    from omnitide_cli.bench.alerts.measure import IN_TIME_S, best
    from omnitide_cli.formats.table import columns

    head = ["threshold", "hold", "rule", "events", "in time", "late", "false", "precision", "recall", "F1", "delay"]
    yield from columns([[*head, "false/h", "checks/s", "ms", "cost"], *map(_cells, found)])
    chosen = best([line for line in found if line.sense == "all"])
    yield ""
    yield f"in time: within {IN_TIME_S:g} s; false: told while nothing happened; false/h: in streams without events"
    yield "checks/s, ms: how often a rule is checked, how long one takes; cost: against the stream's (all: three rules)"
    yield f"the best F1 below one false alarm an hour: threshold {chosen.threshold:g}, hold {chosen.hold}"


def _cells(line: Line) -> list[str]:
    shares = [f"{value:.3f}" for value in (line.precision, line.recall, line.f1)]
    counts = [f"{line.events}", f"{line.in_time}", f"{line.late}", f"{line.false}"]
    costs = [f"{line.false_an_hour:.2f}", f"{line.asked_share:.2f}", f"{line.ask_ms:.1f}", f"{line.cost:.1%}"]
    return [f"{line.threshold:g}", f"{line.hold}", line.sense, *counts, *shares, f"{line.delay_s:.2f} s", *costs]

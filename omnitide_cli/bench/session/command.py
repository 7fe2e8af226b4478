"""`omnitide bench session`: whole sessions, and what a memory for keys and values lasts for."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, Row, save_rows, show_all
from omnitide_cli.bench.common.subject import (
    Layers,
    Shape,
    Watermarks,
    language_model,
    machine_options,
    policies_to_compare,
    say,
    watermark_pairs,
)
from omnitide_cli.commands import options
from omnitide_cli.errors import UsageError

if TYPE_CHECKING:
    from omnitide_cli.bench.session.measure import Job, Run
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.session.interrupt import Interrupt

UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def session(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Argument(help="A clip. Not with --shape.", metavar="SOURCE", show_default=False)
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", help="Policy to measure. Repeatable.", metavar="POLICY", show_default="full, omnipick"
        ),
    ] = None,
    watermarks: Watermarks = None,
    units: Annotated[
        int | None,
        typer.Option("--units", help="Stop after this many units.", min=1, metavar="N", show_default="all of it"),
    ] = None,
    every: options.Every = None,
    kv_budget: Annotated[
        str | None,
        typer.Option(
            "--kv-budget",
            help="Find how many seconds fit this many bytes of keys and values.",
            metavar="4GiB",
            show_default=False,
        ),
    ] = None,
    attention: Annotated[
        bool, typer.Option("--attention", help="Add a run of each that measures attention's share of prefill.")
    ] = False,
    repeat: Annotated[int, typer.Option("--repeat", help="Runs of each, interleaved.", min=1, metavar="N")] = 1,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    shape: Shape = None,
    layers: Layers = None,
    image: Annotated[
        int | None, typer.Option("--image", help="Image tokens per unit of the shape.", min=0, metavar="N")
    ] = None,
    audio: Annotated[int, typer.Option("--audio", help="Audio tokens per unit of the shape.", min=0, metavar="N")] = 25,
    layout: options.LayoutOption = None,
    positions: options.PositionsOption = None,
    ctx: options.Ctx = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Run a clip through whole sessions, one process each: time by stage, percentiles per unit, memory.

    --kv-budget tells after how many seconds of media the cache exceeds that
    size. With --shape no model runs: units of that shape go through eviction
    in a cache of that shape. Ctrl-C prints the results so far.
    """
    from omnitide_cli.bench.session.plot import figure, memory, named, times
    from omnitide_cli.errors import INTERRUPTED
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.session.configuration import settings_of
    from omnitide_cli.session.interrupt import Interrupt

    names = policies or ["full", "omnipick"]
    budget = None if kv_budget is None else byte_count(kv_budget)
    status = StatusLine(sys.stderr)
    settings = settings_of(context.params)
    with Interrupt() as interrupt:
        if shape is not None:
            if source is not None or model or budget is None:
                raise UsageError(
                    "--shape works only with --kv-budget", "leave out SOURCE and --model, and give --kv-budget"
                )
            found = []
            sizes = (image, audio)
            budgets = _shape_budgets(shape, layers, sizes, names, watermarks, budget, settings, interrupt, status)
        else:
            if source is None:
                raise UsageError("there is nothing to watch", "give a clip, or --shape with --kv-budget")
            from omnitide_cli.bench.session.budget import budget_of_run

            jobs = _jobs(source, names, watermarks, units, every, model, mmproj, settings)
            found = _run(jobs, repeat, attention, interrupt, status)
            budgets = [] if budget is None else [asdict(budget_of_run(run, budget)) for run in found]
    status.clear()
    rows = [asdict(run.row) for run in found]
    if json_lines:
        show_all([*rows, *budgets], json_lines)
    else:
        for table in (times(rows), memory(rows)):
            if table:
                show_all(table, json_lines)
        for row in budgets:
            print(f"{named(row)}, {kv_budget}: {row['says']}")
    save_rows(out, "session", rows, figure(rows) if out and rows else None)
    save_rows(out, "session-budget", budgets)
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def byte_count(text: str) -> int:
    """Bytes of 4GiB, 500MB, 4294967296. Raises UsageError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)", text.strip())
    if not found or found[2] not in UNITS:
        raise UsageError(f"--kv-budget {text}: not a size in bytes", "for example --kv-budget 4GiB")
    return int(float(found[1]) * UNITS[found[2]])


def _cases(names: list[str], pairs: list[tuple[int, int]]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Every policy at every pair of watermarks, but `full`, which has none, once."""
    for index, pair in enumerate(pairs):
        for name in names:
            if name != "full" or index == 0:
                yield name, pair


def _jobs(
    source: str,
    names: list[str],
    watermarks: list[str] | None,
    units: int | None,
    every: list[str] | None,
    model: str | None,
    mmproj: str | None,
    settings: dict[str, object],
) -> list[Job]:
    from omnitide_cli.bench.session.measure import Job
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.session.configuration import engine_options, frame_fit
    from omnitide_cli.session.schedule import parse_repeated

    manifest = find_manifest(model, mmproj)
    chosen = engine_options(manifest, settings)
    asked = [parse_repeated(text, "--every") for text in every or ()]
    files = fetch_files(manifest, mmproj, say)
    return [
        Job(
            files,
            manifest.prompt,
            replace(chosen, policy=name, high_watermark=high, low_watermark=low),
            source,
            frame_fit(manifest, None),
            manifest.hears,
            units,
            tuple((question.seconds, question.text) for question in asked),
        )
        for name, (high, low) in _cases(policies_to_compare(names, chosen), watermark_pairs(watermarks, chosen))
    ]


def _run(jobs: list[Job], repeat: int, attention: bool, interrupt: Interrupt, status: StatusLine) -> list[Run]:
    """Every job in turn, `repeat` times; those that came to something."""
    from omnitide_cli.bench.common.subprocess import run_in_subprocess
    from omnitide_cli.bench.session.measure import run_session, typical, with_attention

    runs: dict[str, list[Run]] = {}
    for job in jobs * repeat:
        if interrupt.requested:
            break
        run = run_in_subprocess(run_session, job, progress=status.show, stopped=lambda: interrupt.requested)
        if run.row.units:
            runs.setdefault(job.name, []).append(run)
    found = {name: typical(each) for name, each in runs.items()}
    for job in jobs if attention else ():
        if interrupt.requested:
            break
        watched = replace(job, watched=True)
        run = run_in_subprocess(run_session, watched, progress=status.show, stopped=lambda: interrupt.requested)
        if job.name in found and not run.row.stopped:
            found[job.name] = with_attention(found[job.name], run)
    return list(found.values())


def _shape_budgets(
    shape: str,
    layers: int | None,
    sizes: tuple[int | None, int],
    names: list[str],
    watermarks: list[str] | None,
    budget: int,
    settings: dict[str, object],
    interrupt: Interrupt,
    status: StatusLine,
) -> list[Row]:
    from omnitide_cli.bench.common.fixture import Fixture
    from omnitide_cli.bench.common.shapes import find_shape
    from omnitide_cli.bench.session.budget import budget_of_shape
    from omnitide_cli.runtime.options import check_watermarks
    from omnitide_cli.runtime.simulation import Stream, image_tokens
    from omnitide_cli.runtime.sizing import check_low_watermark

    file, unit_tokens = language_model(None, shape, layers)
    scale = find_shape(shape).layers / (layers or find_shape(shape).layers)
    stream = Stream(0, image_tokens(unit_tokens, sizes[1]) if sizes[0] is None else sizes[0], sizes[1])
    chosen = machine_options(**settings, unit_tokens=stream.unit_tokens)
    rows = []
    with Fixture(file, chosen) as fixture:
        for name, marks in _cases(policies_to_compare(names, chosen), watermark_pairs(watermarks, chosen)):
            limits = replace(chosen, policy=name, high_watermark=marks[0], low_watermark=marks[1])
            check_watermarks(limits)
            check_low_watermark(limits, stream.system_tokens)
            if interrupt.requested:
                break
            rows.append(asdict(budget_of_shape(fixture, stream, name, marks, budget, scale, status.show)))
    return rows

"""`omnitide bench quality`: how well questions are answered under each retention policy."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from omnitide_cli.bench.common.rows import Json, Out, Row, save_rows
from omnitide_cli.bench.common.subject import Watermarks, policies_to_compare, say, watermark_pairs
from omnitide_cli.bench.quality.sweep import parse_sweep, policies_swept
from omnitide_cli.commands import options
from omnitide_cli.errors import OmniTideError, UsageError
from omnitide_cli.runtime.options import KNOBS, POSITIONS

if TYPE_CHECKING:
    from omnitide_cli.formats.plot import Bars, Figure, Lines, Value
    from omnitide_cli.runtime.options import EngineOptions


LIMIT = 60  # questions, where it isn't the user who wrote them


@options.with_knobs(before="threads")
def quality(
    videos: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VIDEO]...", help="Your own clips, with --questions.", show_default=False),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", help="A policy, or FILE.py:FUNCTION. Repeatable.", metavar="POLICY", show_default="all"
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", help="Questions per policy.", min=1, metavar="N", show_default="60, or all of --questions"
        ),
    ] = None,
    units: Annotated[int, typer.Option("--units", help="Seconds per stream.", min=2, metavar="N")] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first stream.", min=0, metavar="N")] = 0,
    split: Annotated[
        Literal["test", "validation"],
        typer.Option("--split", help="Tune on validation; report test.", show_default=True),
    ] = "test",
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            help="Try a policy's setting with each of these values; not on --split test. Repeatable.",
            metavar="SETTING=N,N,...",
            show_default=False,
        ),
    ] = None,
    simple: Annotated[
        bool,
        typer.Option(
            "--simple", help="Leave out printed signs and groups of shapes, which the shipped model doesn't know."
        ),
    ] = False,
    watermarks: Watermarks = None,
    dataset: Annotated[
        Path | None,
        typer.Option(
            "--dataset",
            help="Use StreamingBench's questions and videos from this folder.",
            exists=True,
            file_okay=False,
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            "--questions",
            help='Score your own clips, one {"at": 12.5, "ask": "...", "accept": "..."} per line.',
            dir_okay=False,
            metavar="FILE.jsonl",
            show_default=False,
        ),
    ] = None,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    layout: options.LayoutOption = None,
    positions: Annotated[
        list[str] | None,
        typer.Option("--positions", help="compact or sparse. Repeatable.", show_default="compact"),
    ] = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    out: Out = None,
    json_lines: Json = False,
    **knobs: Any,
) -> None:
    """Ask about generated streams under each eviction policy, and count the right answers.

    Questions are about now, about something earlier, or how often so far.
    All policies see the same streams and hear the same questions.
    With --questions FILE.jsonl, your own clips are watched and your own
    questions asked: "at" is seconds or "0:12"; "accept" is a text, a list of
    texts, or {"pattern": "regular expression"}.
    Ctrl-C prints the results so far.
    """
    from omnitide_cli.bench.quality.encodings import SharedModel
    from omnitide_cli.bench.quality.measure import fill
    from omnitide_cli.bench.quality.own_clips import own_tasks, read_own_questions
    from omnitide_cli.bench.quality.report import quality_lines
    from omnitide_cli.bench.quality.results import results
    from omnitide_cli.bench.quality.streamingbench import dataset_exams
    from omnitide_cli.bench.quality.task import world_tasks
    from omnitide_cli.bench.world.split import SPLITS
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.errors import INTERRUPTED
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.session.configuration import engine_options, frame_fit
    from omnitide_cli.session.interrupt import Interrupt

    options.check_names("positions", positions or (), POSITIONS)
    if (questions is None) != (not videos):
        raise UsageError("--questions and clips go together", "for example --questions FILE.jsonl VIDEO")
    if questions is not None and dataset is not None:
        raise UsageError("--questions and --dataset can't be combined", "leave one of them out")
    own = [] if questions is None else read_own_questions(questions)
    manifest = find_manifest(model, mmproj)
    flags: dict[str, Any] = knobs | {
        "layout": layout,
        "threads": threads,
        "cache_type": cache_type,
        "flash_attn": flash_attn,
    }
    chosen = engine_options(manifest, flags)
    pairs = watermark_pairs(watermarks, chosen)
    changes = [change for text in sweep or () for change in parse_sweep(text)]
    if changes and questions is None and (split == "test" or dataset is not None):
        raise UsageError(
            "--sweep: settings must not be tuned on the streams that results are reported on", "add --split validation"
        )
    names = policies_to_compare(policies_swept(changes, policies), chosen)
    found = results(chosen, names, pairs, positions or ("compact",), changes)
    files = fetch_files(manifest, mmproj, say)
    fit = frame_fit(manifest, None)
    if questions is not None:
        tasks = own_tasks(own, videos or (), fit, limit, hears=manifest.hears)
        asked = {"model": manifest.name, "questions": str(questions)}
    elif dataset is not None:
        tasks = dataset_exams(dataset, fit, limit or LIMIT, hears=manifest.hears)
        asked = {"model": manifest.name, "dataset": str(dataset)}
    else:
        tasks = world_tasks(SPLITS[split], seed, units, limit or LIMIT, simple=simple)
        asked = {"model": manifest.name, "units": units, "seed": seed, "split": split, "simple": simple}
    status = StatusLine(sys.stderr)
    with Interrupt() as interrupt, SharedModel(files, manifest.prompt, chosen) as shared:
        for each in found:
            shared.check(each.options)
        failure: OmniTideError | None = None
        try:
            fill(found, shared, tasks, lambda: interrupt.requested, status.show)
        except OmniTideError as error:  # what was answered by then counts all the same
            failure = error
        finally:
            status.clear()
    rows = [{**asdict(row), **asked, **_settings(each.options)} for each in found for row in each.rows()]
    for line in map(json.dumps, rows) if json_lines or not rows else quality_lines(rows):
        print(line)
    save_rows(out, "quality", rows, _figure(rows) if out and rows else None)
    save_rows(out, "quality-questions", [answer for each in found for answer in each.answers()])
    if interrupt.requested:
        print("interrupted: the policies may have answered different questions", file=sys.stderr)
        raise typer.Exit(INTERRUPTED)
    if failure is not None:
        raise failure


def _settings(options: EngineOptions) -> Row:
    """What answers depend on besides the policy; None: the policy's own choice."""
    return {name: getattr(options, name) for name in (*KNOBS, "layout", "cache_type")}


def _figure(rows: list[Row]) -> Figure:
    from omnitide_cli.formats.plot import Figure

    plain = [row for row in rows if not row["setting"]]
    swept = list(dict.fromkeys(row["setting"].partition("=")[0] for row in rows if row["setting"]))
    return Figure("TideBench", [_bars(plain), *(_curve(name, rows) for name in swept)])


def _percent(row: Row) -> Value:
    from omnitide_cli.formats.plot import Value

    return Value(100 * row["accuracy"], 100 * row["low"], 100 * row["high"])


def _bars(rows: list[Row]) -> Bars:
    """Policies at their watermarks."""
    from omnitide_cli.formats.plot import Bars

    places = {row["positions"] for row in rows}

    def named(row: Row) -> str:
        marks = "" if row["high_watermark"] is None else f"{row['high_watermark']}/{row['low_watermark']}"
        place = row["positions"] if len(places) > 1 and row["policy"] != "full" else ""
        return " ".join(part for part in (row["policy"], marks, place) if part)

    groups = list(dict.fromkeys(map(named, rows)))
    found = {(named(row), row["kind"]): _percent(row) for row in rows}
    kinds = {
        kind: [found.get((group, kind)) for group in groups] for kind in dict.fromkeys(row["kind"] for row in rows)
    }
    return Bars("right answers, %, with 95 % intervals", groups, kinds)


def _curve(name: str, rows: list[Row]) -> Lines:
    """One setting, each kind of question (of each policy) a line; `auto` stands behind the largest number."""
    from omnitide_cli.formats.plot import Lines

    values = {row["setting"]: row["setting"].partition("=")[2] for row in rows if row["setting"].startswith(f"{name}=")}
    numbers = sorted(float(value) for value in values.values() if value != "auto")
    behind = numbers[-1] + max(1, (numbers[-1] - numbers[0]) // 8) if numbers else 0
    kinds: dict[str, list[tuple[float, Value]]] = {}
    policies = {row["policy"] for row in rows if row["setting"] in values}
    for row in rows:
        if row["setting"] in values:
            value = values[row["setting"]]
            place = behind if value == "auto" else float(value)
            kinds.setdefault(_series(row, policies), []).append((place, _percent(row)))
    names: dict[float, str] = {behind: "auto"} if "auto" in values.values() else {}
    return Lines(f"right answers, %, by {name}", name, kinds, x_names=names)


def _series(row: Row, policies: set[str]) -> str:
    return row["kind"] if len(policies) == 1 else f"{row['policy']}, {row['kind']}"

"""`omnitide bench`: measurements that anyone can repeat on their own machine."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnitide_cli.commands import options, quality
from omnitide_cli.display.table import columns
from omnitide_cli.errors import UsageError

if TYPE_CHECKING:
    from omnitide_cli.bench.fidelity import FidelityRow
    from omnitide_cli.runtime.options import EngineOptions

LEAST_UNITS = 300

Shape = Annotated[
    str | None,
    typer.Option("--shape", help="Random weights of a real model's shape instead of a model.", metavar="NAME"),
]
Layers = Annotated[int | None, typer.Option("--layers", help="So many layers of the shape.", min=1, metavar="N")]
Repeat = Annotated[int, typer.Option("--repeat", help="Runs of each, interleaved.", min=1, metavar="N")]

app = typer.Typer(help="Measure speed and steadiness on this machine.", no_args_is_help=True)
app.command()(quality.quality)

Json = Annotated[bool, typer.Option("--json", help="One JSON object a row.")]


@app.command()
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
    _show(row, json_lines)


@app.command()
def startup(
    repeat: Annotated[int, typer.Option("--repeat", help="Runs of each.", min=1, metavar="N")] = 15,
    json_lines: Json = False,
) -> None:
    """Time `omnitide --help` beside a bare Typer app with three commands."""
    from omnitide_cli.bench.startup import startup as run

    _show(run(repeat), json_lines)


@app.command()
def calibrate(
    model: options.Model = None,
    shape: Shape = None,
    layers: Layers = None,
    repeat: Repeat = 5,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    save: Annotated[bool, typer.Option("--save/--no-save", help="Keep the costs for later sessions.")] = True,
    json_lines: Json = False,
) -> None:
    """Measure what attention and moving cost here, for --layout auto, and how well that foretells other layouts."""
    from omnitide_cli.bench.calibrate import calibrate as run
    from omnitide_cli.bench.stage import Stage
    from omnitide_cli.catalog.folders import costs_file
    from omnitide_cli.display.status import StatusLine
    from omnitide_cli.runtime.costs import save_costs

    file, unit_tokens = _language_model(model, shape, layers)
    status = StatusLine(sys.stderr)
    with Stage(file, _machine_options(threads, cache_type, flash_attn)) as stage:
        found = run(stage, unit_tokens, repeat, lambda done, of: status.show(f"layout {done} of {of}"))
        status.clear()
        if save:
            save_costs(costs_file(), stage.model.cost_key(stage.options), found.costs)
    _show_all([{"type": "costs", **asdict(found.costs)}], json_lines)
    _show_all([asdict(prediction) for prediction in found.predictions], json_lines)


@app.command()
def layout(
    model: options.Model = None,
    shape: Shape = None,
    layers: Layers = None,
    layouts: Annotated[
        list[str] | None,
        typer.Option("--layout", help="Besides native and eager; repeatable.", metavar="LAYOUT", show_default="all"),
    ] = None,
    image: Annotated[int | None, typer.Option("--image", help="Image tokens a unit.", min=0, metavar="N")] = None,
    audio: Annotated[int, typer.Option("--audio", help="Audio tokens a unit.", min=0, metavar="N")] = 25,
    cycles: Annotated[int, typer.Option("--cycles", help="Retentions to measure.", min=1, metavar="N")] = 4,
    repeat: Repeat = 3,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    json_lines: Json = False,
) -> None:
    """Compare layouts under identical retention: attention, migration, and the share of eager's gain that is left."""
    from dataclasses import replace

    from omnitide_cli.bench.layout import compare_layouts
    from omnitide_cli.bench.stage import Stage
    from omnitide_cli.display.status import StatusLine
    from omnitide_cli.runtime.options import check_watermarks
    from omnitide_cli.runtime.simulation import Stream

    names = layouts or ["class-packing", "ordered-suffix", "auto"]
    options.check_names("layout", names, options.LAYOUTS)
    file, unit_tokens = _language_model(model, shape, layers)
    marks = {"high_watermark": high_watermark, "low_watermark": low_watermark}
    chosen = _machine_options(threads, cache_type, flash_attn)
    chosen = replace(chosen, **{name: mark for name, mark in marks.items() if mark is not None})
    check_watermarks(chosen)
    stream = Stream(0, max(unit_tokens - 29, 0) if image is None else image, audio)
    status = StatusLine(sys.stderr)
    with Stage(file, replace(chosen, unit_tokens=stream.unit_tokens)) as stage:
        rows = compare_layouts(
            stage, stream, names, cycles, repeat, lambda done, of: status.show(f"run {done} of {of}")
        )
    status.clear()
    _show_all([asdict(row) for row in rows], json_lines)


@app.command()
def fidelity(
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="Besides full context; repeatable.", metavar="POLICY", show_default="all"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="A known name or a .gguf file.", metavar="MODEL", show_default="SmolLM2-135M"),
    ] = None,
    units: Annotated[int, typer.Option("--units", help="Paragraphs a stream.", min=2, max=64, metavar="N")] = 40,
    streams: Annotated[int, typer.Option("--streams", help="Streams of each.", min=1, metavar="N")] = 2,
    seed: Annotated[int, typer.Option("--seed", help="Of the first stream.", min=0, metavar="N")] = 0,
    high_watermark: Annotated[int, typer.Option("--high-watermark", help="Tokens.", metavar="N")] = 800,
    low_watermark: Annotated[int, typer.Option("--low-watermark", help="Tokens.", metavar="N")] = 560,
    text_budget: Annotated[int, typer.Option("--text-budget", help="OmniPick's, in tokens.", metavar="N")] = 80,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    json_lines: Json = False,
) -> None:
    """Compare policies with full context on text: KL divergence, top-1 agreement, facts recalled, by positions."""
    from dataclasses import replace

    from omnitide_cli.bench.fidelity import compare_policies, packaged_weights
    from omnitide_cli.bench.stage import Stage
    from omnitide_cli.commands.interrupt import Interrupt
    from omnitide_cli.commands.run import INTERRUPTED
    from omnitide_cli.display.status import StatusLine
    from omnitide_cli.runtime.options import check_watermarks

    names = list(dict.fromkeys(policies or options.POLICIES))
    options.check_names("policy", names, options.POLICIES)
    chosen = replace(
        _machine_options(threads, cache_type, flash_attn),
        high_watermark=high_watermark,
        low_watermark=low_watermark,
        text_budget=text_budget,
    )
    check_watermarks(chosen)
    file = _language_model(model, None, None)[0] if model else packaged_weights()
    status = StatusLine(sys.stderr)
    with Interrupt() as interrupt, Stage(file, chosen) as stage:
        rows = compare_policies(
            stage,
            names,
            units=units,
            streams=streams,
            seed=seed,
            progress=status.show,
            stopped=lambda: interrupt.requested,
        )
        status.clear()
        if rows:
            _show_all([asdict(row) if json_lines else _fidelity_cells(row) for row in rows], json_lines)
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def _fidelity_cells(row: FidelityRow) -> dict[str, Any]:
    """A row that fits 80 columns: each interval as its wider side."""

    def within(name: str) -> str:
        mean, low, high = (getattr(row, name + end) for end in ("", "_low", "_high"))
        return f"{mean:.2f} ±{max(high - mean, mean - low):.2f}"

    def share(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    return {
        "policy": row.policy,
        "positions": row.positions,
        "kl": within("kl"),
        "top1": within("top1"),
        "needle": within("needle"),
        "near": share(row.needle_recent),
        "far": share(row.needle_older),
        "n": row.n,
    }


def _language_model(model: str | None, shape: str | None, layers: int | None) -> tuple[Path, int]:
    """The file to measure and the tokens of one unit."""
    from omnitide_cli.bench.shapes import find_shape, shape_file
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.catalog.folders import cache_dir

    def say(message: str) -> None:
        print(message, file=sys.stderr)

    if shape and model:
        raise UsageError("--shape and --model can't both be measured", "leave one out")
    if shape:
        return shape_file(shape, layers, cache_dir() / "shapes", say), find_shape(shape).unit_tokens
    manifest = find_manifest(model)
    return fetch_files(manifest, None, say).model, manifest.unit_tokens(1.0)


def _machine_options(threads: int | None, cache_type: str | None, flash_attn: str | None) -> EngineOptions:
    from omnitide_cli.catalog.folders import costs_file
    from omnitide_cli.runtime.options import EngineOptions

    chosen = {"threads": threads, "cache_type": cache_type, "flash_attn": flash_attn}
    return EngineOptions(**{k: v for k, v in chosen.items() if v is not None}, costs_file=costs_file())  # type: ignore[arg-type]


def _show_all(rows: list[dict[str, Any]], json_lines: bool) -> None:
    """One object a line, or one table."""
    if json_lines:
        for row in rows:
            print(json.dumps(row))
        return
    names = [name for name in rows[0] if name != "type"]
    print("\n".join(columns([names, *([_cell(row[name]) for name in names] for row in rows)])) + "\n")


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _show(row: Any, json_lines: bool) -> None:
    fields = asdict(row)
    if json_lines:
        print(json.dumps(fields))
        return
    width = max(map(len, fields))
    for name, value in fields.items():
        if name != "type":
            print(f"{name:<{width}}  {value:.4g}" if isinstance(value, float) else f"{name:<{width}}  {value}")

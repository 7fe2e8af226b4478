"""`omnitide bench fidelity`: policies against full context, on text."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnitide_cli.bench.common.rows import Json, Out, Row, save_rows, show_all
from omnitide_cli.bench.common.subject import language_model, machine_options, policies_to_compare
from omnitide_cli.commands import options

if TYPE_CHECKING:
    from omnitide_cli.bench.fidelity.measure import FidelityRow
    from omnitide_cli.formats.plot import Figure


def fidelity(
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", help="Policy to compare with full context. Repeatable.", metavar="POLICY", show_default="all"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="A known model, or the path of a .gguf file.", metavar="MODEL", show_default="SmolLM2-135M"
        ),
    ] = None,
    units: Annotated[int, typer.Option("--units", help="Paragraphs per stream.", min=2, max=64, metavar="N")] = 40,
    streams: Annotated[int, typer.Option("--streams", help="Streams of each kind.", min=1, metavar="N")] = 2,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first stream.", min=0, metavar="N")] = 0,
    high_watermark: Annotated[
        int, typer.Option("--high-watermark", help="Evict above this many tokens.", metavar="N")
    ] = 800,
    low_watermark: Annotated[
        int, typer.Option("--low-watermark", help="Evict down to this many tokens.", metavar="N")
    ] = 560,
    text_budget: Annotated[int, typer.Option("--text-budget", help="OmniPick's text budget.", metavar="N")] = 80,
    threads: options.Threads = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Compare policies with full context on text: KL divergence, top-1 agreement, facts recalled."""
    from omnitide_cli.bench.common.fixture import Fixture
    from omnitide_cli.bench.fidelity.measure import compare_policies, packaged_weights
    from omnitide_cli.errors import INTERRUPTED
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.runtime.options import check_watermarks
    from omnitide_cli.session.interrupt import Interrupt

    chosen = machine_options(
        threads=threads,
        cache_type=cache_type,
        flash_attn=flash_attn,
        high_watermark=high_watermark,
        low_watermark=low_watermark,
        text_budget=text_budget,
    )
    check_watermarks(chosen)
    names = policies_to_compare(policies, chosen)
    file = language_model(model, None, None)[0] if model else packaged_weights()
    status = StatusLine(sys.stderr)
    with Interrupt() as interrupt, Fixture(file, chosen) as fixture:
        rows = compare_policies(
            fixture,
            names,
            units=units,
            streams=streams,
            seed=seed,
            progress=status.show,
            stopped=lambda: interrupt.requested,
        )
        status.clear()
        if rows:
            show_all([asdict(row) if json_lines else _cells(row) for row in rows], json_lines)
            kept = [asdict(row) for row in rows]
            save_rows(out, "fidelity", kept, _figure(kept) if out else None)
    if interrupt.requested:
        raise typer.Exit(INTERRUPTED)


def _figure(rows: list[Row]) -> Figure:
    from omnitide_cli.formats.plot import Bars, Figure, Value

    def bars(title: str, name: str) -> Bars:
        values = [Value(*(row[name + end] for end in ("", "_low", "_high"))) for row in rows]
        return Bars(title, [f"{row['policy']}, {row['positions']}" for row in rows], {name: values})

    charts = [bars("KL divergence from full context, nats", "kl"), bars("same likeliest token", "top1")]
    return Figure("Policies against full context, 95 % intervals", [*charts, bars("facts recalled", "needle")])


def _cells(row: FidelityRow) -> dict[str, Any]:
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

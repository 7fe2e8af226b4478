"""`omnitide bench drift`: what hundreds of evictions do to keys and answers."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.bench.common.rows import Json, Out, Row, save_rows, show_all
from omnitide_cli.bench.common.subject import say
from omnitide_cli.commands import options
from omnitide_cli.errors import UsageError

if TYPE_CHECKING:
    from omnitide_cli.formats.plot import Figure

DEFAULT_ROUNDS = (1, 10, 100)
UNFIT = {
    "full": "evicts nothing",
    "h2o": "keeps what attention reads most, which differs between cache types",
}


def drift(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help="A short clip; it is played in a loop.", metavar="SOURCE")],
    rounds: Annotated[
        list[int] | None,
        typer.Option(
            "--rounds",
            help="Measure after this many evictions. Repeatable.",
            min=1,
            metavar="N",
            show_default=", ".join(map(str, DEFAULT_ROUNDS)),
        ),
    ] = None,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    policy: options.PolicyOption = None,
    layout: options.LayoutOption = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    threads: options.Threads = None,
    out: Out = None,
    json_lines: Json = False,
) -> None:
    """Measure how evictions change cached keys and next-token distributions, by positions and cache type.

    Keys: relative error in the first layer, against a fresh run over the kept
    tokens (compact positions) or against the keys first computed (sparse).
    KL: against a session with the same evictions and an f32 cache.
    """
    from omnitide_cli.bench.common.fixture import Fixture
    from omnitide_cli.bench.drift.measure import Tape, measure_drift
    from omnitide_cli.bench.soak.measure import decoded
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.formats.status import StatusLine
    from omnitide_cli.runtime.template import TokenTemplate
    from omnitide_cli.session.configuration import engine_options, frame_fit, settings_of

    if policy in UNFIT:
        raise UsageError(f"--policy {policy} {UNFIT[policy]}", "choose another policy")
    manifest = find_manifest(model, mmproj)
    chosen = engine_options(manifest, settings_of(context.params))
    files = fetch_files(manifest, mmproj, say)
    clip = decoded(source, frame_fit(manifest, None), audio=manifest.hears)
    status = StatusLine(sys.stderr)
    with Fixture(files.model, chosen, files.mmproj) as fixture:
        tape = Tape(fixture, TokenTemplate.of(manifest.prompt, fixture.model), clip, manifest.default_question)
        found = list(measure_drift(fixture, tape, rounds or DEFAULT_ROUNDS, status.show))
    status.clear()
    rows = [asdict(row) for row in found]
    show_all(rows, json_lines)
    save_rows(out, "drift", rows, _figure(rows) if out else None)


def _figure(rows: list[Row]) -> Figure:
    from omnitide_cli.formats.plot import Bars, Figure, Value

    counts = list(dict.fromkeys(row["rounds"] for row in rows))
    cases = list(dict.fromkeys((row["positions"], row["cache_type"]) for row in rows))
    found = {(row["positions"], row["cache_type"], row["rounds"]): row for row in rows}

    def bars(title: str, name: str, factor: float) -> Bars:
        series = {f"after {n}": [Value(found[(*case, n)][name] * factor) for case in cases] for n in counts}
        return Bars(title, [", ".join(case) for case in cases], series)

    keys = bars("relative error of the kept tokens' keys, %", "key_rel_err", 100)
    return Figure("Keys and answers after evictions", [keys, bars("KL divergence from an f32 cache, nats", "kl", 1)])

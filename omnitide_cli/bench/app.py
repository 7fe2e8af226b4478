"""`omnitide bench`: measurements that anyone can repeat on their own machine. One folder a benchmark."""

from __future__ import annotations

import typer

from omnitide_cli.commands.lazy import Entry, lazily

NAMES = (
    "quality",
    "recall",
    "change",
    "alerts",
    "soak",
    "startup",
    "busy",
    "calibrate",
    "latency",
    "layout",
    "fidelity",
    "peers",
    "session",
    "drift",
)

app = typer.Typer(
    cls=lazily({name: Entry(f"omnitide_cli.bench.{name}.command:{name}") for name in NAMES}),
    no_args_is_help=True,
)


@app.callback()
def _bench() -> None: ...

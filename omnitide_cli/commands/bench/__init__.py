"""`omnitide bench`: measurements that anyone can repeat on their own machine. One module a command."""

from __future__ import annotations

import typer

from omnitide_cli.commands.bench import (
    calibrate,
    drift,
    fidelity,
    latency,
    layout,
    peers,
    quality,
    session,
    soak,
    startup,
)

app = typer.Typer(help="Measure speed, memory, steadiness and answers on this machine.", no_args_is_help=True)
app.command()(quality.quality)
app.command()(soak.soak)
app.command()(startup.startup)
app.command()(calibrate.calibrate)
app.command()(latency.latency)
app.command()(layout.layout)
app.command()(fidelity.fidelity)
app.command()(peers.peers)
app.command()(session.session)
app.command()(drift.drift)

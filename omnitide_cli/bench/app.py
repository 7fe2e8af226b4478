"""`omnitide bench`: measurements that anyone can repeat on their own machine. One folder a benchmark."""

from __future__ import annotations

import typer

from omnitide_cli.bench.calibrate.command import calibrate
from omnitide_cli.bench.drift.command import drift
from omnitide_cli.bench.fidelity.command import fidelity
from omnitide_cli.bench.latency.command import latency
from omnitide_cli.bench.layout.command import layout
from omnitide_cli.bench.peers.command import peers
from omnitide_cli.bench.quality.command import quality
from omnitide_cli.bench.session.command import session
from omnitide_cli.bench.soak.command import soak
from omnitide_cli.bench.startup.command import startup

app = typer.Typer(help="Measure speed, memory, stability and answers on this machine.", no_args_is_help=True)
for command in (quality, soak, startup, calibrate, latency, layout, fidelity, peers, session, drift):
    app.command()(command)

"""How long `omnitide --help` takes beside a bare three-command Typer app: whole processes, interleaved, medians."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

BARE_APP = """
import typer
app = typer.Typer()
@app.command()
def one(): ...
@app.command()
def two(): ...
@app.command()
def three(): ...
app()
"""


@dataclass(frozen=True, slots=True)
class StartupRow:
    """Medians of `repeat` runs each; ratio = ours ÷ bare."""

    omnitide_ms: float
    bare_ms: float
    ratio: float
    repeat: int
    type: str = "startup"


def startup(repeat: int) -> StartupRow:
    """Run both `repeat` times, one after the other in turn."""
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE_APP, encoding="utf-8")
        commands = {
            "omnitide": [sys.executable, "-m", "omnitide_cli", "--help"],
            "bare": [sys.executable, str(bare), "--help"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():  # both once for the file cache
            _run(command)
        for _ in range(repeat):
            for name, command in commands.items():
                times[name].append(_run(command))
    ours, theirs = median(times["omnitide"]), median(times["bare"])
    return StartupRow(omnitide_ms=ours, bare_ms=theirs, ratio=ours / theirs, repeat=repeat)


def _run(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000

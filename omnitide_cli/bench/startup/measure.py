"""How long help takes beside a bare Typer app of three commands: whole processes, interleaved, medians of ratios.

`watch --help` shows some fifty options, which Typer takes its time to draw; so its bare command has as many.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

BARE_APP = """
from typing import Annotated
import typer
app = typer.Typer(rich_markup_mode="rich")
@app.command()
def one(): ...
@app.command()
def two(): ...
@app.command()
def three(OPTIONS): ...
app()
"""
BARE_OPTION = 'option_{}: Annotated[str, typer.Option(help="As many words as an option has.", metavar="WORD")] = ""'
OPTION = re.compile(r"^│ +--", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StartupRow:
    """Medians of `repeat` runs each; ratio: the median of ours ÷ bare, run by run."""

    omnitide_ms: float
    bare_ms: float
    ratio: float
    repeat: int
    command: str = "omnitide --help"
    type: str = "startup"


def startup(repeat: int) -> list[StartupRow]:
    """Run help of the whole and of `watch` `repeat` times, each in turn with its bare counterpart."""
    ours = [sys.executable, "-m", "omnitide_cli"]
    shown = subprocess.run([*ours, "watch", "--help"], check=True, capture_output=True, text=True).stdout
    options = ", ".join(BARE_OPTION.format(number) for number in range(len(OPTION.findall(shown))))
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE_APP.replace("OPTIONS", options), encoding="utf-8")
        rows = []
        for arguments, counterpart in ((["--help"], ["--help"]), (["watch", "--help"], ["three", "--help"])):
            pair = [*ours, *arguments], [sys.executable, str(bare), *counterpart]
            for command in pair:  # both once for the file cache
                _run(command)
            times = [(_run(pair[0]), _run(pair[1])) for _ in range(repeat)]
            rows.append(
                StartupRow(
                    omnitide_ms=median(ours_ms for ours_ms, _ in times),
                    bare_ms=median(bare_ms for _, bare_ms in times),
                    ratio=median(ours_ms / bare_ms for ours_ms, bare_ms in times),
                    repeat=repeat,
                    command=" ".join(["omnitide", *arguments]),
                )
            )
    return rows


def _run(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return (time.perf_counter() - began) * 1000

"""`omnitide inspect-kv`: how the history lies in the cache."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnitide_cli.catalog.folders import runtime_dir
from omnitide_cli.commands import options
from omnitide_cli.errors import UsageError

if TYPE_CHECKING:
    from omnitide_cli.runtime.kv_state import SessionSnapshot, Simulation

SIMULATION = "Simulation"
SAVED, SVG = ".tide", ".svg"

EPILOG = """
[bold]Examples[/bold]

omnitide inspect-kv                          the running or the last session

omnitide inspect-kv --watch                  refreshed twice a second

omnitide inspect-kv --history --svg kv.svg   how full the cache was, over time

omnitide inspect-kv talk-4711 --json         one of several sessions, as JSON

omnitide inspect-kv talk.tide                a saved session

omnitide inspect-kv --simulate 60 --image 256 --audio 25 --layout eager
"""

SESSION_HELP = "A session's name or the start of it, its process ID, or a saved FILE.tide; by default the newest."


def _option(flag: str, text: str, **more: Any) -> Any:
    """Without a variable: these describe one run."""
    return typer.Option(flag, help=text, rich_help_panel=SIMULATION, **more)


def _session_names(incomplete: str) -> list[str]:
    from omnitide_cli.runtime.published import sessions

    names = [each.state.session for each in sessions(runtime_dir())[0]]
    return [name for name in names if name.startswith(incomplete)]


@options.with_knobs(before="json_object")
def inspect_kv(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help=SESSION_HELP, show_default=False, autocompletion=_session_names),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh the view until the session ends.")] = False,
    history: Annotated[bool, typer.Option("--history", help="Show a chart over time instead of the map.")] = False,
    svg: Annotated[
        Path | None,
        typer.Option("--svg", help="Also write the view to a file.", metavar="FILE", show_default=False),
    ] = None,
    units: Annotated[
        int | None,
        _option("--simulate", "Simulate this many units, without a model.", min=1, metavar="UNITS", show_default=False),
    ] = None,
    image: Annotated[int, _option("--image", "Image tokens per unit.", min=0, metavar="N")] = 0,
    audio: Annotated[int, _option("--audio", "Audio tokens per unit.", min=0, metavar="N")] = 0,
    slices: Annotated[
        int,
        _option(
            "--slices", "Cut each picture into N slices beside the whole, each of --image tokens.", min=0, metavar="N"
        ),
    ] = 0,
    boundary: Annotated[int, _option("--boundary", "Marker tokens per unit.", min=0, metavar="N")] = 4,
    system_tokens: Annotated[int, _option("--system-tokens", "Tokens of the system prompt.", min=0, metavar="N")] = 32,
    page_size: Annotated[int, _option("--page-size", "Cells per page.", min=1, max=4096, metavar="N")] = 64,
    shape: Annotated[
        str | None,
        _option("--shape", "Give sizes in bytes, as for this known model.", metavar="NAME", show_default=False),
    ] = None,
    policy: options.PolicyOption = None,
    layout: options.LayoutOption = None,
    positions: options.PositionsOption = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    **knobs: Any,
) -> None:
    """Show what a session's cache holds, where it lies, and what was evicted and moved."""
    if svg is not None and svg.suffix.lower() != SVG:
        raise UsageError(f"--svg {svg}: only SVG files are written", f"for example --svg {svg.with_suffix(SVG)}")
    shown = _Shown(history, svg, json_object)
    if units is None:
        _inspect(session, watch, shown)
        return
    if session is not None or watch:
        other = "--watch" if session is None else f"a session ({session})"
        raise UsageError(f"{other} and --simulate can't be used together", "leave one out")
    from omnitide_cli.runtime.options import EngineOptions
    from omnitide_cli.runtime.simulation import Stream, simulate

    wanted: dict[str, Any] = knobs | {
        "policy": policy,
        "layout": layout,
        "positions": positions,
        "high_watermark": high_watermark,
        "low_watermark": low_watermark,
    }
    chosen = EngineOptions(**{name: value for name, value in wanted.items() if value is not None})
    stream = Stream(units, image, audio, slices, system_tokens, boundary)
    simulation = simulate(chosen, stream, page_size=page_size, bytes_per_cell=_bytes_per_cell(shape, chosen.cache_type))
    shown.once(simulation)


@dataclass(frozen=True, slots=True)
class _Shown:
    """How a session is shown."""

    history: bool
    svg: Path | None
    json_object: bool

    def once(self, subject: SessionSnapshot | Simulation, others: str = "") -> None:
        """On standard output, and in the file."""
        from omnitide_cli.formats.status import columns
        from omnitide_cli.inspect.kv_view import SVG_COLUMNS, save_svg, show

        if self.json_object:
            print(json.dumps(subject.to_json()), flush=True)
        else:
            show(subject, sys.stdout, history=self.history, others=others)
        if self.svg:
            width = columns(sys.stdout) if sys.stdout.isatty() else SVG_COLUMNS
            save_svg(subject, self.svg, width, history=self.history)


def _inspect(wanted: str | None, watch: bool, shown: _Shown) -> None:
    if wanted and Path(wanted).suffix == SAVED:
        from omnitide_cli.runtime.saved_view import saved_snapshot

        if watch:
            raise UsageError(f"{wanted} is a file: there is nothing to watch", "leave out --watch")
        shown.once(saved_snapshot(Path(wanted)))
        return
    from omnitide_cli.runtime.published import choose

    snapshot, others = choose(runtime_dir(), wanted)
    if watch:
        from omnitide_cli.inspect.follow import watch_session

        snapshot = watch_session(snapshot, history=shown.history, json_lines=shown.json_object)
        if shown.json_object:  # its last line has been written
            shown = replace(shown, json_object=False)
            if not shown.svg:
                return
    shown.once(snapshot, others)


def _bytes_per_cell(shape: str | None, cache_type: str) -> int:
    """Bytes of one cell in the cache of a known model; 0 without one. Raises ModelError for an unknown name."""
    if shape is None:
        return 0
    from omnitide_cli.catalog.manifest import load_manifest
    from omnitide_cli.runtime.model import BYTES_PER_VALUE

    known = load_manifest(shape).shape
    return int(2 * known.layers * known.kv_heads * known.head_dim * BYTES_PER_VALUE[cache_type])

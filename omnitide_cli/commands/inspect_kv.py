"""`omnitide inspect-kv`: how the history lies in the cache."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from omnitide_cli.commands import options
from omnitide_cli.errors import UsageError

SIMULATION = "Simulation"

EPILOG = """
[bold]Examples[/bold]

omnitide inspect-kv --simulate 60 --image 256 --audio 25

omnitide inspect-kv --simulate 60 --image 256 --audio 25 --layout class-packing --shape qwen2.5-omni-3b --json
"""


def _option(flag: str, text: str, **more: Any) -> Any:
    """Without a variable: these describe one run."""
    return typer.Option(flag, help=text, rich_help_panel=SIMULATION, **more)


def inspect_kv(
    session: Annotated[
        str | None, typer.Argument(metavar="SESSION", help="Not yet: use --simulate.", show_default=False)
    ] = None,
    units: Annotated[
        int | None,
        _option("--simulate", "Feed so many units, without a model.", min=1, metavar="UNITS", show_default=False),
    ] = None,
    image: Annotated[int, _option("--image", "Tokens of a unit's picture.", min=0, metavar="N")] = 0,
    audio: Annotated[int, _option("--audio", "Tokens of a unit's sound.", min=0, metavar="N")] = 0,
    slices: Annotated[
        int, _option("--slices", "Pictures are a source and N slices, all of --image tokens.", min=0, metavar="N")
    ] = 0,
    boundary: Annotated[int, _option("--boundary", "Tokens of a unit's markers.", min=0, metavar="N")] = 4,
    system_tokens: Annotated[int, _option("--system-tokens", "Tokens of the system text.", min=0, metavar="N")] = 32,
    page_size: Annotated[int, _option("--page-size", "Cells of a page.", min=1, max=4096, metavar="N")] = 64,
    shape: Annotated[
        str | None, _option("--shape", "A known model, to tell bytes.", metavar="NAME", show_default=False)
    ] = None,
    policy: options.PolicyOption = None,
    layout: options.LayoutOption = None,
    positions: options.PositionsOption = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    recent_units: options.RecentUnits = None,
    image_sinks: options.ImageSinks = None,
    audio_sinks: options.AudioSinks = None,
    json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show how the history lies in the cache: pages, holes, spans."""
    if units is None:
        raise UsageError(
            "inspect-kv can't look into sessions yet",
            "simulate one: omnitide inspect-kv --simulate 60 --image 256 --audio 25",
        )
    if session is not None:
        raise UsageError(f"a session ({session}) and --simulate exclude each other", "leave one of them out")
    from omnitide_cli.runtime.options import EngineOptions
    from omnitide_cli.runtime.simulation import Stream, simulate

    wanted = {
        "policy": policy,
        "layout": layout,
        "positions": positions,
        "high_watermark": high_watermark,
        "low_watermark": low_watermark,
        "recent_units": recent_units,
        "image_sinks": image_sinks,
        "audio_sinks": audio_sinks,
    }
    chosen = EngineOptions(**{name: value for name, value in wanted.items() if value is not None})
    stream = Stream(units, image, audio, slices, system_tokens, boundary)
    simulation = simulate(chosen, stream, page_size=page_size, bytes_per_cell=_bytes_per_cell(shape, chosen.cache_type))
    if json_object:
        print(json.dumps(simulation.to_json()))
    else:
        from omnitide_cli.display.kv_map import show

        show(simulation, sys.stdout)


def _bytes_per_cell(shape: str | None, cache_type: str) -> int:
    """Bytes of one cell in the cache of a known model; 0 without one. Raises ModelError for an unknown name."""
    if shape is None:
        return 0
    from omnitide_cli.catalog.manifest import load_manifest
    from omnitide_cli.runtime.model import BYTES_PER_VALUE

    known = load_manifest(shape).shape
    return int(2 * known.layers * known.kv_heads * known.head_dim * BYTES_PER_VALUE[cache_type])

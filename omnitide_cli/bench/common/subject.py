"""What a benchmark measures: a model or a shape, and the machine's settings."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnitide_cli.commands import options
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.options import POLICIES, is_own_policy

if TYPE_CHECKING:
    from omnitide_cli.runtime.options import EngineOptions

Shape = Annotated[
    str | None,
    typer.Option("--shape", help="Measure random weights of a real model's shape instead of a model.", metavar="NAME"),
]
Layers = Annotated[
    int | None, typer.Option("--layers", help="Use only this many layers of the shape.", min=1, metavar="N")
]
Repeat = Annotated[int, typer.Option("--repeat", help="Runs of each, interleaved.", min=1, metavar="N")]
Watermarks = Annotated[
    list[str] | None,
    typer.Option(
        "--watermarks", help="Watermarks to measure. Repeatable.", metavar="HIGH/LOW", show_default="the model's"
    ),
]


def say(message: str) -> None:
    """What a person may want to know meanwhile."""
    print(message, file=sys.stderr)


def watermark_pairs(given: list[str] | None, options: EngineOptions) -> list[tuple[int, int]]:
    """(high, low) of each HIGH/LOW, else those of `options`. Raises UsageError."""
    return [_watermarks(text) for text in given or ()] or [(options.high_watermark, options.low_watermark)]


def _watermarks(text: str) -> tuple[int, int]:
    high, _, low = text.partition("/")
    if not (high.isdecimal() and low.isdecimal() and 0 < int(low) < int(high)):
        raise UsageError(
            f"--watermarks {text}: not a high watermark and a lower one", "for example --watermarks 2500/1800"
        )
    return int(high), int(low)


def language_model(model: str | None, shape: str | None, layers: int | None) -> tuple[Path, int]:
    """The file to measure and the tokens of one unit."""
    from omnitide_cli.bench.common.shapes import find_shape, shape_file
    from omnitide_cli.catalog.files import fetch_files, find_manifest
    from omnitide_cli.catalog.folders import cache_dir

    if shape and model:
        raise UsageError("--shape and --model can't be used together", "leave one out")
    if shape:
        return shape_file(shape, layers, cache_dir() / "shapes", say), find_shape(shape).unit_tokens
    manifest = find_manifest(model)
    return fetch_files(manifest, None, say).model, manifest.unit_tokens(1.0)


def machine_options(**wanted: Any) -> EngineOptions:
    """Engine settings without a manifest: what is not None, else defaults; this machine's costs."""
    from omnitide_cli.catalog.folders import costs_file
    from omnitide_cli.runtime.options import EngineOptions

    return EngineOptions(**{k: v for k, v in wanted.items() if v is not None}, costs_file=costs_file())


def policies_to_compare(wanted: Sequence[str] | None, chosen: EngineOptions) -> list[str]:
    """Those asked for, else all that the settings allow. Raises UsageError."""
    from omnitide_cli.runtime.options import check_policy

    options.check_names("policy", [name for name in wanted or () if not is_own_policy(name)], POLICIES)
    names = []
    for policy in dict.fromkeys(wanted or POLICIES):
        try:
            check_policy(replace(chosen, policy=policy))
        except UsageError as error:
            if wanted:
                raise
            say(f"{policy} was skipped: {error.message}")
        else:
            names.append(policy)
    return names

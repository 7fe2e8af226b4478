"""From a manifest and the flags to what runtime and media are opened with. Imported when a command runs."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from omnitide_cli.catalog.folders import costs_file
from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.media import FrameFit, SourceWarning
from omnitide_cli.runtime.options import EngineOptions, check_policy, check_watermarks

if TYPE_CHECKING:
    import typer


def engine_options(manifest: Manifest, wanted: dict[str, Any]) -> EngineOptions:
    """Flags over the manifest's defaults over the runtime's. Raises UsageError."""
    layers = asdict(manifest.defaults), {**wanted, "costs_file": costs_file()}
    chosen = EngineOptions(**{name: value for layer in layers for name, value in layer.items() if value is not None})
    check_watermarks(chosen)
    check_policy(chosen)
    return chosen


def settings_of(context: typer.Context) -> dict[str, Any]:
    """The flags of `watch` and `live` that are settings of the engine: each has the name of its field."""
    return {field.name: context.params[field.name] for field in fields(EngineOptions) if field.name in context.params}


def frame_fit(manifest: Manifest, image_tokens: int | None) -> FrameFit:
    """How a model wants its frames, under a lower cap if one is given."""
    frames = manifest.frames.capped(image_tokens)
    if frames.mode == "square":
        return FrameFit.square(frames.size)
    if frames.mode == "slices":
        return FrameFit.slices(frames.size, max_slices=frames.slices)
    return FrameFit.patches(frames.multiple, max_tokens=frames.max_tokens)


def sound_left_out(manifest: Manifest) -> SourceWarning:
    """What is told when a source has sound and the model has no encoder for it."""
    return SourceWarning("no-sound", f"{manifest.title} takes no sound: it is left out", "--no-audio hushes this")


def given(context: typer.Context) -> set[str]:
    """Fields of the media plan that a flag, a variable or a file of settings says."""
    fields = {"no_video": "video", "no_audio": "audio", "loop": "loops"}
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {fields.get(name, name) for name, found in sources.items() if found is not None and found.name != "DEFAULT"}

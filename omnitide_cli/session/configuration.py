"""From a manifest and the flags to what runtime and media are opened with. Imported when a command runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

from omnitide_cli.catalog.folders import costs_file, state_dir
from omnitide_cli.catalog.manifest import LEAST_PATCHES, Manifest
from omnitide_cli.errors import ModelError
from omnitide_cli.media import FrameFit, SoundFormat, SourceWarning
from omnitide_cli.runtime.options import SOUND_ENCODERS, EngineOptions, check_policy, check_watermarks

if TYPE_CHECKING:
    from omnitide_cli.runtime.engine import Engine

RECALLED_SHARE = 4
"""By this the low watermark is divided: so many tokens come back for a question."""

NO_PICTURE = 28
"""Pixels of a side, where pictures aren't looked at."""


def engine_options(
    manifest: Manifest, wanted: Mapping[str, Any], *, unit_seconds: float = 1.0, image_tokens: int | None = None
) -> EngineOptions:
    """Flags over the manifest's defaults over the runtime's, for units of so many seconds with frames of at most
    `image_tokens` tokens (None: the model's own). Raises UsageError."""
    unit_tokens = manifest.unit_tokens(unit_seconds, image_tokens)
    own = {**asdict(manifest.defaults), "change_mean": manifest.change.mean, "change_peak": manifest.change.peak}
    layers = own, {**wanted, "unit_tokens": unit_tokens, "costs_file": costs_file()}
    chosen = EngineOptions(**{name: value for layer in layers for name, value in layer.items() if value is not None})
    check_watermarks(chosen)
    check_policy(chosen)
    return chosen


def with_recall(manifest: Manifest, options: EngineOptions) -> EngineOptions:
    """The same with recall: what is cut comes back for questions about it, in a quarter of the low watermark.

    Unasked it is on for models that somebody has measured it on: their manifests name the layers to search by. Where
    it is asked for (`--recall-tokens`) and nobody has, the one in the middle is taken.
    """
    tokens, layers = options.recall_tokens, tuple(manifest.recall.layers)
    if tokens is None:
        tokens = options.low_watermark // RECALLED_SHARE if layers else 0
    if tokens and not layers and manifest.shape.layers:
        layers = (manifest.shape.layers // 2,)
    return replace(
        options,
        recall_tokens=tokens,
        recall_layers=layers,
        recall_reference=manifest.recall.reference,
        recall_threshold=manifest.recall.threshold,
        archive_folder=state_dir() / "archive",
    )


def settings_of(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Those flags that are settings of the engine: each has the name of its field."""
    return {field.name: flags[field.name] for field in fields(EngineOptions) if field.name in flags}


def frame_fit(manifest: Manifest, image_tokens: int | None) -> FrameFit:
    """How a model wants its frames, under a lower cap if one is given."""
    frames = manifest.frames.capped(image_tokens)
    if frames.mode in ("square", "fixed"):
        return FrameFit.square(frames.size)
    if frames.mode == "slices":
        return FrameFit.slices(frames.size, max_slices=frames.slices)
    if frames.mode == "none":
        return FrameFit.square(NO_PICTURE)
    least = max(LEAST_PATCHES, frames.min_tokens)
    return FrameFit.patches(frames.multiple, max_tokens=frames.max_tokens, min_tokens=least)


def pictures_left_out(manifest: Manifest) -> SourceWarning:
    """What is told when a source has pictures and the model has no encoder for them."""
    message = f"{manifest.title} can't see pictures, so they are ignored"
    return SourceWarning("no-pictures", message, "--no-video silences this warning")


def sound_format(manifest: Manifest) -> SoundFormat:
    """The sound that a model wants."""
    encoder = SOUND_ENCODERS[manifest.audio.encoder]
    return SoundFormat(encoder.rate, encoder.before, encoder.after, encoder.shortest)


def check_sound(manifest: Manifest, engine: Engine) -> None:
    """Raise ModelError where a source was asked for other sound than the loaded model hears."""
    hears = engine.audio_format
    if hears is not None and hears.encoder != manifest.audio.encoder:
        raise ModelError(
            f"the manifest of {manifest.title} names the sound encoder {manifest.audio.encoder}, but the model"
            f" has {hears.encoder}",
            f'put encoder = "{hears.encoder}" under [audio] in its manifest',
        )


def sound_left_out(manifest: Manifest) -> SourceWarning:
    """What is told when a source has sound and the model has no encoder for it."""
    message = f"{manifest.title} can't hear sound, so it is ignored"
    return SourceWarning("no-sound", message, "--no-audio silences this warning")

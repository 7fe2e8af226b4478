"""What a source says about itself before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import av
from av.container import InputContainer

from omnitide_cli.media.container import picture_stream, sound_stream
from omnitide_cli.media.picture import display_turn


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Facts about a source; what its header does not tell is None."""

    duration: float | None
    """Seconds."""
    has_video: bool
    has_audio: bool
    width: int | None
    """Pixels of the upright picture."""
    height: int | None
    fps: float | None
    video_codec: str | None
    audio_codec: str | None


class SourceWarning(NamedTuple):
    """Something that the user should know, and what can be done about it."""

    code: str
    message: str
    hint: str


def describe(container: InputContainer, first_frame: av.VideoFrame | None) -> SourceInfo:
    """Read the facts from an open container and, for the way a camera was held, its first frame."""
    picture, sound = picture_stream(container), sound_stream(container)
    width, height = (picture.width, picture.height) if picture is not None else (None, None)
    if first_frame is not None and display_turn(first_frame)[0] % 2:
        width, height = height, width
    rate = picture.average_rate or picture.guessed_rate if picture is not None else None
    return SourceInfo(
        duration=container.duration / av.time_base if container.duration and container.duration > 0 else None,
        has_video=picture is not None,
        has_audio=sound is not None,
        width=width,
        height=height,
        fps=float(rate) if rate else None,
        video_codec=picture.codec_context.codec.canonical_name if picture is not None else None,
        audio_codec=sound.codec_context.codec.canonical_name if sound is not None else None,
    )

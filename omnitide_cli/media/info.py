"""What a source says about itself before it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import av
from av.audio.stream import AudioStream
from av.container import InputContainer

from omnitide_cli.media.picture import display_turn
from omnitide_cli.media.streams import picture_stream

HEADERS_WITH_DURATION = ("mov", "matroska", "avi", "flac")
"""Formats whose header says how long they are; elsewhere libav estimates, from the first bit rate or the last time."""

SURE_BY_SIZE = ("wav", "w64", "aiff", "au", "caf")
"""Their header says it, too, and what is joined behind is seen by the size of the file."""


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Facts about a source; what its header does not tell is None."""

    duration: float | None
    """Seconds; what is only estimated is None."""
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


def stated_duration(container: InputContainer) -> float | None:
    """Seconds that a container's header says it lasts; None for what libav has estimated."""
    if not container.duration or container.duration <= 0:
        return None
    seconds, name = container.duration / av.time_base, container.format.name
    if name.startswith(HEADERS_WITH_DURATION) or name == "hls":  # a finished playlist lists its pieces
        return seconds
    if name in SURE_BY_SIZE and container.bit_rate:
        by_size = 8 * container.size / container.bit_rate
        return seconds if abs(by_size - seconds) <= 1 + seconds / 50 else None
    return None


def describe(container: InputContainer, sound: AudioStream | None, first_frame: av.VideoFrame | None) -> SourceInfo:
    """Read the facts from an open container, the sound that is heard and, for the way a camera was held, the first
    frame."""
    picture = picture_stream(container)
    width, height = (picture.width, picture.height) if picture is not None else (None, None)
    if first_frame is not None and display_turn(first_frame)[0] % 2:
        width, height = height, width
    rate = picture.average_rate or picture.guessed_rate if picture is not None else None
    return SourceInfo(
        duration=stated_duration(container),
        has_video=picture is not None,
        has_audio=sound is not None,
        width=width,
        height=height,
        fps=float(rate) if rate else None,
        video_codec=picture.codec_context.codec.canonical_name if picture is not None else None,
        audio_codec=sound.codec_context.codec.canonical_name if sound is not None else None,
    )

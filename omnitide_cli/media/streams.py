"""Which of a container's streams are seen and heard, and what its tracks and programmes are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from av.audio.stream import AudioStream
from av.container import InputContainer
from av.logging import INFO, get_level, set_level
from av.stream import Disposition, Stream
from av.video.stream import VideoStream

COVER = Disposition.attached_pic | Disposition.timed_thumbnails
VARIANTS = ("hls", "dash")
"""Formats whose programmes are the same content at other rates."""

_PROGRAMME = re.compile(r"^  Program (\d+)")
_NAME = re.compile(r"^\s+(?:service_name|title)\s*: (.+)")
_STREAM = re.compile(r"^\s+Stream #\d+:(\d+)(?:\[[^\]]*\])?(?:\([^)]*\))?: (?:Video|Audio): (\w+)")


@dataclass(frozen=True, slots=True)
class Programme:
    """A part of a transport stream that belongs together, as a station."""

    name: str
    streams: frozenset[int]


def picture_stream(container: InputContainer) -> VideoStream | None:
    """The stream of moving pictures; the cover of an album is none."""
    streams = [s for s in container.streams.video if is_moving(s) and is_decodable(s)]
    return next((s for s in streams if s.disposition & Disposition.default), streams[0] if streams else None)


def sound_streams(container: InputContainer) -> list[AudioStream]:
    """All sound tracks that can be decoded, in the file's order: --audio-track counts them from 1."""
    return [s for s in container.streams.audio if is_decodable(s)]


def sound_candidates(container: InputContainer, programmes: Sequence[Programme]) -> list[AudioStream]:
    """The tracks that may be heard with the picture, the first choice first: those of its own programme."""
    streams, picture = sound_streams(container), picture_stream(container)
    own = next((p for p in programmes if picture is not None and picture.index in p.streams), None)
    if own is None and picture is None and programmes:
        own = next((p for p in programmes if any(s.index in p.streams for s in streams)), None)
    if own is not None:
        streams = [s for s in streams if s.index in own.streams]
    return sorted(streams, key=lambda s: not s.disposition & Disposition.default)


def programmes_of(container: InputContainer) -> list[Programme]:
    """The programmes of a transport stream; none for formats that don't know them.

    PyAV has no attribute for them. What libav prints about a container has.
    """
    found: list[tuple[str, set[int]]] = []
    open_one = False
    for line in _description(container):
        if number := _PROGRAMME.match(line):
            found.append((number[1], set()))
            open_one = True
        elif line.startswith("  No Program"):
            open_one = False
        elif found and open_one and (stream := _STREAM.match(line)):
            found[-1][1].add(int(stream[1]))
        elif found and open_one and not found[-1][1] and (name := _NAME.match(line)):
            found[-1] = (name[1].strip(), found[-1][1])
    return [Programme(name, frozenset(streams)) for name, streams in found if streams]


def codec_names(container: InputContainer) -> list[str]:
    """What its pictures and sounds are coded in, as libav calls it; known also where they can't be decoded."""
    return [stream[2] for line in _description(container) if (stream := _STREAM.match(line))]


def track_name(container: InputContainer, stream: AudioStream) -> str:
    """`2 (deu, Director's comments)`: its number for --audio-track, then what the file says of it."""
    number = sound_streams(container).index(stream) + 1
    words = [word for word in (stream.language, stream.metadata.get("title")) if word and word != "und"]
    return f"{number} ({', '.join(words)})" if words else str(number)


def is_moving(stream: VideoStream) -> bool:
    """Whether it is no cover or thumbnail."""
    return not stream.disposition & COVER


def is_decodable(stream: Stream) -> bool:
    """Whether this build of libav has a decoder for it."""
    return stream.codec_context is not None


def _description(container: InputContainer) -> list[str]:
    level = get_level()
    set_level(INFO)  # below, libav's description is empty; PyAV takes it, so that nothing is printed
    try:
        return cast(Any, container).dumps_format().splitlines()  # its stubs lack it
    finally:
        set_level(level)

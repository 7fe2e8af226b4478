"""Makers of small clips whose content a test can know: colours, flashes and beeps at given times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.stream import Disposition
from av.video.stream import VideoStream
from numpy.typing import NDArray

Picture = Callable[[float], NDArray[np.uint8]]
Wave = Callable[[NDArray[np.float64]], NDArray[np.float64]]
CLOCK = Fraction(1, 90_000)
OWN_CLOCK = ("mpeg4", "mpeg1video", "mpeg2video")
"""Codecs whose time base is that of their frames."""


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (64, 48)) -> Picture:
    """One colour all the time; `size` is (width, height)."""
    frame = np.full((size[1], size[0], 3), colour, np.uint8)
    return lambda _: frame


def counting(size: tuple[int, int] = (64, 48)) -> Picture:
    """Grey that says which second it is: 10 in the first, 20 in the second, …"""
    return lambda time: np.full((size[1], size[0], 3), min(255, 10 + 10 * int(time + 1e-6)), np.uint8)


def flashes(times: Sequence[float], size: tuple[int, int] = (64, 48), length: float = 0.2) -> Picture:
    """Black, but white for `length` seconds from each of `times`."""

    def picture(time: float) -> NDArray[np.uint8]:
        lit = any(at - 1e-6 <= time < at + length - 1e-6 for at in times)
        return np.full((size[1], size[0], 3), 255 if lit else 0, np.uint8)

    return picture


def tone(amplitude: float = 0.5, hertz: float = 440.0) -> Wave:
    """A sine all the time."""
    return lambda time: amplitude * np.sin(2 * np.pi * hertz * time)


def beeps(times: Sequence[float], length: float = 0.2) -> Wave:
    """Silence, but a tone of 1 kHz for `length` seconds from each of `times`."""

    def wave(time: NDArray[np.float64]) -> NDArray[np.float64]:
        lit = np.any([(time >= at) & (time < at + length) for at in times], axis=0)
        return np.where(lit, 0.5 * np.sin(2 * np.pi * 1000 * time), 0.0)

    return wave


@dataclass(frozen=True)
class Video:
    """Moving pictures for `make_clip`; `times` replaces an even frame rate."""

    picture: Picture = field(default_factory=lambda: plain((200, 40, 40)))
    seconds: float = 2.0
    fps: Fraction | int = 30
    begin: float = 0.0
    times: Sequence[float] | None = None
    codec: str = "libx264"
    pix_fmt: str = "yuv420p"
    rotation: int = 0
    pixel_ratio: Fraction | None = None


@dataclass(frozen=True)
class Sound:
    """Sound for `make_clip`, the same in all channels; nothing is written within `gap`."""

    wave: Wave = field(default_factory=tone)
    seconds: float = 2.0
    rate: int = 48_000
    layout: str = "stereo"
    begin: float = 0.0
    gap: tuple[float, float] | None = None
    codec: str = "aac"


def make_clip(
    path: Path,
    video: Video | None = None,
    sound: Sound | None = None,
    *,
    offset: float = 0.0,
    cover: bool = False,
    options: dict[str, str] | None = None,
) -> str:
    """Write a clip whose time begins at `offset` seconds; returns its path as a string."""
    with av.open(str(path), "w", options=options or {}) as container:
        pictures = _picture_stream(container, video) if video else None
        sounds = _sound_stream(container, sound) if sound else None
        covers = _cover_stream(container) if cover else None
        if covers is not None:
            frame = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 128, np.uint8), "rgb24")
            container.mux(covers.encode(frame.reformat(format="yuvj420p")))
            container.mux(covers.encode(None))
        frames: list[tuple[float, VideoStream | AudioStream, Any]] = []
        if video and pictures is not None:
            frames += [(frame.time, pictures, frame) for frame in _frames(video, offset)]
        if sound and sounds is not None:
            frames += [(block.time or 0.0, sounds, block) for block in _blocks(sound, offset)]
        # As a camera writes them: picture and sound of a moment stand together.
        for _, stream, frame in sorted(frames, key=lambda entry: entry[0]):
            container.mux(stream.encode(frame))
        for stream in (pictures, sounds):
            if stream is not None:
                container.mux(stream.encode(None))
    return str(path)


def cut_file(path: str | Path, part: float, to: Path) -> str:
    """Copy the first `part` (0 … 1) of the bytes of a file."""
    data = Path(path).read_bytes()
    to.write_bytes(data[: int(len(data) * part)])
    return str(to)


def _picture_stream(container: OutputContainer, video: Video) -> VideoStream:
    fast = {"preset": "ultrafast"} if video.codec in ("libx264", "libx265") else {}
    stream = cast(VideoStream, container.add_stream(video.codec, rate=Fraction(video.fps), options=fast))
    stream.height, stream.width = video.picture(0.0).shape[:2]
    stream.pix_fmt = video.pix_fmt
    stream.codec_context.time_base = CLOCK if video.codec not in OWN_CLOCK else 1 / Fraction(video.fps)
    if video.pixel_ratio is not None:
        stream.codec_context.sample_aspect_ratio = video.pixel_ratio
    if video.rotation:
        stream.set_display_rotation(video.rotation)
    return stream


def _sound_stream(container: OutputContainer, sound: Sound) -> AudioStream:
    return cast(AudioStream, container.add_stream(sound.codec, rate=sound.rate, layout=sound.layout))


def _cover_stream(container: OutputContainer) -> VideoStream:
    stream = cast(VideoStream, container.add_stream("mjpeg", rate=1))
    stream.width = stream.height = 32
    stream.pix_fmt = "yuvj420p"
    stream.disposition = Disposition.attached_pic
    return stream


def _frames(video: Video, offset: float) -> list[av.VideoFrame]:
    count = round(video.seconds * Fraction(video.fps))
    times = video.times if video.times is not None else [float(i / Fraction(video.fps)) for i in range(count)]
    base = CLOCK if video.codec not in OWN_CLOCK else 1 / Fraction(video.fps)
    frames = []
    for index, time in enumerate(times):
        frame = av.VideoFrame.from_ndarray(video.picture(video.begin + time), "rgb24").reformat(format=video.pix_fmt)
        frame.time_base = base
        frame.pts = round((offset + video.begin + time) / base)
        after = times[index + 1] if index + 1 < len(times) else time + float(1 / Fraction(video.fps))
        frame.duration = round((after - time) / base)
        frames.append(frame)
    return frames


def _blocks(sound: Sound, offset: float) -> list[av.AudioFrame]:
    channels = av.AudioLayout(sound.layout).nb_channels
    gap = (round(sound.gap[0] * sound.rate), round(sound.gap[1] * sound.rate)) if sound.gap else (0, 0)
    total, blocks = round(sound.seconds * sound.rate), []
    for first in range(0, total, 1024):
        numbers = np.arange(first, min(first + 1024, total))
        if gap[0] <= first < gap[1]:
            continue
        samples = sound.wave(sound.begin + numbers / sound.rate).astype(np.float32)
        block = av.AudioFrame.from_ndarray(np.tile(samples, (channels, 1)), "fltp", sound.layout)
        block.sample_rate = sound.rate
        block.time_base = Fraction(1, sound.rate)
        block.pts = round((offset + sound.begin) * sound.rate) + first
        blocks.append(block)
    return blocks

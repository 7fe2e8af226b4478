"""Scenes as a video file: H.264 picture and AAC sound. The only module of the world that needs PyAV."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from omnitide_cli.bench.world import picture as pictures
from omnitide_cli.bench.world.picture import Image
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import Wave, play

RATE = 44100


def write_clip(
    path: Path,
    scenes: Sequence[Scene],
    seed: int,
    width: int = 320,
    height: int = 180,
    frames_per_second: int = 25,
) -> None:
    """Render scenes one after another into an MP4. A missing picture is black, a missing sound is silent."""
    rng = np.random.default_rng(seed)
    with av.open(str(path), "w", options={"movflags": "+faststart"}) as container:
        options = {"crf": "26", "preset": "slow", "threads": "1"}  # one thread: the same bytes on any number of cores
        video = container.add_stream("libx264", rate=frames_per_second, options=options)
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        audio = container.add_stream("aac", rate=RATE, layout="mono", bit_rate=64000)
        for index, image in enumerate(
            image for scene in scenes for image in _frames(scene, width, height, frames_per_second, rng)
        ):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, frames_per_second)
            container.mux(video.encode(frame))
        container.mux(video.encode())
        wave = np.concatenate([_faded(scene, rng) for scene in scenes])
        sound = av.AudioFrame.from_ndarray(wave[None], format="fltp", layout="mono")
        sound.sample_rate, sound.pts, sound.time_base = RATE, 0, Fraction(1, RATE)
        container.mux(audio.encode(sound))
        container.mux(audio.encode())


def _frames(scene: Scene, width: int, height: int, rate: int, rng: np.random.Generator) -> list[Image]:
    """Every frame of a scene; a shape sways a little, everything else stands still."""
    count = scene.seconds * rate
    if scene.picture is None:
        return [np.zeros((height, width, 3), np.uint8)] * count
    canvas = pictures.lay_out(scene.picture, rng, width / height)
    phases = 2 * np.pi * np.arange(count) / (2 * rate)
    return [
        pictures.draw(canvas, width, height, 1.5, (0.02 * float(np.sin(phase)), 0.01 * float(np.cos(phase))))
        for phase in phases
    ]


def _faded(scene: Scene, rng: np.random.Generator) -> Wave:
    """A scene's sound with 10 ms of fade at both ends, so that cuts don't click."""
    samples = scene.seconds * RATE
    if scene.sound is None:
        return np.zeros(samples, np.float32)
    wave = play(scene.sound, samples, RATE, rng)
    edge = np.minimum(np.arange(samples), np.arange(samples)[::-1]) / (0.01 * RATE)
    return (wave * np.clip(edge, 0, 1)).astype(np.float32)

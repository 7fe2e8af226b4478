"""Scenes as a video file: H.264 picture and AAC sound."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from omnitide_cli.bench.world import canvas as canvases
from omnitide_cli.bench.world.outside import Image
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import track
from omnitide_cli.bench.world.split import TRAINING, Split

RATE = 44100


def write_clip(
    path: Path,
    scenes: Sequence[Scene],
    seed: int,
    split: Split = TRAINING,
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
        for index, image in enumerate(_frames(scenes, width, height, frames_per_second, split, rng)):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, frames_per_second)
            container.mux(video.encode(frame))
        container.mux(video.encode())
        sounds, seconds = [scene.sound for scene in scenes], [scene.seconds for scene in scenes]
        wave = track(sounds, seconds, RATE, rng, split.voices)
        sound = av.AudioFrame.from_ndarray(wave[None], format="fltp", layout="mono")
        sound.sample_rate, sound.pts, sound.time_base = RATE, 0, Fraction(1, RATE)
        container.mux(audio.encode(sound))
        container.mux(audio.encode())


def _frames(
    scenes: Sequence[Scene], width: int, height: int, rate: int, split: Split, rng: np.random.Generator
) -> Iterator[Image]:
    """Every frame; what is on it sways a little. A picture that shows the same as the one before it goes on."""
    at, before, canvas = 0, None, None
    for scene in scenes:
        if scene.picture != before and scene.picture is not None:
            canvas = canvases.lay_out(scene.picture, rng, width / height, split.backdrops)
        before = scene.picture
        for _ in range(scene.seconds * rate):
            phase = 2 * np.pi * at / (2 * rate)
            at += 1
            if canvas is None or scene.picture is None:
                yield np.zeros((height, width, 3), np.uint8)
            else:
                drift = 0.02 * float(np.sin(phase)), 0.01 * float(np.cos(phase))
                yield canvases.draw(canvas, width, height, 1.5, drift)

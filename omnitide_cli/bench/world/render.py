"""Scenes as the media units that the runtime takes: a 112 × 112 frame and a second of sound with its neighbours."""

from collections.abc import Iterator, Sequence

import numpy as np

from omnitide_cli.bench.world import canvas as canvases
from omnitide_cli.bench.world.outside import Image
from omnitide_cli.bench.world.picture import Picture
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import track
from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.stream import Stream
from omnitide_cli.media.unit import NO_SOUND, WHISPER, MediaUnit

SIDE = 112
ASPECTS = (16 / 9, 16 / 9, 4 / 3, 1.0, 9 / 16, 3 / 2)


def units_of(stream: Stream) -> Iterator[MediaUnit]:
    """The units of a stream, the same ones every time."""
    return render(stream.scenes, stream.split.rng(stream.seed).spawn(1)[0], stream.split)


def render(scenes: Sequence[Scene], rng: np.random.Generator, split: Split) -> Iterator[MediaUnit]:
    """One unit a second, of scenes that follow each other; a missing picture or sound is missing in the unit.

    A picture that shows the same as the one before it is the same picture.
    """
    sounds = [scene.sound for scene in scenes]
    wave = track(sounds, [scene.seconds for scene in scenes], WHISPER.rate, rng, split.voices)
    index, before, frame = 0, None, None
    for scene in scenes:
        if scene.picture != before:
            frame = None if scene.picture is None else frame_of(scene.picture, rng, split)
        before = scene.picture
        for _ in range(scene.seconds):
            first, last = index * WHISPER.rate, (index + 1) * WHISPER.rate
            heard = scene.sound is not None
            yield MediaUnit(
                index=index,
                start=float(index),
                end=float(index + 1),
                frame=frame,
                audio=wave[first:last] if heard else None,
                audio_left=wave[max(0, first - WHISPER.before) : first] if heard else NO_SOUND,
                audio_right=wave[last : last + WHISPER.after] if heard else NO_SOUND,
            )
            index += 1


def frame_of(picture: Picture, rng: np.random.Generator, split: Split, ease: float = 0.0) -> Image:
    """A frame as the runtime would hand it over: any aspect, letterboxed, now and then with a codec's colours.

    With probability `ease` each, it is square and its layout plain. Several figures stand in a wide picture.
    """
    return letterboxed(canvas_of(picture, rng, split, ease), rng)


def canvas_of(
    picture: Picture, rng: np.random.Generator, split: Split, ease: float = 0.0
) -> tuple[canvases.Canvas, float]:
    """A layout and the aspect it is made for."""
    aspect = 1.0 if rng.random() < ease else float(rng.choice(ASPECTS))
    if len(picture.figures) > 1:
        aspect = max(aspect, 1.0)
    return canvases.lay_out(picture, rng, aspect, split.backdrops, plain=bool(rng.random() < ease)), aspect


def letterboxed(laid_out: tuple[canvases.Canvas, float], rng: np.random.Generator) -> Image:
    """Paint what `canvas_of` laid out: uint8 [112, 112, 3]."""
    canvas, aspect = laid_out
    image = canvases.draw(canvas, *canvases.fitted(aspect, SIDE), float(rng.uniform(0.7, 2.5)))
    return canvases.letterbox(_subsampled(image) if rng.random() < 0.4 else image, SIDE)


def _subsampled(image: Image) -> Image:
    """Colour at half resolution, as 4:2:0 video has it."""
    height, width = image.shape[0] // 2 * 2, image.shape[1] // 2 * 2
    part = image[:height, :width].astype(np.float32)
    grey = part.mean(2, keepdims=True)
    colour = (part - grey).reshape(height // 2, 2, width // 2, 2, 3).mean((1, 3)).repeat(2, 0).repeat(2, 1)
    result = image.copy()
    result[:height, :width] = np.clip(grey + colour, 0, 255).astype(np.uint8)
    return result

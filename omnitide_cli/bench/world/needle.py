"""Needles: streams in which a word and, in another second, a figure occur once, early on, and nothing repeats them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from omnitide_cli.bench.world import entity as keys
from omnitide_cli.bench.world.question import Question, plain, sentence
from omnitide_cli.bench.world.scene import Scene, simple_scene
from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.stream import Stream

FIRST, LAST = 2, 40
"""Units among which the needles lie; streams are longer."""
NOW_FORMS = ("see", "hear", "all", "colour")


@dataclass(frozen=True, slots=True)
class Needle:
    """What was there once, in the unit `unit`, and the question for what went with it."""

    unit: int
    question: Question


@dataclass(frozen=True, slots=True)
class NeedleStream:
    """A stream and its needles, a word and a figure."""

    stream: Stream
    needles: tuple[Needle, Needle]

    def now(self, unit: int) -> list[Question]:
        """Questions about the present second, which nothing of the past answers."""
        seen = self.stream.scenes[unit : unit + 1]
        return [question for form in NOW_FORMS if (question := plain(form, seen)) is not None]


def needle_stream(split: Split, seed: int, units: int) -> NeedleStream:
    """The stream of a seed of a split. REQUIRES: units > LAST."""
    rng = split.rng(seed)
    scenes: list[Scene] = []
    while True:
        scenes = [_scene(rng) for _ in range(units)]
        words = [i for i in range(FIRST, LAST) if _word(scenes[i]) and _figure(scenes[i])]
        if not words:
            continue
        word_at = int(rng.choice(words))
        word = _word(scenes[word_at])
        figures = [
            i
            for i in range(FIRST, LAST)
            if i != word_at
            and _figure(scenes[i]) not in (None, _figure(scenes[word_at]))
            and _heard_clearly(scenes[i])
            and _word(scenes[i]) != word
        ]
        if figures:
            break
    figure_at = int(rng.choice(figures))
    figure = _figure(scenes[figure_at])
    for i in range(units):
        while (i != word_at and _word(scenes[i]) == word) or (i != figure_at and _figure(scenes[i]) == figure):
            scenes[i] = _scene(rng)
    needles = _needle(scenes, word_at, "sound"), _needle(scenes, figure_at, "image")
    return NeedleStream(Stream(seed, split, tuple(scenes), ()), needles)


def _scene(rng: np.random.Generator) -> Scene:
    return replace(simple_scene(rng), typed=None)


def _word(scene: Scene) -> str | None:
    return scene.sound.word if scene.sound is not None and scene.sound.word else None


def _figure(scene: Scene) -> keys.Key | None:
    """That of a picture of one figure and nothing from outside the world."""
    picture = scene.picture
    if picture is None or picture.outside or len(picture.figures) != 1:
        return None
    found = [key for key in keys.of_scene(scene, single=True) if key[0] == "figure"]
    return found[0] if found else None


def _heard_clearly(scene: Scene) -> bool:
    sound = scene.sound
    return sound is not None and not sound.outside and bool(sound.word or sound.note)


def _needle(scenes: Sequence[Scene], at: int, sense: str) -> Needle:
    key = next(key for key in keys.of_scene(scenes[at]) if keys.sense(key) == sense)
    answer = sentence(scenes[at].sights()) if sense == "sound" else sentence([scenes[at].hearing()])
    return Needle(at, Question("with", "recall", sense, keys.other(key), answer, None))

"""Streams in which something happens now and then: a figure is seen, a word is heard, or both at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from omnitide_cli.bench.world import entity as keys
from omnitide_cli.bench.world.picture import COLOURS, SHAPES, one
from omnitide_cli.bench.world.scene import OUTSIDE, Scene, simple_scene
from omnitide_cli.bench.world.sound import Sound, any_sound
from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.stream import Stream
from omnitide_cli.bench.world.words import WORDS

Sense = Literal["sight", "sound", "both"]
SENSES: tuple[Sense, ...] = ("sight", "sound", "both")
CALM_S = (9, 18)
"""Seconds between two events, from the first number to below the second."""
EVENT_S = (2, 7)
"""Seconds that one lasts."""
STAYS_S = (2, 9)
"""Seconds that a picture stays in between, as a camera's does."""
SILENCE = 0.4
"""Share of seconds in between that are silent."""
DECOY = 0.5
"""Share of calms in which the figure or the word of the rule for both is there alone."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a rule waits for: a figure, a word, or one of each at the same time."""

    sense: Sense
    figure: keys.Key | None
    word: keys.Key | None

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions for yes or no that are all true while it lasts, as the shipped model knows them."""
        return tuple(keys.present(key) for key in (self.figure, self.word) if key is not None)

    def is_in(self, scene: Scene) -> bool:
        """Whether a second has it."""
        here = keys.of_scene(scene)
        return all(key in here for key in (self.figure, self.word) if key is not None)


@dataclass(frozen=True, slots=True)
class Happening:
    """Of the rule for `sense`, the seconds `start` to `end` (not with it)."""

    sense: Sense
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class EventStream:
    """A stream, what its three rules wait for, and when that happens."""

    stream: Stream
    wanted: tuple[Wanted, ...]
    events: tuple[Happening, ...]


def event_stream(split: Split, seed: int, units: int, *, happens: bool = True) -> EventStream:
    """The stream of a seed of a split; without `happens` nothing does that its rules wait for."""
    rng = split.rng(seed)
    figures = [("figure", f"{colour} {shape}") for colour in COLOURS for shape in SHAPES]
    seen, seen_too = (figures[i] for i in rng.choice(len(figures), 2, replace=False))
    heard, heard_too = (("word", WORDS[i]) for i in rng.choice(len(WORDS), 2, replace=False))
    wanted = (
        Wanted("sight", seen, None),
        Wanted("sound", None, heard),
        Wanted("both", seen_too, heard_too),
    )
    forbidden = {seen, seen_too, heard, heard_too}
    scenes: list[Scene] = []
    events: list[Happening] = []
    while len(scenes) < units:
        scenes += _calm(rng, int(rng.integers(*CALM_S)), forbidden, wanted[2] if happens else None)
        if not happens:
            continue
        rule = wanted[len(events) % len(wanted)]
        length = int(rng.integers(*EVENT_S))
        if len(scenes) + length > units:
            break
        events.append(Happening(rule.sense, len(scenes), len(scenes) + length))
        scenes += _event(rng, length, forbidden, rule)
    while len(scenes) < units:
        scenes += _calm(rng, units - len(scenes), forbidden, None)
    return EventStream(Stream(seed, split, tuple(scenes[:units]), ()), wanted, tuple(events))


def _calm(rng: np.random.Generator, length: int, forbidden: set[keys.Key], decoy: Wanted | None) -> list[Scene]:
    """Pictures that stay a while, sounds of a second each; nothing that a rule waits for."""
    scenes: list[Scene] = []
    while len(scenes) < length:
        picture = _without(rng, forbidden).picture
        scenes += [Scene(picture, _sound(rng, forbidden)) for _ in range(int(rng.integers(*STAYS_S)))]
    del scenes[length:]
    if decoy is not None and rng.random() < DECOY and length > 6:
        first = int(rng.integers(2, length - 4))
        is_seen = rng.random() < 0.5
        for at in range(first, first + 3):
            scenes[at] = _with(scenes[at], decoy.figure if is_seen else None, None if is_seen else decoy.word)
    return scenes


def _event(rng: np.random.Generator, length: int, forbidden: set[keys.Key], rule: Wanted) -> list[Scene]:
    calm = _calm(rng, length, forbidden, None)
    return [_with(scene, rule.figure, rule.word) for scene in calm]


def _with(scene: Scene, figure: keys.Key | None, word: keys.Key | None) -> Scene:
    if figure is not None:
        scene = replace(scene, picture=one(*figure[1].split()))
    return scene if word is None else replace(scene, sound=Sound(word=word[1]))


def _without(rng: np.random.Generator, forbidden: set[keys.Key]) -> Scene:
    while True:
        scene = simple_scene(rng)
        if not forbidden.intersection(keys.of_scene(scene)):
            return replace(scene, typed=None)


def _sound(rng: np.random.Generator, forbidden: set[keys.Key]) -> Sound:
    while True:
        sound = any_sound(rng, OUTSIDE, SILENCE)
        if ("word", sound.word) not in forbidden:
            return sound

"""Streams: seconds of the world with questions along the way, drawn from a seed. The generator of TideBench."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from omnitide_cli.bench.world.question import Question, any_typed, ask, remember
from omnitide_cli.bench.world.scene import Scene, any_scene
from omnitide_cli.bench.world.split import Split

NOW = {"all": 4, "see": 2, "hear": 2, "colour": 1, "shape": 1, "left": 1, "right": 1, "number": 1, "check": 3}
RECALL = {"ago": 3, "with": 5, "last": 4, "told": 2}
COUNT = {"did": 3, "often": 4, "together": 2}
KINDS: dict[str, Mapping[str, int]] = {"now": NOW, "recall": RECALL, "count": COUNT}
Draw = Callable[[np.random.Generator], Scene]

REPEATS = 0.3
"""Share of seconds that bring something from before again, so that there is something to count."""
SLOW = 0.25
"""Share of streams in which a picture mostly stays for more than a second, while the sound changes."""
TYPED = 0.05
"""Share of seconds after which the user types something to remember."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question after the unit `unit` (counted from 0), so at `unit` + 1 seconds."""

    unit: int
    question: Question


@dataclass(frozen=True, slots=True)
class Stream:
    """Scenes of one second each, and questions about them in the order of their time."""

    seed: int
    split: Split
    scenes: tuple[Scene, ...]
    asked: tuple[Asked, ...]

    def due(self) -> list[list[Question]]:
        """For each unit, what the user says right after it: first what is to be remembered, then the questions."""
        after = [[remember(scene.typed)] if scene.typed else [] for scene in self.scenes]
        for item in self.asked:
            after[item.unit].append(item.question)
        return after


def any_stream(
    split: Split,
    seed: int,
    units: int,
    questions: int,
    kinds: Sequence[str] = ("now", "recall", "count"),
    draw: Draw = any_scene,
    stay: float | None = None,
) -> Stream:
    """The stream of a seed of a split: `units` seconds with `questions` questions, kinds in turn, spread evenly.

    `draw`: any_scene for the whole world, simple_scene for the part of it that the shipped model was trained on.
    `stay`: the share of seconds that keep the picture of the one before; None: TideBench's, none in most streams.
    """
    rng = split.rng(seed)
    scenes = any_scenes(rng, units, draw, stay=stay)
    asked: list[Asked] = []
    for index in range(questions):
        first, last = index * units // questions, max((index + 1) * units // questions, index * units // questions + 1)
        kind = kinds[(index + seed) % len(kinds)]
        for _ in range(200):
            unit = min(units - 1, max(int(rng.integers(first, last)), 1 if kind == "recall" and units > 1 else 0))
            question = any_question(kind, scenes[: unit + 1], rng)
            if question is not None:
                asked.append(Asked(unit, question))
                break
    return Stream(seed, split, tuple(scenes), tuple(sorted(asked, key=lambda item: item.unit)))


def any_scenes(
    rng: np.random.Generator, units: int, draw: Draw = any_scene, typed: float = TYPED, stay: float | None = None
) -> list[Scene]:
    """Seconds, some of which bring an earlier sight, an earlier sound or both again; in some streams pictures stay.

    After a share of `typed` of them the user types something.
    """
    scenes: list[Scene] = []
    usual = 0.5 if rng.random() < SLOW else 0.0
    stay = usual if stay is None else stay
    for _ in range(units):
        scene = draw(rng)
        if scenes and rng.random() < stay:
            scene = replace(scene, picture=scenes[-1].picture)
        elif scenes and rng.random() < REPEATS:
            old = scenes[int(rng.integers(len(scenes)))]
            again = rng.random()
            if again < 0.34:
                scene = replace(scene, picture=old.picture)
            elif again < 0.67:
                scene = replace(scene, sound=old.sound)
            else:
                scene = old
        scenes.append(replace(scene, typed=any_typed(rng) if rng.random() < typed else None))
    return scenes


def any_question(kind: str, seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """A question of this kind about `seen`; None if the chosen form makes no sense here: try again."""
    forms = KINDS[kind]
    weights = np.array(list(forms.values()), float)
    return ask(str(rng.choice(list(forms), p=weights / weights.sum())), seen, rng)

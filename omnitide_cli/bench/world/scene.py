"""A scene: what is seen and heard at the same time, and what is true of it."""

from dataclasses import dataclass

import numpy as np

from omnitide_cli.bench.world.picture import Picture, any_picture
from omnitide_cli.bench.world.sound import SILENCE, Sound, any_sound

OUTSIDE = 0.08
"""Share of pictures, and of sounds, that are from outside the world."""
MISSING = 0.03
"""Share of seconds without a picture, and of seconds without a sound."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and a sound, either of which may be missing, lasting whole seconds, and what the user types then."""

    picture: Picture | None
    sound: Sound | None
    seconds: int = 1
    typed: str | None = None
    """Something to remember, as a phrase: the word lemon, the digit 7."""

    def sights(self) -> list[str]:
        """What is seen, one phrase a thing, from left to right."""
        return ["no picture"] if self.picture is None else self.picture.phrases()

    def hearing(self) -> str:
        """What is heard, as a phrase; a missing sound is as silent as silence."""
        return SILENCE if self.sound is None else self.sound.phrase()


def any_scene(rng: np.random.Generator) -> Scene:
    """Draw one second of the whole world."""
    return _some_missing(any_picture(rng, OUTSIDE), any_sound(rng, OUTSIDE), rng)


def simple_scene(rng: np.random.Generator) -> Scene:
    """Draw one second that shows no glyph and never more than one figure."""
    return _some_missing(any_picture(rng, OUTSIDE, simple=True), any_sound(rng, OUTSIDE), rng)


def _some_missing(picture: Picture, sound: Sound, rng: np.random.Generator) -> Scene:
    chance = rng.random()
    return Scene(None if chance < MISSING else picture, None if MISSING <= chance < 2 * MISSING else sound)

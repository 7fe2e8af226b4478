"""A scene: what is seen and heard at the same time, and what is true of it."""

from dataclasses import dataclass

import numpy as np

from omnitide_cli.bench.world.picture import Picture, any_picture
from omnitide_cli.bench.world.sound import SILENCE, Sound, any_sound


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and a sound, either of which may be missing, lasting whole seconds."""

    picture: Picture | None
    sound: Sound | None
    seconds: int = 1

    def sights(self) -> list[str]:
        """What is seen, one phrase a thing, from left to right."""
        return ["no picture"] if self.picture is None else self.picture.phrases()

    def hearing(self) -> str:
        """What is heard, as a phrase; a missing sound is as silent as silence."""
        return SILENCE if self.sound is None else self.sound.phrase()


def any_scene(rng: np.random.Generator, outside: float = 0.08, missing: float = 0.06) -> Scene:
    """Draw one second; picture and sound are each from outside, or one is missing, with these probabilities."""
    picture: Picture | None = any_picture(rng, outside)
    sound: Sound | None = any_sound(rng, outside)
    chance = rng.random()
    if chance < missing / 2:
        picture = None
    elif chance < missing:
        sound = None
    return Scene(picture, sound)

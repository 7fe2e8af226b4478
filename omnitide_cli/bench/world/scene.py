"""A scene: what is seen and heard at the same time, and what is true of it."""

from dataclasses import dataclass

import numpy as np

from omnitide_cli.bench.world.picture import Picture, any_picture
from omnitide_cli.bench.world.sound import Sound, any_sound


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and a sound, either of which may be missing, lasting whole seconds."""

    picture: Picture | None
    sound: Sound | None
    seconds: int = 1

    def sight(self) -> str:
        """What is seen, as a phrase that can stand inside a sentence."""
        if self.picture is None:
            return "no picture"
        if self.picture.outside:
            return "something unclear"
        article = "an" if self.picture.colour == "orange" else "a"
        return f"{article} {self.picture.colour} {self.picture.shape}"

    def hearing(self) -> str:
        """What is heard, as a phrase that can stand inside a sentence."""
        if self.sound is None or self.sound == Sound():
            return "silence"
        if self.sound.outside:
            return "an unclear sound"
        return f"the note {self.sound.note}"


def any_scene(rng: np.random.Generator, outside: float = 0.12, missing: float = 0.08) -> Scene:
    """Draw one second; picture and sound are each from outside, or one is missing, with these probabilities."""
    picture: Picture | None = any_picture(rng, outside)
    sound: Sound | None = any_sound(rng, outside)
    chance = rng.random()
    if chance < missing / 2:
        picture = None
    elif chance < missing:
        sound = None
    return Scene(picture, sound)

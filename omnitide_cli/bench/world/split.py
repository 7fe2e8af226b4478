"""Which seeds, voices and backgrounds belong to training, to choosing settings, and to the final test."""

from dataclasses import dataclass

import numpy as np

from omnitide_cli.bench.world.canvas import BACKDROPS
from omnitide_cli.bench.world.words import VOICES


@dataclass(frozen=True, slots=True)
class Split:
    """A part of the world that shares no seed with another; held-out parts have voices and backgrounds of their own."""

    name: str
    voices: tuple[int, ...]
    backdrops: tuple[str, ...]

    def rng(self, seed: int) -> np.random.Generator:
        """The generator of one of this split's seeds, 0 and up."""
        return np.random.default_rng([*self.name.encode(), seed])


TRAINING = Split("training", tuple(range(VOICES - 4)), BACKDROPS[:3])
VALIDATION = Split("validation", (VOICES - 4, VOICES - 3), BACKDROPS[3:])
TEST = Split("test", (VOICES - 2, VOICES - 1), BACKDROPS[3:])
SPLITS = {split.name: split for split in (TRAINING, VALIDATION, TEST)}

"""The curriculum's first part: eyes and ears alone, which sees ten times as many pictures and sounds a second.

A throw-away linear layer reads colour, shape and note off the mean embedding.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker

from models.demo import fast
from models.demo.architecture import HIDDEN
from models.demo.mel import darken, log_mel
from models.demo.stream import picture_of, window_of
from omnitide_cli.bench.world.picture import COLOURS, SHAPES, any_picture
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import NOTES, any_sound

_CLASSES = {"colour": [*COLOURS, ""], "shape": [*SHAPES, ""], "note": [*NOTES, "silence", "unclear"]}

_PICTURES, _SOUNDS = 32, 8  # a step; shapes are what takes long


@dataclass(frozen=True, slots=True)
class Lesson:
    """Pictures uint8 [n, 112, 112, 3], log-mels [n, 128, 100], and class numbers [n] by what they tell."""

    images: Tensor
    mels: Tensor
    truth: dict[str, Tensor]


class Heads(nn.Module):
    """One linear reader for each thing to tell."""

    def __init__(self) -> None:
        super().__init__()
        self.readers = nn.ModuleDict({name: nn.Linear(HIDDEN, len(options)) for name, options in _CLASSES.items()})

    def forward(self, model: Thinker, lesson: Lesson) -> tuple[Tensor, dict[str, float]]:
        """The loss, and the share of right classes by what they tell."""
        with torch.autocast("cpu", torch.bfloat16):
            sight = fast.picture_embeddings(model, lesson.images).mean(1)
            sound = fast.sound_embeddings(model, lesson.mels).mean(1)
            scores = {name: reader(sound if name == "note" else sight) for name, reader in self.readers.items()}
        losses = [F.cross_entropy(scores[name].float(), truth) for name, truth in lesson.truth.items()]
        shares = {
            name: float((scores[name].argmax(-1) == truth).float().mean()) for name, truth in lesson.truth.items()
        }
        return torch.stack(losses).sum(), shares


def lesson(seed: list[int], ease: float) -> Lesson:
    """Draw pictures and sounds with what is true of them; `ease` is the share of the easiest pictures."""
    rng = np.random.default_rng(seed)
    sights = [any_picture(rng, 0.15) for _ in range(_PICTURES)]
    heard = [any_sound(rng, 0.15) for _ in range(_SOUNDS)]
    images = np.stack([image for p in sights if (image := picture_of(Scene(p, None), rng, ease)) is not None])
    waves = torch.from_numpy(np.stack([wave for s in heard if (wave := window_of(Scene(None, s), rng)) is not None]))
    dull = torch.from_numpy(np.flatnonzero(rng.random(_SOUNDS) < 0.25))
    waves[dull] = darken(waves[dull], torch.from_numpy(rng.uniform(4500, 7900, len(dull))).float())
    names = {
        "colour": [picture.colour for picture in sights],
        "shape": [picture.shape for picture in sights],
        "note": [sound.note or ("unclear" if sound.outside else "silence") for sound in heard],
    }
    truth = {name: torch.tensor([_CLASSES[name].index(value) for value in values]) for name, values in names.items()}
    return Lesson(torch.from_numpy(images), log_mel(waves, torch.from_numpy(rng.random(_SOUNDS) < 0.4)), truth)

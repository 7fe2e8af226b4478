"""The first half of training: eyes and ears, whose outputs come to resemble words.

A picture of a red circle is to look like the language model's own embeddings of "red" and "circle", a second with a
spoken word like that word; these embeddings stand still meanwhile. What the language model has to learn afterwards is
to copy and to compare.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as together
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker

from models.demo import fast
from models.demo.mel import darken, log_mel
from models.demo.stream import windows_of
from omnitide_cli.bench.world.picture import COLOURS, SHAPES, Picture, any_picture
from omnitide_cli.bench.world.render import frame_of
from omnitide_cli.bench.world.scene import OUTSIDE
from omnitide_cli.bench.world.sound import NOTES, Sound, any_sound
from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.words import WORDS

FORMS = (" unclear", *(f" {shape}" for shape in SHAPES))
INKS = tuple(f" {colour}" for colour in COLOURS)
HEARD = (" silence", " unclear", *(f" {word}" for word in WORDS), *(f" {note}" for note in NOTES))
SHARPNESS = 3.0
_AT_ONCE = 64
_NONE = -100

Capture = Callable[[nn.Module, tuple[Tensor, ...]], None]


@dataclass(frozen=True, slots=True)
class Lesson:
    """images uint8 [n, 112, 112, 3], mels [n, 128, 100]; forms, inks and heard [n] count in FORMS, INKS and HEARD."""

    images: Tensor
    forms: Tensor
    inks: Tensor
    mels: Tensor
    heard: Tensor


class Meanings:
    """Word embeddings of what pictures and sounds show."""

    def __init__(self, model: Thinker, tokenizer: Tokenizer) -> None:
        self._table = model.model.embed_tokens.weight.detach().clone()
        self._tokenizer = tokenizer
        self.forms, self.inks, self.heard = (torch.stack([*map(self.word, names)]) for names in (FORMS, INKS, HEARD))

    def word(self, name: str) -> Tensor:
        """The embedding of a word that is one token."""
        ids = self._tokenizer.encode(name).ids
        if len(ids) != 1:
            raise ValueError(f"'{name}' is not one token")
        return self._table[ids[0]]

    def picture(self, picture: Picture) -> Tensor:
        """A picture of one figure, or an unclear one."""
        if picture.outside:
            return self.word(" unclear")
        return self.word(f" {picture.figures[0].colour}") + self.word(f" {picture.figures[0].shape}")


def settle(model: Thinker, meanings: Meanings, split: Split, seed: list[int], size: int) -> None:
    """Put the last matrix of both encoders where its outputs, averaged over a unit, come nearest to the meanings.

    Ridge regression on `size` pictures and sounds of every process.
    """
    rng = np.random.default_rng(seed)
    heads: list[tuple[nn.Linear, Callable[[], Tensor]]] = [
        (model.visual.merger.mlp[2], lambda: _look(model, meanings, split, rng)),
        (model.audio_tower.proj, lambda: _listen(model, meanings, split, rng)),
    ]
    for head, lesson in heads:
        seen: list[Tensor] = []
        watch = head.register_forward_pre_hook(_keep_mean(seen))
        with torch.no_grad():
            wanted = torch.cat([lesson() for _ in range(-(-size // _AT_ONCE))])
            watch.remove()
            features = torch.cat(seen)
            features = torch.cat([features, torch.ones(len(features), 1)], 1)
            square, cross = features.T @ features, features.T @ wanted
            together.all_reduce(square)
            together.all_reduce(cross)
            square += torch.eye(len(square)) * 1e-3 * square.diagonal().mean()
            solution = torch.linalg.solve(square, cross)
            head.weight.copy_(solution[:-1].T)
            head.bias.copy_(solution[-1])


def reading(model: Thinker, meanings: Meanings, lesson: Lesson) -> tuple[Tensor, dict[str, float]]:
    """The loss of reading pictures and sounds by the nearest words, and the shares that are read rightly."""
    with torch.autocast("cpu", torch.bfloat16):
        sight = fast.picture_embeddings(model, lesson.images).float().mean(1)
        sound = fast.sound_embeddings(model, lesson.mels).float().mean(1)
    losses, shares = [], {}
    for name, outputs, rows, truth in (
        ("form", sight, meanings.forms, lesson.forms),
        ("ink", sight, meanings.inks, lesson.inks),
        ("heard", sound, meanings.heard, lesson.heard),
    ):
        scores = SHARPNESS * outputs @ rows.T
        losses.append(F.cross_entropy(scores, truth, ignore_index=_NONE))
        shares[name] = float((scores.argmax(-1) == truth)[truth != _NONE].float().mean())
    return torch.stack(losses).sum(), shares


def draw_lesson(seed: list[int], split: Split, count: int) -> Lesson:
    """So many pictures and as many sounds, which follow each other."""
    rng = np.random.default_rng(seed)
    pictures = [any_picture(rng, OUTSIDE, simple=True) for _ in range(count)]
    figures = [picture.figures[0] if picture.figures else None for picture in pictures]
    return Lesson(
        torch.from_numpy(np.stack([frame_of(picture, rng, split) for picture in pictures])),
        torch.tensor([FORMS.index(f" {figure.shape}") if figure else 0 for figure in figures]),
        torch.tensor([INKS.index(f" {figure.colour}") if figure else _NONE for figure in figures]),
        *_some_sounds(rng, split, count),
    )


def _some_sounds(rng: np.random.Generator, split: Split, count: int) -> tuple[Tensor, Tensor]:
    sounds = [any_sound(rng, OUTSIDE) for _ in range(count)]
    mels = mels_of(torch.from_numpy(windows_of(sounds, rng, split)), rng)
    return mels, torch.tensor([HEARD.index(_name(sound)) for sound in sounds])


def mels_of(waves: Tensor, rng: np.random.Generator) -> Tensor:
    """Spectra of seconds with their neighbours: some as codecs dull them, some as if they stood alone."""
    dull = torch.from_numpy(np.flatnonzero(rng.random(len(waves)) < 0.25))
    waves = waves.clone()
    waves[dull] = darken(waves[dull], torch.from_numpy(rng.uniform(4500, 7900, len(dull))).float())
    return log_mel(waves, torch.from_numpy(rng.random(len(waves)) < 0.2))


def _look(model: Thinker, meanings: Meanings, split: Split, rng: np.random.Generator) -> Tensor:
    pictures = [any_picture(rng, OUTSIDE, simple=True) for _ in range(_AT_ONCE)]
    images = torch.from_numpy(np.stack([frame_of(picture, rng, split) for picture in pictures]))
    with torch.autocast("cpu", torch.bfloat16):
        fast.picture_embeddings(model, images)
    return torch.stack([meanings.picture(picture) for picture in pictures])


def _listen(model: Thinker, meanings: Meanings, split: Split, rng: np.random.Generator) -> Tensor:
    mels, heard = _some_sounds(rng, split, _AT_ONCE)
    with torch.autocast("cpu", torch.bfloat16):
        fast.sound_embeddings(model, mels)
    return meanings.heard[heard]


def _keep_mean(seen: list[Tensor]) -> Capture:
    def capture(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen.append(inputs[0].float().mean(1))

    return capture


def _name(sound: Sound) -> str:
    return " unclear" if sound.outside else f" {sound.word or sound.note or 'silence'}"

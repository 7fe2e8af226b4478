"""The first half of training: eyes and ears alone.

A picture's tokens and a second of sound are read with the language model's own word embeddings, which stand still: the
token over a red circle comes to resemble the words "red" and "circle", a second with a spoken word that word. What
the language model has to learn afterwards is to copy and to compare.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import Tensor
from transformers import Qwen2_5OmniThinkerForConditionalGeneration as Thinker

from models.demo import fast
from models.demo.mel import darken, log_mel
from models.demo.stream import windows_of
from omnitide_cli.bench.world import canvas as canvases
from omnitide_cli.bench.world.glyph import DIGITS, LETTERS
from omnitide_cli.bench.world.picture import COLOURS, SHAPES, any_picture
from omnitide_cli.bench.world.render import SIDE, canvas_of, letterboxed
from omnitide_cli.bench.world.sound import NOTES, Sound, any_sound
from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.words import WORDS

FORMS = ("<|vision_pad|>", " unclear", *(f" {s}" for s in SHAPES), *DIGITS, *(f" {letter}" for letter in LETTERS))
INKS = tuple(f" {colour}" for colour in COLOURS)
HEARD = (" silence", " unclear", *(f" {word}" for word in WORDS), *(f" {note}" for note in NOTES))
SHARPNESS = 3.0
_NOTHING, _UNCLEAR = 0, 1
_IGNORED = -100


@dataclass(frozen=True, slots=True)
class Lesson:
    """images uint8 [n, 112, 112, 3], forms and inks [n, 16] by token; mels [m, 128, 100], heard [m]. Class numbers."""

    images: Tensor
    forms: Tensor
    inks: Tensor
    mels: Tensor
    heard: Tensor


class Readers:
    """Reads embeddings by the word embeddings of what they may mean."""

    def __init__(self, model: Thinker, tokenizer: Tokenizer) -> None:
        table = model.model.embed_tokens.weight.detach()
        self.forms, self.inks, self.heard = (_rows(table, tokenizer, names) for names in (FORMS, INKS, HEARD))

    def loss(self, model: Thinker, lesson: Lesson) -> tuple[Tensor, dict[str, float]]:
        """The loss, and the share of right classes by what they tell."""
        with torch.autocast("cpu", torch.bfloat16):
            sight = fast.picture_embeddings(model, lesson.images)
            sound = fast.sound_embeddings(model, lesson.mels)
        pairs = {
            "form": (_scores(sight, self.forms), lesson.forms),
            "ink": (_scores(sight, self.inks), lesson.inks),
            "heard": (_scores(sound.float().mean(1), self.heard), lesson.heard),
        }
        losses, shares = [], {}
        for name, (scores, truth) in pairs.items():
            scores, truth = scores.flatten(0, -2), truth.flatten()
            losses.append(F.cross_entropy(scores, truth, ignore_index=_IGNORED))
            asked = truth > (_NOTHING if name == "form" else _IGNORED)
            shares[name] = float((scores.argmax(-1) == truth)[asked].float().mean())
        return losses[0] + 0.5 * losses[1] + losses[2], shares


def lesson(seed: list[int], split: Split, pictures: int, sounds: int, ease: float = 0.0) -> Lesson:
    """Draw pictures and sounds with what is true of them; `ease` is the share of the easiest pictures."""
    rng = np.random.default_rng(seed)
    images, forms, inks = [], [], []
    for _ in range(pictures):
        picture = any_picture(rng, 0.1)
        laid_out = canvas_of(picture, rng, split, ease)
        images.append(letterboxed(laid_out, rng))
        form, ink = _truth(*laid_out)
        forms.append(form)
        inks.append(ink)
    heard = [any_sound(rng, 0.12) for _ in range(sounds)]
    waves = torch.from_numpy(windows_of(heard, rng, split))
    return Lesson(
        torch.from_numpy(np.stack(images)),
        torch.from_numpy(np.stack(forms)),
        torch.from_numpy(np.stack(inks)),
        mels_of(waves, rng),
        torch.tensor([HEARD.index(_name(sound)) for sound in heard]),
    )


def mels_of(waves: Tensor, rng: np.random.Generator) -> Tensor:
    """Spectra of seconds with their neighbours: some as codecs dull them, some as if they stood alone."""
    dull = torch.from_numpy(np.flatnonzero(rng.random(len(waves)) < 0.25))
    waves = waves.clone()
    waves[dull] = darken(waves[dull], torch.from_numpy(rng.uniform(4500, 7900, len(dull))).float())
    return log_mel(waves, torch.from_numpy(rng.random(len(waves)) < 0.2))


def _name(sound: Sound) -> str:
    return " unclear" if sound.outside else f" {sound.word or sound.note or 'silence'}"


def _truth(canvas: canvases.Canvas, aspect: float) -> tuple[np.ndarray, np.ndarray]:
    """What each of a picture's 16 tokens shows; tokens that only touch something are not asked."""
    forms, inks = np.full(16, _NOTHING), np.full(16, _IGNORED)
    if canvas.picture.outside:
        return np.full(16, _UNCLEAR), inks
    width, height = canvases.fitted(aspect, SIDE)
    square = np.zeros((SIDE, SIDE), np.float32)
    top, left = (SIDE - height) // 2, (SIDE - width) // 2
    best = np.zeros(16)
    for place, cover in enumerate(canvases.covers(canvas, *canvases.axes(width, height), 0.02)):
        square[top : top + height, left : left + width] = cover
        share = square.reshape(4, 28, 4, 28).mean((1, 3)).ravel()
        forms[(share > 0.01) & (best < 0.01)] = _IGNORED
        mine = (share > best) & ((share > 0.06) | (share == share.max()))
        name = canvas.marks[place].form
        forms[mine] = FORMS.index(f" {name}" if f" {name}" in FORMS else name)
        if not canvas.picture.glyph:
            inks[mine] = INKS.index(f" {canvas.picture.figures[place].colour}")
        best = np.maximum(best, share)
    return forms, inks


def _rows(table: Tensor, tokenizer: Tokenizer, names: tuple[str, ...]) -> Tensor:
    """The embeddings of names that are one token each."""
    ids = [tokenizer.encode(name).ids for name in names]
    broken = [name for name, found in zip(names, ids, strict=True) if len(found) != 1]
    if broken:
        raise ValueError(f"not one token: {broken}")
    return table[[found[0] for found in ids]]


def _scores(embeddings: Tensor, rows: Tensor) -> Tensor:
    return SHARPNESS * embeddings.float() @ rows.T

"""Streams of seconds, questions and answers as token batches, in the layout that the runtime writes.

Numpy only, so that a worker process can build batches while the trainer computes.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from tokenizers import Tokenizer

from omnitide_cli.bench.world import picture as pictures
from omnitide_cli.bench.world.question import Question, ask
from omnitide_cli.bench.world.scene import Scene, any_scene
from omnitide_cli.bench.world.sound import Sound, play

SIDE = 112
RATE = 16000
LEFT, RIGHT = 320, 200  # samples of neighbouring sound around a second
SYSTEM = "Watch and listen."
_OTHER_SYSTEMS = (
    "",
    "You are a helpful assistant.",
    "Answer briefly.",
    "Describe what is there.",
    "You watch a video and answer questions about it.",
    "Be truthful.",
)
_ASPECTS = (16 / 9, 16 / 9, 4 / 3, 1.0, 9 / 16, 3 / 2)
_KINDS = {
    "all": 0.30,
    "see": 0.09,
    "hear": 0.18,
    "colour": 0.10,
    "shape": 0.10,
    "check": 0.10,
    "before": 0.10,
    "scope": 0.03,
}


@dataclass(slots=True)
class Stream:
    """One growing token sequence with its M-RoPE positions and media."""

    ids: list[int] = field(default_factory=list)
    positions: list[tuple[int, int, int]] = field(default_factory=list)
    at: int = 0
    image_spans: list[int] = field(default_factory=list)
    sound_spans: list[int] = field(default_factory=list)
    images: list[NDArray[np.uint8]] = field(default_factory=list)
    waves: list[NDArray[np.float32]] = field(default_factory=list)
    answers: list[tuple[int, int, str]] = field(default_factory=list)
    units: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded streams. Indices are into the flattened [rows · tokens] grid.

    ids [rows, tokens]; positions [3, rows, tokens]; image_at [images · 16]; sound_at [sounds · 25];
    images uint8 [images, 112, 112, 3]; waves float32 [sounds, 320 + 16000 + 200]; isolated bool [sounds];
    predict, targets, answer_of [answer tokens]; kinds [answers].
    """

    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    image_at: NDArray[np.int64]
    sound_at: NDArray[np.int64]
    images: NDArray[np.uint8]
    waves: NDArray[np.float32]
    isolated: NDArray[np.bool_]
    predict: NDArray[np.int64]
    targets: NDArray[np.int64]
    answer_of: NDArray[np.int64]
    kinds: list[str]


class Layout:
    """Writes units into streams as models/demo's manifest has it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._image, self._sound, self._pad = (
            tokenizer.token_to_id(name) for name in ("<|IMAGE|>", "<|AUDIO|>", "<|endoftext|>")
        )
        self._vision = tokenizer.token_to_id("<|vision_bos|>"), tokenizer.token_to_id("<|vision_eos|>")
        self._audio = tokenizer.token_to_id("<|audio_bos|>"), tokenizer.token_to_id("<|audio_eos|>")
        self._system = self.encode("<|im_start|>system\n")
        self._open = self.encode("<|im_end|>\n<|im_start|>user\n")
        self._ask = self.encode("<|im_end|>\n<|im_start|>assistant\n")
        self._bare = self.encode("<|im_start|>user\n")

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return self._tokenizer.encode(text).ids

    def system(self, stream: Stream, text: str | None) -> None:
        """Open a stream with a system unit; None leaves it out and only opens the user's turn."""
        self.text(stream, self._bare if text is None else [*self._system, *self.encode(text), *self._open])

    def media(self, stream: Stream, image: NDArray[np.uint8] | None, wave: NDArray[np.float32] | None) -> None:
        """One second: 16 image tokens sharing a time in a 4×4 grid, then 25 audio tokens, each with its markers."""
        if image is not None:
            self.text(stream, [self._vision[0]])
            stream.image_spans.append(len(stream.ids))
            stream.ids += [self._image] * 16
            stream.positions += [(stream.at, stream.at + i // 4, stream.at + i % 4) for i in range(16)]
            stream.at += 4
            self.text(stream, [self._vision[1]])
            stream.images.append(image)
        if wave is not None:
            self.text(stream, [self._audio[0]])
            stream.sound_spans.append(len(stream.ids))
            self.text(stream, [self._sound] * 25)
            self.text(stream, [self._audio[1]])
            stream.waves.append(wave)
        stream.units += 1

    def question(self, stream: Stream, text: str) -> None:
        """A question, which closes the user's turn."""
        self.text(stream, [*self.encode(text), *self._ask])

    def answer(self, stream: Stream, question: Question) -> None:
        """The answer, whose tokens and end are to be learnt, and the next open turn."""
        words = self.encode(question.answer)
        stream.answers.append((len(stream.ids), len(words) + 1, question.kind))
        self.text(stream, [*words, *self._open])

    def pad(self, streams: list[Stream], isolated: NDArray[np.bool_]) -> Batch:
        """Put streams side by side."""
        rows, width = len(streams), _padded(max(len(stream.ids) for stream in streams), 16)
        ids = np.full((rows, width), self._pad, np.int64)
        positions = np.zeros((3, rows, width), np.int64)
        image_at, sound_at, predict, targets, answer_of = [], [], [], [], []
        kinds: list[str] = []
        for row, stream in enumerate(streams):
            ids[row, : len(stream.ids)] = stream.ids
            positions[:, row, : len(stream.ids)] = np.array(stream.positions).T
            base = row * width
            image_at += [base + first + np.arange(16) for first in stream.image_spans]
            sound_at += [base + first + np.arange(25) for first in stream.sound_spans]
            for first, length, kind in stream.answers:
                predict.append(base + first - 1 + np.arange(length))
                targets += stream.ids[first : first + length]
                answer_of += [len(kinds)] * length
                kinds.append(kind)
        images = [image for stream in streams for image in stream.images]
        waves = [wave for stream in streams for wave in stream.waves]
        return Batch(
            ids=ids,
            positions=positions,
            image_at=np.concatenate(image_at) if image_at else np.zeros(0, np.int64),
            sound_at=np.concatenate(sound_at) if sound_at else np.zeros(0, np.int64),
            images=np.stack(images) if images else np.zeros((0, SIDE, SIDE, 3), np.uint8),
            waves=np.stack(waves) if waves else np.zeros((0, LEFT + RATE + RIGHT), np.float32),
            isolated=isolated[: len(waves)],
            predict=np.concatenate(predict),
            targets=np.array(targets, np.int64),
            answer_of=np.array(answer_of, np.int64),
            kinds=kinds,
        )

    def text(self, stream: Stream, ids: list[int]) -> None:
        """Ordinary tokens, each at a position of its own."""
        stream.ids += ids
        stream.positions += [(stream.at + i,) * 3 for i in range(len(ids))]
        stream.at += len(ids)


def random_batch(layout: Layout, seed: list[int], units: int, tokens: int) -> Batch:
    """Streams of so many units each, about `tokens` tokens in all."""
    rng = np.random.default_rng(seed)
    rows = max(1, tokens // (units * 62 + 40))
    streams = [random_stream(layout, rng, units) for _ in range(rows)]
    return layout.pad(streams, rng.random(rows * units) < 0.4)


def random_stream(layout: Layout, rng: np.random.Generator, units: int) -> Stream:
    """Seconds with questions here and there and always after the last; positions may jump between seconds."""
    stream = Stream()
    chance = rng.random()
    layout.system(stream, SYSTEM if chance < 0.7 else None if chance < 0.8 else str(rng.choice(_OTHER_SYSTEMS)))
    gaps = rng.random() < 0.2
    asking = rng.choice([0.15, 0.6])
    seen: list[Scene] = []
    if rng.random() < 0.02:
        _exchange(layout, stream, seen, rng)
    for left in range(units, 0, -1):
        if gaps and rng.random() < 0.4:
            stream.at += int(np.exp(rng.uniform(0, 6)))
        seen.append(any_scene(rng))
        layout.media(stream, picture_of(seen[-1], rng), window_of(seen[-1], rng))
        if left == 1 or rng.random() < asking:
            for _ in range(2 if rng.random() < 0.5 else 1):
                _exchange(layout, stream, seen, rng)
    return stream


def picture_of(scene: Scene, rng: np.random.Generator, ease: float = 0.0) -> NDArray[np.uint8] | None:
    """A frame as the runtime would hand it over: any aspect, letterboxed, with a codec's traces.

    With probability `ease` each, it is square and its layout plain.
    """
    if scene.picture is None:
        return None
    aspect = 1.0 if rng.random() < ease else float(rng.choice(_ASPECTS))
    width, height = pictures.fitted(aspect, SIDE)
    canvas = pictures.lay_out(scene.picture, rng, width / height, plain=bool(rng.random() < ease))
    if rng.random() < 0.12:
        scale = int(rng.integers(2, 4))
        large = pictures.draw(canvas, width * scale, height * scale, rng.uniform(1, 3))
        resample = Pillow.Resampling.BOX if rng.random() < 0.5 else Pillow.Resampling.BILINEAR
        image = np.asarray(Pillow.fromarray(large).resize((width, height), resample))
    else:
        image = pictures.draw(canvas, width, height, rng.uniform(0.7, 2.5))
    if rng.random() < 0.4:
        image = _subsample_colour(image)
    return pictures.letterbox(image, SIDE)


def window_of(scene: Scene, rng: np.random.Generator) -> NDArray[np.float32] | None:
    """One second at 16 kHz with 320 samples before and 200 after it, now and then cut off at its ends."""
    if scene.sound is None:
        return None
    start = float(rng.choice([0.0, rng.uniform(0, 1)]))
    wave = play(scene.sound, LEFT + RATE + RIGHT, RATE, rng, start - LEFT / RATE)
    if scene.sound != Sound() and rng.random() < 0.3:
        first = LEFT + int(rng.uniform(0, 0.35) * RATE)
        last = LEFT + int(rng.uniform(0.7, 1.0) * RATE)
        fade = np.full(len(wave), 0.001, np.float32)
        fade[first:last] = 1
        wave = wave * fade
    return wave


def _exchange(layout: Layout, stream: Stream, seen: list[Scene], rng: np.random.Generator) -> None:
    kind = str(rng.choice(list(_KINDS), p=list(_KINDS.values())))
    question = ask(kind, seen, rng)
    layout.question(stream, question.text)
    layout.answer(stream, question)


def _padded(length: int, step: int) -> int:
    return -(-length // step) * step


def _subsample_colour(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Colour at half resolution, as 4:2:0 video has it."""
    height, width = image.shape[0] // 2 * 2, image.shape[1] // 2 * 2
    part = image[:height, :width].astype(np.float32)
    grey = part.mean(2, keepdims=True)
    colour = (part - grey).reshape(height // 2, 2, width // 2, 2, 3).mean((1, 3)).repeat(2, 0).repeat(2, 1)
    result = image.copy()
    result[:height, :width] = np.clip(grey + colour, 0, 255).astype(np.uint8)
    return result

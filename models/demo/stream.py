"""Streams of seconds, questions and answers as token batches, in the layout that the runtime writes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from omnitide_cli.bench.world.question import Question
from omnitide_cli.bench.world.sound import Sound, track
from omnitide_cli.bench.world.split import Split

RATE = 16000
LEFT, RIGHT = 320, 200  # samples of neighbouring sound around a second
SYSTEM = "Watch and listen."
IMAGE_TOKENS = 16
SOUND_TOKENS = 25
_FIRST = 3.0
"""Weight of an answer's first token, for which the whole answer must be known: yes or no, an article, a number."""


@dataclass(slots=True)
class Stream:
    """One growing token sequence with its M-RoPE positions and media (whatever stands for them)."""

    ids: list[int] = field(default_factory=list)
    positions: list[tuple[int, int, int]] = field(default_factory=list)
    at: int = 0
    image_spans: list[int] = field(default_factory=list)
    sound_spans: list[int] = field(default_factory=list)
    images: list[Any] = field(default_factory=list)
    sounds: list[Any] = field(default_factory=list)
    answers: list[tuple[int, int, Question]] = field(default_factory=list)
    ends: list[tuple[int, list[int]]] = field(default_factory=list)
    typed: list[tuple[int, list[int]]] = field(default_factory=list)
    asks: list[tuple[int, list[int]]] = field(default_factory=list)
    looks: list[tuple[int, list[int]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Hints:
    """Words to be known: places [rows, e], padded with 0; of, words [words]: index into the flattened places, word."""

    places: NDArray[np.int64]
    of: NDArray[np.int64]
    words: NDArray[np.int64]

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[tuple[int, list[int]]]]) -> Self:
        """Of each stream's places with their words."""
        most = max(1, *map(len, rows))
        places = np.zeros((len(rows), most), np.int64)
        pairs = []
        for row, found in enumerate(rows):
            for index, (place, words) in enumerate(found):
                places[row, index] = place
                pairs += [(row * most + index, word) for word in words]
        of, words = np.array(pairs, np.int64).reshape(-1, 2).T
        return cls(places, of, words)


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded streams. `_at` are indices into the flattened [rows · tokens] grid.

    ids [rows, tokens]; positions [3, rows, tokens]; image_at [images · 16]; sound_at [sounds · 25]; images and sounds
    as the streams have them; wanted [rows, w] the places whose next token is asked, padded with 0; asked [answer
    tokens] indices into the flattened `wanted`; targets, answer_of and weights [answer tokens]; questions [answers].
    ends: the last places of units and of what the user typed, with words that say what they held; asks: the questions'
    last places, with words that say what the answer is; looks: those of questions about something earlier, with its
    last place instead of words.
    """

    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    image_at: NDArray[np.int64]
    sound_at: NDArray[np.int64]
    images: list[Any]
    sounds: list[Any]
    wanted: NDArray[np.int64]
    asked: NDArray[np.int64]
    targets: NDArray[np.int64]
    answer_of: NDArray[np.int64]
    weights: NDArray[np.float32]
    questions: list[Question]
    ends: Hints
    asks: Hints
    looks: Hints


class Layout:
    """Writes units into streams as models/demo's manifest has it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._known: dict[str, list[int]] = {}
        self._image, self._sound, self._pad = (
            tokenizer.token_to_id(name) for name in ("<|IMAGE|>", "<|AUDIO|>", "<|endoftext|>")
        )
        self._vision = tokenizer.token_to_id("<|vision_bos|>"), tokenizer.token_to_id("<|vision_eos|>")
        self._audio = tokenizer.token_to_id("<|audio_bos|>"), tokenizer.token_to_id("<|audio_eos|>")
        self._system = self.encode("<|im_start|>system\n")
        self._open = self.encode("<|im_end|>\n<|im_start|>user\n")
        self._ask = self.encode("<|im_end|>\n<|im_start|>assistant\n")
        self._bare = self.encode("<|im_start|>user\n")
        self._small = {*self.encode(" a an the digit letter picture sound something no 7")} - {*self.encode("7")}
        self._glue = {*self.encode("It is was a an the and 7, A.")} - {*self.encode("7"), *self.encode("A")}

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        if text not in self._known:
            self._known[text] = self._tokenizer.encode(text).ids
        return self._known[text]

    def system(self, stream: Stream, text: str | None) -> None:
        """Open a stream with a system unit; None leaves it out and only opens the user's turn."""
        self.text(stream, self._bare if text is None else [*self._system, *self.encode(text), *self._open])

    def media(self, stream: Stream, image: Any, sound: Any) -> None:
        """One second: 16 image tokens sharing a time in a 4×4 grid, then 25 audio tokens, each with its markers."""
        if image is not None:
            self.text(stream, [self._vision[0]])
            stream.image_spans.append(len(stream.ids))
            stream.ids += [self._image] * IMAGE_TOKENS
            stream.positions += [(stream.at, stream.at + i // 4, stream.at + i % 4) for i in range(IMAGE_TOKENS)]
            stream.at += 4
            self.text(stream, [self._vision[1]])
            stream.images.append(image)
        if sound is not None:
            self.text(stream, [self._audio[0]])
            stream.sound_spans.append(len(stream.ids))
            self.text(stream, [self._sound] * SOUND_TOKENS)
            self.text(stream, [self._audio[1]])
            stream.sounds.append(sound)

    def note(self, stream: Stream, phrases: Sequence[str]) -> None:
        """Remember what the unit that ends here held."""
        words = [
            i for phrase in phrases for i in self.encode(f" {phrase.removeprefix('the ')}") if i not in self._small
        ]
        stream.ends.append((len(stream.ids) - 1, words))

    def question(self, stream: Stream, text: str) -> None:
        """A question, which closes the user's turn."""
        self.text(stream, [*self.encode(text), *self._ask])

    def answer(self, stream: Stream, question: Question) -> None:
        """The answer, whose tokens and end are to be learnt, and the next open turn."""
        words = self.encode(question.answer)
        known = [i for i in words if i not in self._glue]
        place = len(stream.ids) - len(self._ask) - 1
        stream.asks.append((place, known))
        if question.form == "typed":
            stream.typed.append((place, [i for i in self.encode(question.text) if i not in self._glue]))
        elif question.form == "told":
            stream.looks.append((place, [stream.typed[-1][0]]))
        elif question.kind == "recall" and question.age and stream.ends:
            stream.looks.append((place, [stream.ends[-1 - question.age][0]]))
        stream.answers.append((len(stream.ids), len(words) + 1, question))
        self.text(stream, [*words, *self._open])

    def pad(self, streams: Sequence[Stream]) -> Batch:
        """Put streams side by side."""
        rows, width = len(streams), _padded(max(len(stream.ids) for stream in streams), 64)
        ids = np.full((rows, width), self._pad, np.int64)
        positions = np.zeros((3, rows, width), np.int64)
        image_at, sound_at, wanted, answer_of = [], [], [], []
        targets: list[int] = []
        weights: list[float] = []
        questions: list[Question] = []
        for row, stream in enumerate(streams):
            ids[row, : len(stream.ids)] = stream.ids
            positions[:, row, : len(stream.ids)] = np.array(stream.positions).T
            base = row * width
            image_at += [base + first + np.arange(IMAGE_TOKENS) for first in stream.image_spans]
            sound_at += [base + first + np.arange(SOUND_TOKENS) for first in stream.sound_spans]
            places: list[int] = []
            for first, length, question in stream.answers:
                places += range(first - 1, first - 1 + length)
                targets += stream.ids[first : first + length]
                answer_of += [len(questions)] * length
                weights += [_FIRST, *[1.0] * (length - 1)]
                questions.append(question)
            wanted.append(places)
        most = _padded(max(map(len, wanted)), 16)
        return Batch(
            ids=ids,
            positions=positions,
            image_at=np.concatenate(image_at) if image_at else np.zeros(0, np.int64),
            sound_at=np.concatenate(sound_at) if sound_at else np.zeros(0, np.int64),
            images=[image for stream in streams for image in stream.images],
            sounds=[sound for stream in streams for sound in stream.sounds],
            wanted=np.array([places + [0] * (most - len(places)) for places in wanted], np.int64),
            asked=np.concatenate([row * most + np.arange(len(places)) for row, places in enumerate(wanted)]),
            targets=np.array(targets, np.int64),
            answer_of=np.array(answer_of, np.int64),
            weights=np.array(weights, np.float32),
            questions=questions,
            ends=Hints.of_rows([stream.ends + stream.typed for stream in streams]),
            asks=Hints.of_rows([stream.asks for stream in streams]),
            looks=Hints.of_rows([stream.looks for stream in streams]),
        )

    def text(self, stream: Stream, ids: list[int]) -> None:
        """Ordinary tokens, each at a position of its own."""
        stream.ids += ids
        stream.positions += [(stream.at + i,) * 3 for i in range(len(ids))]
        stream.at += len(ids)


def windows_of(sounds: Sequence[Sound], rng: np.random.Generator, split: Split) -> NDArray[np.float32]:
    """Sounds that follow each other, as seconds with 320 samples before and 200 after: float32 [n, 16520]."""
    wave = track(sounds, [1] * len(sounds), RATE, rng, split.voices)
    wave = np.pad(wave, (LEFT, RIGHT))
    return np.stack([wave[i * RATE : i * RATE + LEFT + RATE + RIGHT] for i in range(len(sounds))])


def _padded(length: int, step: int) -> int:
    return -(-length // step) * step

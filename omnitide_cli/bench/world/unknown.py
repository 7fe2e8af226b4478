"""What people say that the world has no answer to: the model that lives in it is to say that it is unclear.

Texts are put together from patterns and words; those of the test split, and a list written by hand, occur in no text of
the training split. A text is never one of the world's own questions.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.words import WORDS

_LISTS = ("people", "things", "qualities", "actions", "places", "times", "other_scripts")

_HELD_OUT = 4  # every fourth word of a list belongs to the test split
_BY_HAND_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    patterns: tuple[str, ...]
    by_hand: tuple[str, ...]
    person: tuple[str, ...]
    thing: tuple[str, ...]
    quality: tuple[str, ...]
    action: tuple[str, ...]
    place: tuple[str, ...]
    time: tuple[str, ...]
    other: tuple[str, ...]


def any_unknown(split: Split, rng: np.random.Generator) -> str:
    """A text that the world has no answer to, in a split's own words."""
    is_test = split.name == "test"
    if is_test and rng.random() < _BY_HAND_SHARE:
        return _one(_vocabulary(True).by_hand, rng)
    words = _vocabulary(is_test)
    text = _one(words.patterns, rng).format(
        person=_one(words.person, rng),
        thing=_one(words.thing, rng),
        thing2=_one(words.thing, rng),
        quality=_one(words.quality, rng),
        action=_one(words.action, rng),
        place=_one(words.place, rng),
        time=_one(words.time, rng),
        other=_one(words.other, rng),
        noise=_noise(rng),
    )
    return text if is_test else _disturbed(text, rng)


def _disturbed(text: str, rng: np.random.Generator) -> str:
    """As people type: without a mark, in small letters, with a word more or less."""
    chance = rng.random()
    if chance < 0.15:
        return text.rstrip("?.")
    if chance < 0.25:
        return text.lower()
    words = text.split()
    if chance < 0.35 and len(words) > 2:
        del words[int(rng.integers(len(words)))]
        return " ".join(words)
    if chance < 0.4:
        words.insert(int(rng.integers(len(words) + 1)), _one(_vocabulary(False).quality, rng))
        return " ".join(words)
    return text


def _noise(rng: np.random.Generator) -> str:
    """Keys hit at random, numbers, marks."""
    letters = ("abcdefghijklmnopqrstuvwxyz", "abcdefghij klmno ", "0123456789", "?!.,-:;/", "aeiou", "äöüéñß你我他это")
    chosen = _one(letters, rng)
    return "".join(_one(chosen, rng) for _ in range(int(rng.integers(1, 13)))).strip() or "."


def _split_words(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Words of the training and of the test split; the world's own are in neither."""
    strange = [word for word in dict.fromkeys(words) if word not in WORDS]
    return (
        tuple(word for index, word in enumerate(strange) if index % _HELD_OUT),
        tuple(word for index, word in enumerate(strange) if index % _HELD_OUT == 0),
    )


def _one(options: Sequence[str], rng: np.random.Generator) -> str:
    return options[int(rng.integers(len(options)))]


@cache
def _vocabulary(is_test: bool) -> _Vocabulary:
    """The words of a split, from unknown.toml."""
    found = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    lists = [found[name].split() if isinstance(found[name], str) else found[name] for name in _LISTS]
    words = (_split_words(each)[int(is_test)] for each in lists)
    return _Vocabulary(tuple(found["test_patterns" if is_test else "patterns"]), tuple(found["by_hand"]), *words)

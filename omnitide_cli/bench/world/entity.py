"""Keys: single things that a question can name, and how each kind of question names them."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from omnitide_cli.bench.world.glyph import DIGITS, LETTERS
from omnitide_cli.bench.world.picture import COLOURS, SHAPES, Figure, character
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import NOTES
from omnitide_cli.bench.world.words import WORDS

Key = tuple[str, str]
"""("figure", "red circle"), ("glyph", "7"), ("word", "apple") or ("note", "do")."""


def every() -> Iterator[Key]:
    """All keys of the world."""
    yield from (("figure", f"{colour} {shape}") for colour, shape in product(COLOURS, SHAPES))
    yield from (("glyph", glyph) for glyph in (*DIGITS, *LETTERS))
    yield from (("word", word) for word in WORDS)
    yield from (("note", note) for note in NOTES)


_EVERY = {sort: [key for key in every() if key[0] == sort] for sort in ("figure", "glyph", "word", "note")}


def any_key(seen: Sequence[Scene], rng: np.random.Generator) -> Key:
    """Some key of a sort that the scenes had."""
    keys = _EVERY[str(rng.choice(_sorts(seen)))]
    return keys[int(rng.integers(len(keys)))]


def missing_key(seen: Sequence[Scene], rng: np.random.Generator) -> Key | None:
    """Some key that no scene had, of a sort that the scenes had; None if they had all."""
    had = {key for scene in seen for key in of_scene(scene)}
    keys = [key for sort in _sorts(seen) for key in _EVERY[sort] if key not in had]
    return keys[int(rng.integers(len(keys)))] if keys else None


def _sorts(seen: Sequence[Scene]) -> list[str]:
    return sorted({key[0] for scene in seen for key in of_scene(scene)}) or list(_EVERY)


def of_scene(scene: Scene, single: bool = False) -> list[Key]:
    """What the scene has; `single` leaves out figures that are not alone in their picture."""
    found: list[Key] = []
    if scene.picture is not None:
        if len(scene.picture.figures) == 1 or not single:
            found += [("figure", f"{figure.colour} {figure.shape}") for figure in scene.picture.figures]
        if scene.picture.glyph:
            found.append(("glyph", scene.picture.glyph))
    if scene.sound is not None and scene.sound.word:
        found.append(("word", scene.sound.word))
    if scene.sound is not None and scene.sound.note:
        found.append(("note", scene.sound.note))
    return found


def sense(key: Key) -> str:
    """The sense that perceives it: image or sound."""
    return "image" if key[0] in ("figure", "glyph") else "sound"


def indefinite(key: Key) -> str:
    """a red circle, the digit 7, the word apple, the note do."""
    sort, name = key
    if sort == "figure":
        return Figure(*name.split()).phrase()
    return f"the {character(name)}" if sort == "glyph" else f"the {sort} {name}"


def beside(key: Key) -> str:
    """With the article that points at one occasion: the red circle."""
    return f"the {key[1]}" if key[0] == "figure" else indefinite(key)


def present(key: Key) -> str:
    """Is it here?"""
    return f"Do you {_verb(key)} {indefinite(key)}?"


def past(key: Key) -> str:
    """Was it here so far?"""
    return f"Did you {_verb(key)} {indefinite(key)}?"


def often(key: Key) -> str:
    """How often was it here so far?"""
    return f"How often did you {_verb(key)} {indefinite(key)}?"


def other(key: Key) -> str:
    """What did the other sense perceive with it, the last time?"""
    return f"What did you last {'see' if sense(key) == 'sound' else 'hear'} with {beside(key)}?"


def _verb(key: Key) -> str:
    return "see" if sense(key) == "image" else "hear"

"""What may be asked about the present second, in which words, and the true answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from omnitide_cli.bench.world.picture import COLOURS, SHAPES, Picture
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import NOTES, Sound

DEFAULT_QUESTION = "What do you see and hear?"
NO_PICTURE = "There is no picture."
NOTHING_BEFORE = "There was nothing before."
OUT_OF_SCOPE = "I only know colours, shapes and notes."

WORDINGS: dict[str, tuple[str, ...]] = {
    "all": (
        DEFAULT_QUESTION,
        "What do you see and hear now?",
        "What is there?",
        "What is there now?",
        "What is happening?",
        "What's going on?",
        "Describe what you see and hear.",
        "Describe this second.",
        "Tell me what you see and hear.",
        "What can you see and hear?",
        "What is it now?",
    ),
    "see": (
        "What do you see?",
        "What do you see now?",
        "What can you see?",
        "What is in the picture?",
        "What is on the screen?",
        "What do you see right now?",
        "Describe the picture.",
        "What does the picture show?",
        "Which object is there?",
        "What object do you see?",
    ),
    "hear": (
        "What do you hear?",
        "What do you hear now?",
        "What can you hear?",
        "What sound is it?",
        "What do you hear right now?",
        "Describe the sound.",
        "Which note is it?",
        "Which note do you hear?",
        "What note is playing?",
        "Which note is playing now?",
        "What is the note?",
        "Name the note.",
    ),
    "colour": (
        "What colour is it?",
        "Which colour is it?",
        "Which colour do you see?",
        "What is the colour?",
        "What colour is the shape?",
        "Which colour is the shape now?",
        "What color is it?",
        "Name the colour.",
        "Which colour is there now?",
    ),
    "shape": (
        "What shape is it?",
        "Which shape is it?",
        "Which shape do you see?",
        "What is the shape?",
        "What shape is there now?",
        "Which shape is there?",
        "Name the shape.",
        "Which shape is it now?",
    ),
    "before": (
        "What was there before?",
        "What was before that?",
        "What did you see and hear before?",
        "What was there one second ago?",
        "What was there a second ago?",
    ),
    "scope": (
        "Who are you?",
        "What is your name?",
        "Tell me a joke.",
        "What is the capital of France?",
        "How old are you?",
        "Write a poem.",
        "What time is it?",
        "How is the weather?",
        "Can you help me?",
        "Hello!",
        "Hello, how are you?",
        "What is two plus two?",
        "Who made this?",
        "Where are we?",
        "Why?",
        "Translate this.",
    ),
}
_CHECKS = {
    "colour": ("Is it {}?", "Do you see something {}?", "Is the shape {}?"),
    "shape": ("Is there a {}?", "Is it a {}?", "Do you see a {}?"),
    "note": ("Do you hear {}?", "Is the note {}?", "Do you hear the note {}?"),
}
_OPTIONS: dict[str, tuple[str, ...]] = {"colour": tuple(COLOURS), "shape": SHAPES, "note": NOTES}


@dataclass(frozen=True, slots=True)
class Question:
    """A question in words, its kind, and the true answer."""

    kind: str
    text: str
    answer: str


def ask(kind: str, scenes: Sequence[Scene], rng: np.random.Generator) -> Question:
    """A question of this kind ("check" or a key of WORDINGS) after `scenes`, the last of which is now."""
    if kind == "check":
        return _check(scenes, rng)
    return Question(kind, _vary(str(rng.choice(WORDINGS[kind])), rng), answer(kind, scenes))


def answer(kind: str, scenes: Sequence[Scene]) -> str:
    """The true answer to a question of this kind (a key of WORDINGS) after `scenes`."""
    if kind == "scope":
        return OUT_OF_SCOPE
    if kind == "before":
        return _sentence(_everything(scenes[-2])) if len(scenes) > 1 else NOTHING_BEFORE
    now = scenes[-1] if scenes else Scene(None, None)
    if kind == "all":
        return _sentence(_everything(now))
    if kind == "hear":
        heard = now.hearing()
        return "I hear nothing." if heard == "silence" else _sentence(heard)
    if now.picture is None:
        return NO_PICTURE
    if kind == "see":
        return _sentence(now.sight())
    if now.picture.outside:
        return f"The {kind} is unclear."
    return f"It is {now.picture.colour}." if kind == "colour" else f"It is a {now.picture.shape}."


def sentences() -> Iterator[str]:
    """Every question and every answer of the world, once."""
    for texts in WORDINGS.values():
        yield from texts
    for about, texts in _CHECKS.items():
        yield from (text.format(option) for text in texts for option in _OPTIONS[about])
    pictures = [Picture(c, s) for c, s in product(COLOURS, SHAPES)] + [Picture(outside="noise"), None]
    sounds = [Sound(n) for n in NOTES] + [Sound(), Sound(outside="noise")]
    for picture, sound in product(pictures, sounds):
        yield from (answer(kind, [Scene(picture, sound)]) for kind in ("all", "see", "hear", "colour", "shape"))
    yield from ("Yes.", "No.", "It is unclear.", NOTHING_BEFORE, OUT_OF_SCOPE)


def _everything(scene: Scene) -> str:
    return f"{scene.sight()} and {scene.hearing()}"


def _sentence(phrase: str) -> str:
    return phrase[0].upper() + phrase[1:] + "."


def _check(scenes: Sequence[Scene], rng: np.random.Generator) -> Question:
    """A yes-or-no question, true half of the time."""
    now = scenes[-1] if scenes else Scene(None, None)
    about = str(rng.choice(list(_CHECKS)))
    if about == "note":
        truth = now.sound.note if now.sound else ""
        unclear = bool(now.sound and now.sound.outside)
    else:
        truth = getattr(now.picture, about) if now.picture else ""
        unclear = bool(now.picture and now.picture.outside)
    option = truth if truth and rng.random() < 0.5 else str(rng.choice(_OPTIONS[about]))
    text = _vary(str(rng.choice(_CHECKS[about])).format(option), rng)
    return Question("check", text, "It is unclear." if unclear else "Yes." if option == truth else "No.")


def _vary(text: str, rng: np.random.Generator) -> str:
    """Write it as people type: now and then without capital or final mark, or with a polite word."""
    if rng.random() < 0.08:
        text = str(rng.choice(["Please: ", "Now: ", "And now? ", "OK. "])) + text
    if rng.random() < 0.15:
        text = text.lower()
    if rng.random() < 0.15:
        text = text.rstrip("?.!")
    return text

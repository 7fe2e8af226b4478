"""What may be asked after some seconds of the world, in which words, and the true answer.

Forms are few and regular. Each belongs to a kind and a sense:

    kind     now (the present second) · recall (something earlier) · count (how often so far) · scope (nothing of it) ·
             typed (no question: something that the user wants remembered) · unknown (what no stream has an answer to)
    sense    image · sound · both (asked by one and answered by the other, or by both) · text (typed)
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeVar

import numpy as np

from omnitide_cli.bench.world import entity as keys
from omnitide_cli.bench.world.glyph import DIGITS, LETTERS
from omnitide_cli.bench.world.picture import COLOURS, SHAPES, Figure
from omnitide_cli.bench.world.scene import Scene
from omnitide_cli.bench.world.sound import NOTES
from omnitide_cli.bench.world.words import WORDS

DEFAULT_QUESTION = "What do you see and hear?"
OUT_OF_SCOPE = "I only know this small world."
UNCLEAR = "Unclear."
OFTEN = ("Never.", "Once.", "Twice.", "Three times.", "More often.")
NUMBERS = ("None.", "One.", "Two.", "Three.")
REMEMBERED = "What did I last tell you to remember?"
PROMISE = "I will."
AGO = ("one second", "two seconds", "three seconds", "four seconds")

WORDINGS: dict[str, tuple[str, ...]] = {
    "all": (DEFAULT_QUESTION, "What do you see and hear now?", "What is there now?", "What is happening?"),
    "see": ("What do you see?", "What do you see now?", "What is in the picture?"),
    "hear": ("What do you hear?", "What do you hear now?", "What sound is it?"),
    "colour": ("What colour is it?", "Which colour is it?"),
    "shape": ("What shape is it?", "Which shape is it?"),
    "left": ("What is on the left?",),
    "right": ("What is on the right?",),
    "number": ("How many shapes are there?",),
    "scope": ("Who are you?", "Hello!", "What is your name?", "Tell me a joke.", "How is the weather?", "Why?"),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A question in words and its true answer."""

    form: str
    kind: str
    sense: str
    text: str
    answer: str
    age: int | None
    """Seconds since the latest second that it is about, 0 for the present one; None if there is none."""


_OTHER_WORDS = (
    ("Do you see ", "Is there ", "?"),
    ("Do you hear ", "Can you hear ", "?"),
    ("Did you see ", "Was there ", "?"),
    ("Did you hear ", "Was there ", "?"),
)

T = TypeVar("T")
Asker = Callable[[Sequence[Scene], np.random.Generator], Question | None]


def ask(form: str, seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """A question of this form (a key of FORMS) after `seen`, whose last scene is now; None where it makes no sense."""
    return FORMS[form](seen, rng)


def any_typed(rng: np.random.Generator) -> str:
    """Something that a user may type: a word, a digit or a letter, as a phrase."""
    sort = _one(("word", "digit", "letter"), rng)
    return f"the {sort} {_one({'word': WORDS, 'digit': DIGITS, 'letter': LETTERS}[sort], rng)}"


def remember(typed: str) -> Question:
    """What the user types, and what is to be said to it."""
    return Question("typed", "typed", "text", f"Remember {typed}.", PROMISE, None)


def unknown(text: str) -> Question:
    """Something that the world has no answer to (unknown.py), and what is to be said to it."""
    return Question("unknown", "unknown", "text", text, UNCLEAR, None)


def reworded(question: Question) -> Question:
    """The same question as other people put it, where there is such a form: "Is there a red circle?"."""
    text = question.text
    for start, other, end in _OTHER_WORDS:
        if text.startswith(start):
            return replace(question, text=f"{other}{text.removeprefix(start).rstrip('?')}{end}")
    return question


def plain(form: str, seen: Sequence[Scene], text: str = "") -> Question | None:
    """A question about the present second that needs no choice: `form` is a key of WORDINGS."""
    text = text or WORDINGS[form][0]
    now = seen[-1] if seen else Scene(None, None)
    if form == "scope":
        return Question(form, "scope", "both", text, OUT_OF_SCOPE, None)
    if form == "all":
        return Question(form, "now", "both", text, everything(now), 0)
    if form == "hear":
        return Question(form, "now", "sound", text, sentence([now.hearing()]), 0)
    answer = _sight(form, now)
    return Question(form, "now", "image", text, answer, 0) if answer else None


def everything(scene: Scene) -> str:
    """A scene in a sentence."""
    return sentence([*scene.sights(), scene.hearing()])


def sentence(phrases: Sequence[str]) -> str:
    """Phrases joined to a sentence."""
    text = " and ".join(filter(None, (", ".join(phrases[:-1]), phrases[-1])))
    return text[0].upper() + text[1:] + "."


def sentences() -> Iterator[str]:
    """Every question and every answer of the world, its words in all their places; pictures of one figure only."""
    for texts in WORDINGS.values():
        yield from texts
    for key in keys.every():
        yield f"{keys.present(key)} {keys.past(key)} {keys.often(key)} {keys.beside(key)} {keys.other(key)}"
    figures = [Figure(colour, shape).phrase() for colour, shape in product(COLOURS, SHAPES)]
    sights = [*figures, *(f"the digit {g}" for g in DIGITS), *(f"the letter {g}" for g in LETTERS)]
    sounds = [*(f"the word {w}" for w in WORDS), *(f"the note {n}" for n in NOTES), "silence", "an unclear sound"]
    for sight, sound in product([*sights, "something unclear", "no picture"], sounds):
        yield sentence([sight, sound])
    for phrase in (*sights, *sounds, "something unclear", "no picture"):
        yield sentence([phrase])
    yield sentence([*figures[:2]])
    for colour, shape in product(COLOURS, SHAPES):
        yield f"It is {colour}. It is a {shape}. What colour was the last {shape}? What was the last {colour} shape?"
    for ago, what in product(AGO, ("did you see", "did you hear", "was there")):
        yield f"What {what} {ago} ago?"
    yield from (f"What was the last {thing}?" for thing in ("word", "note", "digit", "letter"))
    yield f"{REMEMBERED} Remember the word {WORDS[0]}. {PROMISE}"
    yield from (*OFTEN, *NUMBERS, UNCLEAR, OUT_OF_SCOPE, "Yes.", "No.")


def _sight(form: str, now: Scene) -> str | None:
    if form == "see":
        return sentence(now.sights())
    picture = now.picture
    if picture is None:
        return None
    if form in ("left", "right"):
        return sentence([picture.figures[0 if form == "left" else -1].phrase()]) if len(picture.figures) > 1 else None
    if form == "number":
        return UNCLEAR if picture.outside else NUMBERS[len(picture.figures)]
    if picture.outside:
        return UNCLEAR
    if len(picture.figures) != 1:
        return None
    figure = picture.figures[0]
    return f"It is {figure.colour}." if form == "colour" else f"It is a {figure.shape}."


def _worded(form: str) -> Asker:
    def asker(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
        return plain(form, seen, str(rng.choice(WORDINGS[form])))

    return asker


def _check(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """Yes or no about the present second, true half of the time."""
    here = keys.of_scene(seen[-1])
    key = _one(here, rng) if here and rng.random() < 0.5 else keys.any_key(seen, rng)
    answer = "Yes." if key in here else "No."
    return Question("check", "now", keys.sense(key), keys.present(key), answer, 0)


def _ago(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """By the clock: what was there one to four seconds ago."""
    age = int(rng.integers(1, len(AGO) + 1))
    if age >= len(seen):
        return None
    scene, ago = seen[-1 - age], AGO[age - 1]
    what = str(rng.choice(["see", "hear", "all"]))
    if what == "see":
        return Question("ago", "recall", "image", f"What did you see {ago} ago?", sentence(scene.sights()), age)
    if what == "hear":
        return Question("ago", "recall", "sound", f"What did you hear {ago} ago?", sentence([scene.hearing()]), age)
    return Question("ago", "recall", "both", f"What was there {ago} ago?", everything(scene), age)


def _with(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """By the other sense: what was seen with a sound, heard with a picture, when it was there the last time."""
    found = _of_any_age(seen, rng, earlier=True)
    if found is None:
        return None
    key, age = found
    scene = seen[-1 - age]
    answer = sentence(scene.sights()) if keys.sense(key) == "sound" else sentence([scene.hearing()])
    return Question("with", "recall", "both", keys.other(key), answer, age)


def _last(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """By its sort: the last word, note, digit, letter, red shape; the colour of the last circle."""
    sort = str(rng.choice(["word", "note", "digit", "letter", "colour", "shape"]))
    option = str(rng.choice(list(COLOURS) if sort == "colour" else SHAPES))
    for age, scene in enumerate(reversed(seen)):
        picture, sound = scene.picture, scene.sound
        answers: list[str] = []
        if sort in ("word", "note") and sound and getattr(sound, sort):
            answers = [sentence([sound.phrase()])]
        elif sort in ("digit", "letter") and picture and picture.glyph in (DIGITS if sort == "digit" else LETTERS):
            answers = [sentence(picture.phrases())]
        elif sort == "colour" and picture:
            answers = [sentence([f.phrase()]) for f in picture.figures if f.colour == option]
        elif sort == "shape" and picture:
            answers = [f"It was {f.colour}." for f in picture.figures if f.shape == option]
        if answers:
            text = {"colour": f"What was the last {option} shape?", "shape": f"What colour was the last {option}?"}
            asked = text.get(sort, f"What was the last {sort}?")
            sense = "sound" if sort in ("word", "note") else "image"
            return Question("last", "recall", sense, asked, answers[0], age) if age and len(answers) == 1 else None
    return None


def _told(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """What the user typed last."""
    del rng
    for age, scene in enumerate(reversed(seen)):
        if scene.typed:
            return Question("told", "recall", "text", REMEMBERED, sentence([scene.typed]), age)
    return None


def _did(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """Whether it was there at all so far, true half of the time."""
    if rng.random() < 0.5:
        found = _of_any_age(seen, rng)
        return Question("did", "count", keys.sense(found[0]), keys.past(found[0]), "Yes.", found[1]) if found else None
    key = keys.missing_key(seen, rng)
    return Question("did", "count", keys.sense(key), keys.past(key), "No.", None) if key else None


def _often(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """How many seconds so far had it; every number about as often as it can be."""
    counts = _counts(seen)
    number = _one(sorted({0, *(min(count, 4) for count in counts.values())}), rng)
    if number == 0:
        key = keys.missing_key(seen, rng)
    else:
        key = _one([key for key, count in counts.items() if min(count, 4) == number], rng)
    return _counted("often", seen, [key], keys.often(key)) if key else None


def _often_both(seen: Sequence[Scene], rng: np.random.Generator) -> Question | None:
    """How many seconds had both a certain sight and a certain sound."""
    scene = seen[int(rng.integers(len(seen)))]
    here = keys.of_scene(scene, single=True)
    sights = [key for key in here if keys.sense(key) == "image"]
    sounds = [key for key in here if keys.sense(key) == "sound"]
    if not sights or not sounds:
        return None
    pair = [_one(sights, rng), _one(sounds, rng)]
    if rng.random() < 0.3:  # a pair that may never have met
        known = [key for other in seen for key in keys.of_scene(other) if keys.sense(key) == "sound"]
        pair[1] = _one(known, rng)
    return _counted("together", seen, pair, f"{keys.often(pair[0])[:-1]} with {keys.beside(pair[1])}?")


def _counted(form: str, seen: Sequence[Scene], wanted: Sequence[keys.Key], text: str) -> Question:
    ages = [age for age, scene in enumerate(reversed(seen)) if set(wanted) <= set(keys.of_scene(scene))]
    sense = keys.sense(wanted[0]) if len(wanted) == 1 else "both"
    return Question(form, "count", sense, text, OFTEN[min(len(ages), 4)], ages[0] if ages else None)


def _counts(seen: Sequence[Scene]) -> Counter[keys.Key]:
    """In how many seconds each key was there."""
    return Counter(key for scene in seen for key in keys.of_scene(scene))


def _of_any_age(seen: Sequence[Scene], rng: np.random.Generator, earlier: bool = False) -> tuple[keys.Key, int] | None:
    """Something that was there, and how many seconds ago the last time; every age as likely as another.

    Were every thing as likely, most would have been there a moment ago. None if nothing was there. `earlier`: not in
    the present second, and then alone in its picture if it is a figure.
    """
    latest: dict[keys.Key, int] = {}
    for age, scene in enumerate(reversed(seen)):
        for key in keys.of_scene(scene):
            latest.setdefault(key, age)
    if earlier:
        latest = {key: age for key, age in latest.items() if age and key in keys.of_scene(seen[-1 - age], single=True)}
    if not latest:
        return None
    age = _one(sorted(set(latest.values())), rng)
    return _one([key for key, last in latest.items() if last == age], rng), age


def _one(options: Sequence[T], rng: np.random.Generator) -> T:
    return options[int(rng.integers(len(options)))]


FORMS: dict[str, Asker] = {
    **{form: _worded(form) for form in WORDINGS},
    "check": _check,
    "ago": _ago,
    "with": _with,
    "last": _last,
    "told": _told,
    "did": _did,
    "often": _often,
    "together": _often_both,
}

"""Text that goes on and on: a seeded village diary. Every fourth paragraph tells a fact that can be asked for later."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

OPENING = "A diary of the village, one paragraph for each person who came by.\n"
NAMES = (  # noqa: SIM905
    "Clara Otto Maria Peter Anna Paul Lucy Henry Emma Jack Alice George Rose Thomas Helen Frank Grace David Ruth Simon "
    "Laura Martin Julia Robert Sarah William Nora Edward Ella Arthur Lily Samuel Jane Oscar Mary Victor Eva Daniel "
    "Sophie Leo Agnes Hugo Irene Walter Kate Philip Diana Andrew Judith Albert Susan Oliver Nina Charles Vera Joseph "
    "Ida Patrick Hannah Ralph Lena Adam Marta Stephen"
).split()
THINGS = (  # noqa: SIM905
    "lamp boat violin hammer apple mirror candle basket clock ladder carpet piano rope kettle garden blanket pencil "
    "bridge guitar spoon window saddle bottle drum feather wagon needle button painting anchor chair barrel telescope "
    "shovel coat ribbon hat flute trumpet wheel sword ring key map letter bell cup tent stone pearl book umbrella mask "
    "shield crown net bucket axe broom pillow scarf table horse kite"
).split()
FACTS = (
    "The sign above the inn shows a",
    "The key to the cellar lies under the",
    "The thief had stolen the",
    "The winner of the race got a",
    "The tailor was looking for his",
    "The mayor has broken the",
    "The baker gave away his cart for a",
    "The letter was hidden inside the",
    "The children found in the snow a",
    "The ferry is painted like a",
    "The doctor never travels without a",
    "The password of the guards is",
    "The stranger paid for dinner with a",
    "The smith is making for the queen a",
    "The professor wrote a book about the",
    "The captain had lost at cards his",
)
FACT_EVERY = 4
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PLACES = ("mill", "market", "church", "harbour", "forest", "school", "station", "bakery", "old tower", "river")
WEATHER = ("rain fell", "the sun shone", "fog lay on the fields", "a cold wind blew", "snow covered the roofs")
DEEDS = ("repaired a fence", "sold eggs", "read aloud from a letter", "painted a door", "told a long story", "sang")
TALK = ("the harvest", "the price of bread", "a lost dog", "the new road", "the war", "a wedding", "the flood")
SIGHTS = (
    "Two dogs ran across the square.",
    "A cart rolled slowly over the bridge.",
    "The smoke of the chimneys went straight up.",
    "Somebody played music behind a window.",
)
ENDINGS = (
    "Everyone laughed.",
    "Nobody knew what to say.",
    "Later they walked home together.",
    "The bells rang at six.",
    "It was dark when they parted.",
)
MOST_PARAGRAPHS = len(FACTS) * FACT_EVERY


@dataclass(frozen=True, slots=True)
class Fact:
    """`question` + `answer` is a sentence's text; the question is asked as a completion."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One unit of the stream."""

    text: str
    fact: Fact | None


def write_paragraphs(seed: int, count: int) -> list[Paragraph]:
    """The same for the same seed; at most MOST_PARAGRAPHS, as every fact and every name has its own."""
    chance = random.Random(seed)
    names = chance.sample(NAMES, count)
    questions = iter(chance.sample(FACTS, len(FACTS)))
    things = iter(chance.sample(THINGS, len(FACTS)))
    paragraphs = []
    for index in range(count):
        fact = None if index % FACT_EVERY else Fact(next(questions), f" {next(things)}")
        paragraphs.append(_paragraph(chance, names, index, fact))
    return paragraphs


def _paragraph(chance: random.Random, names: Sequence[str], index: int, fact: Fact | None) -> Paragraph:
    name, other = names[index], chance.choice(names[: index + 1])
    company = f"with {other}" if other != name else "alone"
    sentences = [
        f"On {chance.choice(DAYS)} {name} came to the {chance.choice(PLACES)} {company} and {chance.choice(DEEDS)}.",
        f"While {chance.choice(WEATHER)}, they talked about {chance.choice(TALK)} and {chance.choice(TALK)}.",
        f"{name} stayed until {chance.randint(4, 9)} in the evening to hear about {chance.choice(TALK)}.",
        f"{fact.question}{fact.answer}." if fact else chance.choice(SIGHTS),
        chance.choice(ENDINGS),
    ]
    return Paragraph(" ".join(sentences) + "\n", fact)

"""What a picture shows: one to three coloured shapes, a printed digit or letter, or something that is none of that."""

from dataclasses import dataclass

import numpy as np

from omnitide_cli.bench.world.glyph import DIGITS, LETTERS

COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (222, 40, 44),
    "green": (40, 184, 66),
    "blue": (48, 74, 224),
    "yellow": (240, 222, 46),
    "white": (246, 246, 246),
    "purple": (150, 50, 186),
    "orange": (244, 138, 28),
    "cyan": (40, 210, 222),
}
SHAPES = ("circle", "square", "triangle", "cross")
OUTSIDE = ("noise", "gradient", "stripes", "clouds", "crowd", "lettering", "blank")


@dataclass(frozen=True, slots=True)
class Figure:
    """A coloured shape."""

    colour: str
    shape: str

    def phrase(self) -> str:
        """As it stands in a sentence."""
        return f"{'an' if self.colour == 'orange' else 'a'} {self.colour} {self.shape}"


@dataclass(frozen=True, slots=True)
class Picture:
    """Figures from left to right, or a glyph, or one of OUTSIDE."""

    figures: tuple[Figure, ...] = ()
    glyph: str = ""
    outside: str = ""

    def phrases(self) -> list[str]:
        """What is seen, one phrase a thing, from left to right."""
        if self.outside:
            return ["something unclear"]
        return [f"the {character(self.glyph)}"] if self.glyph else [figure.phrase() for figure in self.figures]


def character(glyph: str) -> str:
    """A glyph's name: "digit 7" or "letter K"."""
    return f"{'digit' if glyph in DIGITS else 'letter'} {glyph}"


def one(colour: str, shape: str) -> Picture:
    """A picture of one figure."""
    return Picture((Figure(colour, shape),))


def any_picture(rng: np.random.Generator, outside: float, simple: bool = False) -> Picture:
    """Draw a picture; from outside the world with probability `outside`. `simple`: no glyphs, and one figure only."""
    if rng.random() < outside:
        return Picture(outside=str(rng.choice(OUTSIDE)))
    if simple:
        return one(str(rng.choice(list(COLOURS))), str(rng.choice(SHAPES)))
    if rng.random() < 0.35:
        return Picture(glyph=str(rng.choice(DIGITS if rng.random() < 0.6 else LETTERS)))
    count = int(rng.choice([1, 2, 3], p=[0.6, 0.26, 0.14]))
    colours = rng.choice(list(COLOURS), count, replace=False)
    return Picture(tuple(Figure(str(colour), str(rng.choice(SHAPES))) for colour in colours))

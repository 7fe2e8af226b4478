"""Pictures as pixels: marks on a calm background, laid out by chance, painted in any size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.world import glyph, outside
from omnitide_cli.bench.world.outside import Image, Plane, stamp
from omnitide_cli.bench.world.picture import COLOURS, SHAPES, Picture

BACKDROPS = ("vertical", "horizontal", "spots", "diagonal", "vignette")
"""Kinds of background; split.py says which of them are held out."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A shape or a glyph on a canvas. Lengths are fractions of the picture's shorter side."""

    form: str
    ink: Plane
    centre: tuple[float, float]
    radius: float
    turn: float
    weight: float
    """Thickness of a glyph's strokes, as a fraction of its radius."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """How a picture is laid out. Colours are 0 to 255."""

    picture: Picture
    marks: tuple[Mark, ...]
    backdrop: str
    first: Plane
    second: Plane
    grain: float
    seed: int


def lay_out(
    picture: Picture,
    rng: np.random.Generator,
    aspect: float = 1.0,
    backdrops: Sequence[str] = BACKDROPS,
    plain: bool = False,
) -> Canvas:
    """Choose places, sizes, background and grain. `aspect` is width ÷ height of the picture to come.

    `plain` pictures are the easiest: large upright marks on one dark colour.
    """
    forms = [picture.glyph] if picture.glyph else [figure.shape for figure in picture.figures]
    names = [figure.colour for figure in picture.figures] or [str(rng.choice(list(COLOURS)))]
    inks = [np.clip(np.array(COLOURS[n]) * rng.uniform(0.85, 1.04) + rng.normal(0, 5, 3), 0, 255) for n in names]
    first, second = _tones(inks, rng)
    if plain:
        first = second = rng.uniform(0, 50, 3).astype(np.float32)
    slot = max(aspect, 1.0) / max(1, len(forms))
    height = max(1 / aspect, 1.0)
    largest = 0.4 if len(forms) == 1 else min(0.36, 0.44 * slot)
    marks = []
    for place, form in enumerate(forms):
        radius = float(rng.uniform(0.78 if plain else 0.5, 1) * largest)
        if len(forms) > 1:
            radius = float(rng.uniform(0.75, 1) * largest)
        middle = (place + 0.5) * slot - max(aspect, 1.0) / 2
        room_x, room_y = slot / 2 - radius, height / 2 - radius
        x, y = middle + float(rng.uniform(-room_x, room_x)), float(rng.uniform(-room_y, room_y))
        turn = 0.0 if plain else float(rng.uniform(-0.12, 0.12))
        ink = inks[place].astype(np.float32)
        marks.append(Mark(form, ink, (x, y), radius, turn, float(rng.uniform(0.13, 0.22))))
    return Canvas(
        picture=picture,
        marks=tuple(marks),
        backdrop=str(rng.choice(list(backdrops))),
        first=first,
        second=second,
        grain=float(rng.choice([0.0, 2.0, 5.0, 9.0])),
        seed=int(rng.integers(2**31)),
    )


def draw(canvas: Canvas, width: int, height: int, softness: float = 1.0, drift: tuple[float, float] = (0, 0)) -> Image:
    """Paint a canvas as uint8 [height, width, 3] RGB; edges fade over `softness` pixels."""
    x, y = axes(width, height)
    rng = np.random.default_rng(canvas.seed)
    if canvas.picture.outside:
        ground = _ground(canvas, x, y, rng)
        image = outside.PAINTERS[canvas.picture.outside](ground, x, y, rng)
    else:
        image = _ground(canvas, x, y, rng)
        for mark, cover in zip(canvas.marks, covers(canvas, x, y, softness / min(width, height), drift), strict=True):
            stamp(image, mark.ink, cover)
    if canvas.grain:
        image += rng.standard_normal(image.shape, np.float32) * canvas.grain
    return np.clip(image + 0.5, 0, 255).astype(np.uint8)


def axes(width: int, height: int) -> tuple[Plane, Plane]:
    """Coordinates of the pixels, 0 in the middle: x [1, width] and y [height, 1], the shorter side is 1 long."""
    side = min(width, height)
    x = ((np.arange(width, dtype=np.float32) + 0.5) - width / 2)[None, :] / side
    y = ((np.arange(height, dtype=np.float32) + 0.5) - height / 2)[:, None] / side
    return x.astype(np.float32), y.astype(np.float32)


def covers(canvas: Canvas, x: Plane, y: Plane, edge: float, drift: tuple[float, float] = (0, 0)) -> Iterator[Plane]:
    """For each mark, how much of each pixel it covers, 0 to 1."""
    for mark in canvas.marks:
        dx, dy = x - np.float32(mark.centre[0] + drift[0]), y - np.float32(mark.centre[1] + drift[1])
        cos, sin = np.float32(np.cos(mark.turn)), np.float32(np.sin(mark.turn))
        yield outside.cover(_distance(mark, dx * cos + dy * sin, dy * cos - dx * sin), edge)


def letterbox(image: Image, side: int) -> Image:
    """Put a picture that already fits into the middle of a black square: uint8 [side, side, 3]."""
    height, width = image.shape[:2]
    square = np.zeros((side, side, 3), np.uint8)
    top, left = (side - height) // 2, (side - width) // 2
    square[top : top + height, left : left + width] = image
    return square


def fitted(aspect: float, side: int) -> tuple[int, int]:
    """Width and height of a picture of this aspect, scaled to fit a square of `side` pixels."""
    if aspect >= 1:
        return side, max(1, round(side / aspect))
    return max(1, round(side * aspect)), side


def _distance(mark: Mark, x: Plane, y: Plane) -> Plane:
    if mark.form in SHAPES:
        return outside.shape_distance(mark.form, x, y, mark.radius)
    return glyph.distance(mark.form, x, y, mark.radius * 0.84, mark.weight)


def _tones(inks: Sequence[NDArray[np.floating]], rng: np.random.Generator) -> tuple[Plane, Plane]:
    """Two calm colours, both clearly different from every ink; the nearest of many tries when it can't be."""
    best, farthest = None, 0.0
    for _ in range(60):
        tone = rng.uniform(0, 110) if rng.random() < 0.7 else rng.uniform(110, 235)
        first = np.clip(tone + rng.normal(0, 14, 3), 0, 255).astype(np.float32)
        second = np.clip(first + rng.normal(0, 16) + rng.normal(0, 6, 3), 0, 255).astype(np.float32)
        gap = min(float(np.linalg.norm(tone - ink)) for ink in inks for tone in (first, second))
        if gap > farthest:
            best, farthest = (first, second), gap
        if gap > 105:
            break
    assert best is not None
    return best


def _ground(canvas: Canvas, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    """The background, from the first colour to the second: float32 [height, width, 3]."""
    share_x = (x - x[0, 0]) / max(float(np.ptp(x)), 1e-6)
    share_y = (y - y[0, 0]) / max(float(np.ptp(y)), 1e-6)
    shares = {
        "vertical": lambda: share_y + 0 * share_x,
        "horizontal": lambda: share_x + 0 * share_y,
        "diagonal": lambda: (share_x + share_y) / 2,
        "vignette": lambda: np.hypot(share_x - 0.5, share_y - 0.5) * 1.4,
        "spots": lambda: outside.stretch(rng.uniform(0, 1, (4, 4, 1)).astype(np.float32), len(y), x.shape[1])[..., 0],
    }
    share = shares[canvas.backdrop]()[..., None].astype(np.float32)
    return canvas.first * (1 - share) + canvas.second * share

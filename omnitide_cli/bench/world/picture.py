"""Pictures: one coloured shape on a plain background, or something that is none of that."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Plane = NDArray[np.floating]

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
class Picture:
    """What a picture shows: a colour and a shape, or one of OUTSIDE."""

    colour: str = ""
    shape: str = ""
    outside: str = ""


@dataclass(frozen=True, slots=True)
class Canvas:
    """How a picture is laid out. Lengths are fractions of the shorter side, colours 0 to 255."""

    picture: Picture
    top: Plane
    bottom: Plane
    ink: Plane
    centre: tuple[float, float]
    radius: float
    turn: float
    grain: float
    seed: int


def any_picture(rng: np.random.Generator, outside: float) -> Picture:
    """Draw a picture; it is from outside the world with probability `outside`."""
    if rng.random() < outside:
        return Picture(outside=str(rng.choice(OUTSIDE)))
    return Picture(colour=str(rng.choice(list(COLOURS))), shape=str(rng.choice(SHAPES)))


def lay_out(picture: Picture, rng: np.random.Generator, aspect: float = 1.0, plain: bool = False) -> Canvas:
    """Choose position, size, background and grain. `aspect` is width ÷ height of the picture to come.

    `plain` pictures are the easiest: large upright shapes on one dark colour.
    """
    ink = np.array(COLOURS.get(picture.colour, (128, 128, 128)), np.float32)
    ink = np.clip(ink * rng.uniform(0.85, 1.04) + rng.normal(0, 5, 3), 0, 255).astype(np.float32)
    top, bottom = _background(ink, rng)
    radius = float(rng.uniform(0.2, 0.4))
    turn = float(rng.uniform(-0.12, 0.12))
    if plain:
        top = bottom = rng.uniform(0, 50, 3).astype(np.float32)
        radius, turn = float(rng.uniform(0.3, 0.42)), 0.0
    room_x, room_y = max(aspect, 1.0) / 2 - radius, max(1 / aspect, 1.0) / 2 - radius
    centre = (float(rng.uniform(-room_x, room_x)), float(rng.uniform(-room_y, room_y)))
    return Canvas(
        picture=picture,
        top=top,
        bottom=bottom,
        ink=ink,
        centre=centre,
        radius=radius,
        turn=turn,
        grain=float(rng.choice([0.0, 2.0, 5.0, 9.0])),
        seed=int(rng.integers(2**31)),
    )


def draw(canvas: Canvas, width: int, height: int, softness: float = 1.0, drift: tuple[float, float] = (0, 0)) -> Image:
    """Paint a canvas as uint8 [height, width, 3] RGB; edges fade over `softness` pixels."""
    side = min(width, height)
    x = ((np.arange(width, dtype=np.float32) + 0.5) - width / 2)[None, :] / side
    y = ((np.arange(height, dtype=np.float32) + 0.5) - height / 2)[:, None] / side
    rng = np.random.default_rng(canvas.seed)
    if canvas.picture.outside:
        image = _PAINTERS[canvas.picture.outside](canvas, x, y, rng)
    else:
        image = _ground(canvas, x, y)
        centre = (canvas.centre[0] + drift[0], canvas.centre[1] + drift[1])
        _stamp(image, canvas.picture.shape, canvas.ink, centre, canvas.radius, canvas.turn, x, y, softness / side)
    if canvas.grain:
        image += rng.standard_normal(image.shape, np.float32) * canvas.grain
    return np.clip(image + 0.5, 0, 255).astype(np.uint8)


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


def _background(ink: Plane, rng: np.random.Generator) -> tuple[Plane, Plane]:
    """Two calm colours, top and bottom, both clearly different from the ink."""
    while True:
        tone = rng.uniform(0, 110) if rng.random() < 0.7 else rng.uniform(110, 235)
        top = np.clip(tone + rng.normal(0, 14, 3), 0, 255).astype(np.float32)
        bottom = np.clip(top + rng.normal(0, 16) + rng.normal(0, 6, 3), 0, 255).astype(np.float32)
        if min(np.linalg.norm(top - ink), np.linalg.norm(bottom - ink)) > 105:
            return top, bottom


def _ground(canvas: Canvas, x: Plane, y: Plane) -> Plane:
    """The background, fading from top to bottom: float32 [height, width, 3]."""
    share = ((y - y[0]) / max(float(y[-1, 0] - y[0, 0]), 1e-6))[..., None]
    column = canvas.top * (1 - share) + canvas.bottom * share
    return np.broadcast_to(column, (y.shape[0], x.shape[1], 3)).astype(np.float32)


def _distance(shape: str, x: Plane, y: Plane, radius: float) -> Plane:
    """Signed distance to a shape's edge, negative inside; same unit as x, y and radius."""
    if shape == "circle":
        return np.hypot(x, y) - radius
    if shape == "square":
        return np.maximum(np.abs(x), np.abs(y)) - 0.88 * radius
    if shape == "triangle":
        slope = 0.866 * np.abs(x) - 0.5 * y
        return np.maximum(y, slope) - 0.55 * radius
    arm = 0.3 * radius
    wide = np.maximum(np.abs(x) - radius, np.abs(y) - arm)
    tall = np.maximum(np.abs(x) - arm, np.abs(y) - radius)
    return np.minimum(wide, tall)


def _stamp(
    image: Plane,
    shape: str,
    ink: Plane,
    centre: tuple[float, float],
    radius: float,
    turn: float,
    x: Plane,
    y: Plane,
    edge: float,
) -> None:
    """Blend one shape into the image."""
    dx, dy = x - centre[0], y - centre[1]
    cos, sin = float(np.cos(turn)), float(np.sin(turn))
    distance = _distance(shape, dx * cos + dy * sin, dy * cos - dx * sin, radius)
    cover = np.clip(0.5 - distance / max(edge, 1e-6), 0, 1)[..., None]
    image += cover * (ink - image)


def _noise(canvas: Canvas, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    block = int(rng.integers(1, 5))
    size = (-(-y.shape[0] // block), -(-x.shape[1] // block), 3 if rng.random() < 0.6 else 1)
    coarse = rng.uniform(0, 255, size).astype(np.float32)
    fine = coarse.repeat(block, 0).repeat(block, 1)[: y.shape[0], : x.shape[1]]
    return np.broadcast_to(fine, (*fine.shape[:2], 3)).astype(np.float32)


def _gradient(canvas: Canvas, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    angle = rng.uniform(0, 2 * np.pi)
    share = (x * np.cos(angle) + y * np.sin(angle)).astype(np.float32)
    share = ((share - share.min()) / max(float(np.ptp(share)), 1e-6))[..., None]
    ends = rng.uniform(0, 255, (2, 3)).astype(np.float32)
    return ends[0] * (1 - share) + ends[1] * share


def _stripes(canvas: Canvas, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    angle, period = rng.uniform(0, np.pi), rng.uniform(0.08, 0.4)
    wave = np.sin(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / period + rng.uniform(0, 6.3))
    if rng.random() < 0.3:
        wave = wave * np.sin(2 * np.pi * (y * np.cos(angle) - x * np.sin(angle)) / period)
    share = np.clip(0.5 + 6 * wave, 0, 1).astype(np.float32)[..., None]
    ends = rng.uniform(0, 255, (2, 3)).astype(np.float32)
    return ends[0] * (1 - share) + ends[1] * share


def _clouds(canvas: Canvas, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    """Soft blobs of many sizes, the statistics of an ordinary camera picture."""
    image = np.zeros((y.shape[0], x.shape[1], 3), np.float32) + rng.uniform(60, 180, 3).astype(np.float32)
    for cells, strength in ((2, 60.0), (4, 40.0), (9, 25.0), (20, 14.0)):
        grid = rng.normal(0, strength, (cells + 1, cells + 1, 3)).astype(np.float32)
        if rng.random() < 0.6:
            grid = grid.mean(2, keepdims=True).repeat(3, 2) * 1.5
        image += _stretch(grid, y.shape[0], x.shape[1])
    return image


def _stretch(grid: Plane, height: int, width: int) -> Plane:
    """Bilinear enlargement of [rows, columns, 3] to [height, width, 3]."""
    for axis, size in ((0, height), (1, width)):
        at = np.linspace(0, grid.shape[axis] - 1.001, size).astype(np.float32)
        low = at.astype(int)
        share = (at - low).reshape([-1 if a == axis else 1 for a in range(3)])
        grid = grid.take(low, axis) * (1 - share) + grid.take(low + 1, axis) * share
    return grid


def _crowd(canvas: Canvas, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    """Several shapes of several colours."""
    image = _ground(canvas, x, y)
    names = list(COLOURS)
    half = np.array([float(-x[0, 0]), float(-y[0, 0])])
    count = int(rng.integers(3, 6))
    corners = rng.permutation([(-1, -1), (1, -1), (-1, 1), (1, 1), (0, 0)])[:count]
    inks = rng.choice(len(names), count, replace=False)
    for corner, pick in zip(corners, inks, strict=True):
        at = corner * half * 0.55 + rng.normal(0, 0.05, 2)
        ink = np.array(COLOURS[names[pick]], np.float32)
        radius = float(rng.uniform(0.12, 0.22))
        _stamp(image, str(rng.choice(SHAPES)), ink, (float(at[0]), float(at[1])), radius, 0.0, x, y, 0.01)
    return image


def _lettering(canvas: Canvas, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    """Rows of small dark or light marks, as a page of text looks from afar."""
    image = _ground(canvas, x, y)
    ink = np.float32(20 if image.mean() > 110 else 230)
    height, width = image.shape[:2]
    line = max(4, int(min(height, width) * rng.uniform(0.08, 0.16)))
    for row in range(line, height - line, line + line // 2):
        column = int(width * 0.08)
        end = int(width * rng.uniform(0.5, 0.92))
        while column < end:
            mark = int(rng.integers(1, max(3, line)))
            if rng.random() < 0.8:
                rise = int(rng.integers(0, max(1, line // 3)))
                image[row - rise : row + line // 2, column : column + max(1, mark // 2)] = ink
            column += mark + 1
    return image


def _blank(canvas: Canvas, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    tone = rng.uniform(0, 255, 3) if rng.random() < 0.6 else np.repeat(rng.choice([0.0, 16.0, 128.0, 235.0, 255.0]), 3)
    return np.broadcast_to(tone.astype(np.float32), (y.shape[0], x.shape[1], 3)).copy()


_PAINTERS = {
    "noise": _noise,
    "gradient": _gradient,
    "stripes": _stripes,
    "clouds": _clouds,
    "crowd": _crowd,
    "lettering": _lettering,
    "blank": _blank,
}

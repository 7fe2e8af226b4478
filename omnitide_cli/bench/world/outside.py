"""Pictures from outside the world, which the model is to call unclear, and the brushes that all pictures share."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.world.picture import COLOURS, SHAPES

Image = NDArray[np.uint8]
Plane = NDArray[np.floating]


def shape_distance(shape: str, x: Plane, y: Plane, radius: float) -> Plane:
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


def cover(distance: Plane, edge: float) -> Plane:
    """Distances as the share of a pixel that is covered, with edges that fade over `edge`."""
    return np.clip(0.5 - distance / max(edge, 1e-6), 0, 1)


def stamp(image: Plane, ink: Plane, covered: Plane) -> None:
    """Blend an ink into the image."""
    image += covered[..., None] * (ink - image)


def _noise(ground: Plane, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    block = int(rng.integers(1, 5))
    size = (-(-y.shape[0] // block), -(-x.shape[1] // block), 3 if rng.random() < 0.6 else 1)
    coarse = rng.uniform(0, 255, size).astype(np.float32)
    fine = coarse.repeat(block, 0).repeat(block, 1)[: y.shape[0], : x.shape[1]]
    return np.broadcast_to(fine, (*fine.shape[:2], 3)).astype(np.float32)


def _gradient(ground: Plane, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    angle = rng.uniform(0, 2 * np.pi)
    share = (x * np.cos(angle) + y * np.sin(angle)).astype(np.float32)
    share = ((share - share.min()) / max(float(np.ptp(share)), 1e-6))[..., None]
    ends = rng.uniform(0, 255, (2, 3)).astype(np.float32)
    return ends[0] * (1 - share) + ends[1] * share


def _stripes(ground: Plane, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    angle, period = rng.uniform(0, np.pi), rng.uniform(0.08, 0.4)
    wave = np.sin(2 * np.pi * (x * np.cos(angle) + y * np.sin(angle)) / period + rng.uniform(0, 6.3))
    if rng.random() < 0.3:
        wave = wave * np.sin(2 * np.pi * (y * np.cos(angle) - x * np.sin(angle)) / period)
    share = np.clip(0.5 + 6 * wave, 0, 1).astype(np.float32)[..., None]
    ends = rng.uniform(0, 255, (2, 3)).astype(np.float32)
    return ends[0] * (1 - share) + ends[1] * share


def _clouds(ground: Plane, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    """Soft blobs of many sizes, the statistics of an ordinary camera picture."""
    image = np.zeros((y.shape[0], x.shape[1], 3), np.float32) + rng.uniform(60, 180, 3).astype(np.float32)
    for cells, strength in ((2, 60.0), (4, 40.0), (9, 25.0), (20, 14.0)):
        grid = rng.normal(0, strength, (cells + 1, cells + 1, 3)).astype(np.float32)
        if rng.random() < 0.6:
            grid = grid.mean(2, keepdims=True).repeat(3, 2) * 1.5
        image += stretch(grid, y.shape[0], x.shape[1])
    return image


def stretch(grid: Plane, height: int, width: int) -> Plane:
    """Bilinear enlargement of [rows, columns, 3] to [height, width, 3]."""
    for axis, size in ((0, height), (1, width)):
        at = np.linspace(0, grid.shape[axis] - 1.001, size).astype(np.float32)
        low = at.astype(int)
        share = (at - low).reshape([-1 if a == axis else 1 for a in range(3)])
        grid = grid.take(low, axis) * (1 - share) + grid.take(low + 1, axis) * share
    return grid


def _crowd(ground: Plane, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    """More shapes of more colours than the world has at once."""
    image = ground
    inks = np.array(list(COLOURS.values()), np.float32)
    half = np.array([float(-x[0, 0]), float(-y[0, 0])])
    for pick in rng.permutation(len(inks))[: int(rng.integers(6, 9))]:
        at = (rng.uniform(-0.85, 0.85, 2) * half).astype(np.float32)
        distance = shape_distance(str(rng.choice(SHAPES)), x - at[0], y - at[1], float(rng.uniform(0.08, 0.2)))
        stamp(image, inks[pick], cover(distance, 0.01))
    return image


def _lettering(ground: Plane, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    """Rows of small dark or light marks, as a page of text looks from afar."""
    image = ground
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


def _blank(ground: Plane, x: Plane, y: Plane, rng: np.random.Generator) -> Plane:
    tone = rng.uniform(0, 255, 3) if rng.random() < 0.6 else np.repeat(rng.choice([0.0, 16.0, 128.0, 235.0, 255.0]), 3)
    return np.broadcast_to(tone.astype(np.float32), (y.shape[0], x.shape[1], 3)).copy()


PAINTERS: dict[str, Callable[[Plane, Plane, Plane, np.random.Generator], Plane]] = {
    "noise": _noise,
    "gradient": _gradient,
    "stripes": _stripes,
    "clouds": _clouds,
    "crowd": _crowd,
    "lettering": _lettering,
    "blank": _blank,
}

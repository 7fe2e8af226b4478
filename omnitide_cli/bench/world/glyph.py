"""Printed digits and letters as strokes, so that a picture of one needs no font."""

from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

DIGITS = tuple("0123456789")
LETTERS = tuple("ACEHKMPTXY")

Stroke = list[tuple[float, float]]


def _arc(x: float, y: float, rx: float, ry: float, first: float, last: float, steps: int = 9) -> Stroke:
    """Points of an ellipse's arc; degrees, 0 to the right, 90 down."""
    angles = np.radians(np.linspace(first, last, steps))
    return [(x + rx * float(np.cos(a)), y + ry * float(np.sin(a))) for a in angles]


# Strokes in a box from −0.6 to 0.6 across and −1 to 1 down.
_STROKES: dict[str, list[Stroke]] = {
    "0": [_arc(0, 0, 0.6, 1, 0, 360, 17)],
    "1": [[(-0.35, -0.6), (0.05, -1), (0.05, 1)], [(-0.35, 1), (0.45, 1)]],
    "2": [[*_arc(0, -0.45, 0.55, 0.55, 190, 390), (-0.6, 1), (0.6, 1)]],
    "3": [_arc(-0.05, -0.5, 0.55, 0.5, 210, 450), _arc(-0.05, 0.5, 0.6, 0.5, 270, 510)],
    "4": [[(0.3, 1), (0.3, -1), (-0.6, 0.4), (0.6, 0.4)]],
    "5": [[(0.5, -1), (-0.45, -1), (-0.5, -0.1), *_arc(-0.05, 0.35, 0.6, 0.62, 230, 500)]],
    "6": [[(0.4, -1), (-0.2, -0.5), *_arc(0, 0.4, 0.58, 0.6, 190, 550, 15)]],
    "7": [[(-0.6, -1), (0.6, -1), (-0.15, 1)]],
    "8": [_arc(0, -0.5, 0.48, 0.5, 90, 450, 15), _arc(0, 0.5, 0.6, 0.5, -90, 270, 15)],
    "9": [[(-0.4, 1), (0.2, 0.5), *_arc(0, -0.4, 0.58, 0.6, 10, 370, 15)]],
    "A": [[(-0.6, 1), (0, -1), (0.6, 1)], [(-0.36, 0.3), (0.36, 0.3)]],
    "C": [_arc(0.1, 0, 0.68, 1, 50, 310, 13)],
    "E": [[(0.55, -1), (-0.5, -1), (-0.5, 1), (0.55, 1)], [(-0.5, 0), (0.4, 0)]],
    "H": [[(-0.55, -1), (-0.55, 1)], [(0.55, -1), (0.55, 1)], [(-0.55, 0), (0.55, 0)]],
    "K": [[(-0.5, -1), (-0.5, 1)], [(0.55, -1), (-0.5, 0.1), (0.6, 1)]],
    "M": [[(-0.7, 1), (-0.6, -1), (0, 0.4), (0.6, -1), (0.7, 1)]],
    "P": [[(-0.5, 1), (-0.5, -1), *_arc(0.05, -0.48, 0.55, 0.52, 270, 450), (-0.5, 0.04)]],
    "T": [[(-0.65, -1), (0.65, -1)], [(0, -1), (0, 1)]],
    "X": [[(-0.6, -1), (0.6, 1)], [(0.6, -1), (-0.6, 1)]],
    "Y": [[(-0.6, -1), (0, 0.05), (0.6, -1)], [(0, 0.05), (0, 1)]],
}


@cache
def _segments(glyph: str) -> NDArray[np.float32]:
    """The glyph's straight pieces, [n, 2 ends, 2]."""
    pairs = [pair for stroke in _STROKES[glyph] for pair in pairwise(stroke)]
    return np.array(pairs, np.float32)


def distance(
    glyph: str, x: NDArray[np.floating], y: NDArray[np.floating], radius: float, weight: float
) -> NDArray[np.floating]:
    """Signed distance to the edge of a glyph 2 · radius high, with strokes of thickness 2 · weight · radius."""
    x, y = np.broadcast_arrays(np.float32(1 / radius) * x, np.float32(1 / radius) * y)
    nearest = np.full(x.shape, 9.0, np.float32)
    near = (np.abs(x) < 1.2) & (np.abs(y) < 1.5)
    px, py = x[near], y[near]
    best = np.full(px.shape, 9.0, np.float32)
    for (ax, ay), (bx, by) in _segments(glyph):
        dx, dy = bx - ax, by - ay
        share = np.clip(((px - ax) * dx + (py - ay) * dy) / max(float(dx * dx + dy * dy), 1e-6), 0, 1)
        np.minimum(best, (px - ax - share * dx) ** 2 + (py - ay - share * dy) ** 2, out=best)
    nearest[near] = np.sqrt(best)
    return (nearest - weight) * radius

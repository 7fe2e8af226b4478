"""What comes and goes within one unit, a flash, a hand before the camera: the picture of its middle doesn't show it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LOOKS = 4
"""So many frames of a unit are looked at, evenly spread."""
SIZE = (64, 48)
"""Width and height to which they are scaled for that; they are compared, not shown."""
LEAST = 24.0
"""Levels of 255 by which a hundredth of the picture differs where something has come."""

Thumb = NDArray[np.uint8]
"""[48, 64] levels of grey."""


def passing(before: Thumb, usual: Thumb, last: Thumb, others: Sequence[Thumb]) -> int | None:
    """Which of `others` shows what neither of the three does; None: none does.

    `before` was on screen when the unit began, `usual` is in its middle, `last` at its end: what stays is shown by the
    units around, and needs no place here.
    """
    found = [min(_difference(other, each) for each in (before, usual, last)) for other in others]
    best = int(np.argmax(found)) if found else 0
    return best if found and found[best] >= LEAST else None


def _difference(thumb: Thumb, other: Thumb) -> float:
    return float(np.percentile(np.abs(thumb.astype(np.int16) - other), 99))

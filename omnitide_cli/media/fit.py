"""How a frame becomes the canvas that a model looks at: scaled, padded, never stretched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

Pixel = TypeVar("Pixel", np.uint8, np.uint16)

MOST_SLICES = 9
LONGEST_SIDE = 1 << 14  # that the encoder takes


@dataclass(frozen=True, slots=True)
class Placement:
    """A scaled picture in the middle of a black canvas; all in pixels."""

    width: int
    height: int
    canvas_width: int
    canvas_height: int


@dataclass(frozen=True, slots=True)
class FrameFit:
    """A canvas of whole cells of `cell` × `cell` pixels, between `min_cells` and `max_cells` of them.

    A `fixed` canvas has always the same size, else it follows the frame's ratio; an `open` one has the frame's own
    borders where it is larger than a cell. Make one with `square`, `patches` or `slices`.
    """

    cell: int
    min_cells: int
    max_cells: int
    fixed: bool
    open: bool = False

    @classmethod
    def square(cls, side: int) -> FrameFit:
        """Letterbox into `side` × `side` pixels, small frames scaled up."""
        if side < 1:
            raise ValueError(f"a canvas of {side} pixels holds no picture")
        return cls(cell=side, min_cells=1, max_cells=1, fixed=True)

    @classmethod
    def patches(cls, patch: int = 28, *, max_tokens: int = 256, min_tokens: int = 4) -> FrameFit:
        """Keep the frame's ratio on at most `max_tokens` patches; only frames under `min_tokens` are scaled up.

        A token is a patch of `patch` × `patch` pixels (Qwen2.5-Omni: 28, two merged patches of 14).
        """
        if patch < 1 or not 1 <= min_tokens <= max_tokens:
            raise ValueError(f"need patch ≥ 1 and 1 ≤ min_tokens ≤ max_tokens, got {patch}, {min_tokens}, {max_tokens}")
        return cls(cell=patch, min_cells=min_tokens, max_cells=max_tokens, fixed=False)

    @classmethod
    def slices(cls, side: int, *, max_slices: int) -> FrameFit:
        """For models that cut a frame of more than `side` × `side` pixels into slices of that area themselves.

        libmtmd makes at least two slices and one more than the frame's area calls for at most, never above
        MOST_SLICES. What is not to be cut is letterboxed (libmtmd would stretch it).
        """
        if max_slices < 2:
            return cls.square(side)
        area = MOST_SLICES if max_slices >= MOST_SLICES else max_slices - 1
        return cls(cell=side, min_cells=1, max_cells=area, fixed=False, open=True)

    def place(self, width: int, height: int) -> Placement:
        """Where a frame of `width` × `height` pixels goes."""
        return _place(self, width, height)

    def fit(self, frame: NDArray[Pixel]) -> NDArray[Pixel]:
        """Put `frame` [H, W, 3] on the canvas [H', W', 3]."""
        height, width = frame.shape[:2]
        where = self.place(width, height)
        shrinks = where.width < width or where.height < height
        content = cv2.resize(
            frame, (where.width, where.height), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        )
        canvas = np.zeros((where.canvas_height, where.canvas_width, 3), frame.dtype)
        top = (where.canvas_height - where.height) // 2
        left = (where.canvas_width - where.width) // 2
        canvas[top : top + where.height, left : left + where.width] = content
        return canvas


@lru_cache(maxsize=64)
def _place(fit: FrameFit, width: int, height: int) -> Placement:
    if fit.fixed:
        return _scaled(width, height, _largest_scale(width, height, fit.cell, 1), fit.cell, fit.cell)
    if fit.open:
        return _place_open(fit, width, height)
    scale = min(1.0, _largest_scale(width, height, fit.cell, fit.max_cells))
    columns, rows = _cells(width * scale, fit.cell), _cells(height * scale, fit.cell)
    if columns * rows < fit.min_cells:
        scale = _largest_scale(width, height, fit.cell, fit.min_cells)
        columns, rows = _cells(width * scale, fit.cell), _cells(height * scale, fit.cell)
        # Some ratios jump over the minimum (3 × 1 cells, then 4 × 2); padding reaches it without passing the cap.
        if columns >= rows:
            columns = max(columns, math.ceil(fit.min_cells / rows))
        else:
            rows = max(rows, math.ceil(fit.min_cells / columns))
        if columns * rows > fit.max_cells:
            columns, rows = _cells(width * scale, fit.cell), _cells(height * scale, fit.cell)
    return _scaled(width, height, scale, columns * fit.cell, rows * fit.cell)


def _place_open(fit: FrameFit, width: int, height: int) -> Placement:
    scale = min(1.0, fit.cell * math.sqrt(fit.max_cells / (width * height)), LONGEST_SIDE / max(width, height))
    wide, high = max(1, math.floor(width * scale)), max(1, math.floor(height * scale))
    if max(wide, high) <= fit.cell:
        return _place(FrameFit.square(fit.cell), width, height)
    longest = fit.max_cells * fit.cell**2  # of a strip one pixel thick, which the scale alone leaves too long
    wide, high = min(wide, longest // high), min(high, longest // wide)
    return Placement(wide, high, wide, high)


def _largest_scale(width: int, height: int, cell: int, cells: int) -> float:
    """The largest factor at which the frame fits on a grid of at most `cells` cells: try every number of rows."""
    return max(min(cell * rows / height, cell * (cells // rows) / width) for rows in range(1, cells + 1))


def _cells(pixels: float, cell: int) -> int:
    # The factor was computed from a whole number of cells; rounding must not push it over that border.
    return max(1, math.ceil(pixels / cell - 1e-9))


def _scaled(width: int, height: int, scale: float, canvas_width: int, canvas_height: int) -> Placement:
    return Placement(
        width=min(canvas_width, max(1, round(width * scale))),
        height=min(canvas_height, max(1, round(height * scale))),
        canvas_width=canvas_width,
        canvas_height=canvas_height,
    )

"""Which pictures of a stream are new: what shows the same as the last one that was encoded needn't be encoded again.

A camera that watches a room shows one picture for hours. Pictures are compared as the model sees them, on their
canvas, in blocks of BLOCK × BLOCK pixels; always with the last *encoded* one, so that a slow fade adds up and is
noticed in the end. The idea is TimeChat-Online's (arXiv 2504.17343, section 3.2), here before the encoder and of whole
pictures.

What the sensor adds from second to second is no change: its level is the least median difference of neighbouring
seconds lately, which what moves in a part of the picture doesn't raise. Neither is a flicker of the light: a shift of
the whole picture's brightness counts only beyond FLICKER.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import SessionFileError

BLOCK = 8
"""Pixels of a block's side: their mean has an eighth of a pixel's noise."""
FLICKER = 6.0
"""Levels of 255 by which the light may go up or down as a whole."""
MOST_NOISE = 4.0
"""Levels of a block that are taken for noise at most: where everything always moves, no second shows noise alone."""
MEAN_NOISE, PEAK_NOISE = 1.5, 5.0
"""How many times the median of noise its mean over the picture and its 99th percentile reach."""
LOOKS_BACK = 30
"""Seconds whose least difference is the noise."""
USUAL = 8
"""Seconds whose similarity is the usual one."""
DIP = 0.35
"""By so much less than usual is a picture similar to the one before it where the scene is cut."""
MOST_SIDE = 1 << 12

Small = NDArray[np.uint8]
"""The means of a picture's blocks, [rows, columns, 3] RGB."""

HEAD = struct.Struct("<IIdBIII")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From when on a picture is a new one; levels are of 255."""

    mean: float
    """Mean difference of the blocks."""
    peak: float
    """Their 99th percentile: what changes in a hundredth of the picture."""
    refresh: float
    """Seconds after which a picture is encoded all the same."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a picture is to those before it; it counts once `ChangeGate.took` hears of it."""

    picture: Literal["new", "same"]
    similarity: float
    """To the picture before it, 0 … 1: blocks that stayed, or colours that it has in common."""
    is_cut: bool
    """Whether another scene begins with it."""
    at: float
    small: Small
    noise: float | None
    """Median difference from the picture before; None for the first."""


@dataclass(frozen=True, slots=True)
class _State:
    encoded: Small
    encoded_at: float
    tokens: int
    last: Small
    noises: tuple[float, ...] = ()
    usual: tuple[float, ...] = ()


@dataclass(slots=True)
class ChangeGate:
    """Looks at one picture a unit, in the order of time."""

    thresholds: Thresholds
    _state: _State | None = field(default=None)
    _must_renew: bool = False

    @property
    def tokens(self) -> int:
        """What the last encoded picture took."""
        return self._state.tokens if self._state else 0

    @property
    def encoded_at(self) -> float | None:
        """Media second at which the unit of that picture begins; None before the first."""
        return self._state.encoded_at if self._state else None

    def renew(self) -> None:
        """The next picture is new, whatever it shows: the last encoded one isn't whole in the history any more."""
        self._must_renew = True

    def look(self, frame: NDArray[np.uint8], at: float) -> Look:
        """Compare the picture [H, W, 3] of media second `at`. Changes nothing: the unit may yet fail."""
        small = _small(frame)
        state = self._state
        if state is None or state.encoded.shape != small.shape:
            return Look("new", 1.0, False, at, small, None)
        since = _difference(small, state.last)
        noise = float(np.median(since))
        noises = (*state.noises, noise)[-LOOKS_BACK:]
        floor = min(min(noises), MOST_NOISE)
        peak = self.thresholds.peak + PEAK_NOISE * floor
        change = _difference(small, state.encoded)
        is_new = (
            self._must_renew
            or not 0 <= at - state.encoded_at < self.thresholds.refresh
            or float(change.mean()) > self.thresholds.mean + MEAN_NOISE * floor
            or float(np.percentile(change, 99)) > peak
        )
        similarity = max(float((since <= peak).mean()), _common_colours(small, state.last))
        is_cut = bool(state.usual) and similarity <= median(state.usual) - DIP
        return Look("new" if is_new or is_cut else "same", similarity, is_cut, at, small, noise)

    def took(self, look: Look, tokens: int) -> None:
        """The unit of this picture is in the history; its picture, if it is new, with so many tokens."""
        state = self._state
        if look.noise is None or state is None:
            self._state, self._must_renew = _State(look.small, look.at, tokens, look.small), False
            return
        state = replace(
            state,
            last=look.small,
            noises=(*state.noises, look.noise)[-LOOKS_BACK:],
            usual=(*state.usual, look.similarity)[-USUAL:],
        )
        if look.picture == "new":
            state = replace(state, encoded=look.small, encoded_at=look.at, tokens=tokens)
            self._must_renew = False
        self._state = state

    # --- saving

    def to_bytes(self) -> bytes:
        """What `restore` takes (docs/session-file.md); empty before the first picture."""
        state = self._state
        if state is None:
            return b""
        rows, columns, _ = state.encoded.shape
        head = HEAD.pack(
            rows, columns, state.encoded_at, self._must_renew, state.tokens, len(state.noises), len(state.usual)
        )
        numbers = np.array([*state.noises, *state.usual], "<f8").tobytes()
        return b"".join((head, numbers, state.encoded.tobytes(), state.last.tobytes()))

    def restore(self, data: bytes | memoryview) -> None:
        """Go on where a saved session was. Raises SessionFileError, without a file's name, for anything else."""
        if len(data) < HEAD.size:
            raise SessionFileError("its 'CHNG' is damaged")
        rows, columns, at, must_renew, tokens, noises, usual = HEAD.unpack(data[: HEAD.size])
        pixels, numbers = rows * columns * 3, noises + usual
        is_sound = 0 < rows <= MOST_SIDE and 0 < columns <= MOST_SIDE and noises <= LOOKS_BACK and usual <= USUAL
        if not is_sound or len(data) != HEAD.size + 8 * numbers + 2 * pixels:
            raise SessionFileError("its 'CHNG' is damaged")
        found = np.frombuffer(data, "<f8", numbers, HEAD.size)
        if not np.isfinite([at, *found]).all():
            raise SessionFileError("its 'CHNG' is damaged")
        first = HEAD.size + 8 * numbers
        encoded, last = (
            np.frombuffer(data, np.uint8, pixels, begin).reshape(rows, columns, 3).copy()
            for begin in (first, first + pixels)
        )
        self._state = _State(encoded, at, tokens, last, _floats(found[:noises]), _floats(found[noises:]))
        self._must_renew = bool(must_renew)


def _floats(numbers: Sequence[float] | NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(map(float, numbers))


def _small(frame: NDArray[np.uint8]) -> Small:
    height, width = frame.shape[:2]
    size = max(1, round(width / BLOCK)), max(1, round(height / BLOCK))
    return cv2.resize(frame, size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def _difference(small: Small, other: Small) -> NDArray[np.float32]:
    """Levels by which each block differs in the channel where it differs most, but for a flicker of the light."""
    signed = small.astype(np.float32) - other
    signed -= np.clip(np.median(signed), -FLICKER, FLICKER)
    return np.abs(signed).max(axis=2)


def _common_colours(small: Small, other: Small) -> float:
    """Share of the blocks that have their like in the other picture, wherever: 1 where something has only moved."""
    counts = [
        np.bincount((picture >> 6).reshape(-1, 3) @ np.array([16, 4, 1]), minlength=64) for picture in (small, other)
    ]
    return float(np.minimum(*counts).sum() / (small.size // 3))

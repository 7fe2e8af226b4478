"""How much a second differs from the one before, at the cost of next to nothing."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.alerts.judge import Change

GRID = 16
CLEAR = 0.08
"""Mean difference of brightness, 0 … 1, over a grid of the picture from which on the scene is another."""
NOISE = 0.006
"""And below which it is a camera's noise."""
SILENT = 0.003
"""Root mean square of sound, full scale being 1, below which nothing is heard: -50 dB."""


class Seen(Protocol):
    """What of a media unit is compared."""

    @property
    def frame(self) -> NDArray[np.uint8] | None: ...
    @property
    def audio(self) -> NDArray[np.float32] | None: ...


def change(before: Seen | None, now: Seen) -> Change:
    """Of two seconds of one stream. A sound that begins is a clear change; one that goes on is never nothing."""
    if before is None:
        return "changed"
    heard, was_heard = _is_heard(now.audio), _is_heard(before.audio)
    if heard and not was_heard:
        return "changed"
    moved = _difference(before.frame, now.frame)
    if moved >= CLEAR:
        return "changed"
    return "none" if moved <= NOISE and not heard and not was_heard else "some"


def _difference(before: NDArray[np.uint8] | None, now: NDArray[np.uint8] | None) -> float:
    if before is now or (before is None and now is None):
        return 0.0
    if before is None or now is None or before.shape != now.shape:
        return 1.0
    return float(np.abs(_grid(before) - _grid(now)).mean())


def _grid(frame: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Mean brightness of GRID × GRID fields, and of each colour: a figure of another colour is another figure."""
    height, width = (max(side // GRID, 1) for side in frame.shape[:2])
    part = frame[: height * min(GRID, frame.shape[0]), : width * min(GRID, frame.shape[1])]
    rows, columns = part.shape[0] // height, part.shape[1] // width
    return part.reshape(rows, height, columns, width, 3).mean((1, 3), dtype=np.float32) / 255


def _is_heard(sound: NDArray[np.float32] | None) -> bool:
    return sound is not None and sound.size > 0 and float(np.sqrt(np.mean(np.square(sound)))) >= SILENT

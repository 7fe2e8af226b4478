"""How much a second differs from the one before, at the cost of next to nothing."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.alerts.judge import Change
from omnitide_cli.alerts.rule import Senses

ORDER: tuple[Change, ...] = ("changed", "some", "none")
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


def change(before: Seen | None, now: Seen, senses: Senses = "both") -> Change:
    """Of two seconds of one stream, for a rule that is about these senses. A sound that begins is a clear change; one
    that goes on is never nothing."""
    if before is None:
        return "changed"
    by_sight, by_sound = _picture_change(before, now), _sound_change(before, now)
    if senses != "both":
        return by_sight if senses == "sight" else by_sound
    return ORDER[min(ORDER.index(by_sight), ORDER.index(by_sound))]


def _picture_change(before: Seen, now: Seen) -> Change:
    moved = _difference(before.frame, now.frame)
    return "changed" if moved >= CLEAR else "none" if moved <= NOISE else "some"


def _sound_change(before: Seen, now: Seen) -> Change:
    heard, was_heard = _is_heard(now.audio), _is_heard(before.audio)
    if heard and not was_heard:
        return "changed"
    return "some" if heard or was_heard else "none"


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

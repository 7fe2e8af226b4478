"""What is being watched: the frame in half-blocks, two pixels a character, and the loudness of its sound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from omnitide_cli.terminal.dashboard import theme

QUIETEST_DB = -54.0
COLOUR_STEP = 0xF8  # finer steps can't be seen so small, and fewer styles have to be made


@dataclass(frozen=True, slots=True)
class Picture:
    """Fits the given space, keeps its shape, stands in the middle; without a frame the sound has all of it."""

    frame: NDArray[np.uint8] | None
    """[H, W, 3] RGB."""
    sound: NDArray[np.float32] | None
    """[n] in −1 … 1."""
    ratio: float | None = None
    """Width by height of what is in the frame; black bars around it aren't shown."""

    @property
    def shape(self) -> tuple[int, int] | None:
        """Height and width of what is shown of the frame."""
        return None if self.frame is None else without_bars(self.frame, self.ratio).shape[:2]

    def rows_of_sound(self, height: int) -> int:
        """Rows out of `height` that the sound has."""
        if self.sound is None:
            return 0
        return height if self.frame is None else min(height // 3, 1 + height // 10)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or 1
        sound_rows = self.rows_of_sound(height)
        room = height - sound_rows
        rows = [] if self.frame is None else half_blocks(without_bars(self.frame, self.ratio), width, room)
        above = (room - len(rows)) // 2
        for _ in range(above):
            yield Segment.line()
        for row in rows:
            yield Segment(" " * ((width - sum(len(segment.text) for segment in row)) // 2))
            yield from row
            yield Segment.line()
        for _ in range(room - len(rows) - above):
            yield Segment.line()
        if self.sound is not None and sound_rows:
            for line in sound_bars(self.sound, width, sound_rows):
                yield Segment(line, Style.parse(theme.SOUND))
                yield Segment.line()


def without_bars(frame: NDArray[np.uint8], ratio: float | None) -> NDArray[np.uint8]:
    """The part with the given ratio in the middle, if there is only black around it."""
    tall, wide = frame.shape[:2]
    if not ratio:
        return frame
    across, along = max(round((wide - tall * ratio) / 2), 0), max(round((tall - wide / ratio) / 2), 0)
    inner = frame[along : tall - along, across : wide - across]
    bars = (frame[:along], frame[tall - along :], frame[:, :across], frame[:, wide - across :])
    return inner if inner.size and not any(bar.any() for bar in bars) else frame


def half_blocks(frame: NDArray[np.uint8], width: int, height: int) -> list[list[Segment]]:
    """Rows of the frame, at most `width` by `height` characters."""
    import cv2

    if width < 1 or height < 1:
        return []
    tall, wide = frame.shape[:2]
    scale = min(width / wide, 2 * height / tall)
    columns, rows = max(round(wide * scale), 1), max(round(tall * scale / 2), 1)
    small = np.asarray(cv2.resize(frame, (columns, 2 * rows), interpolation=cv2.INTER_AREA), np.uint8) & COLOUR_STEP
    packed = small.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    return [_runs(upper, lower) for upper, lower in zip(packed[::2].tolist(), packed[1::2].tolist(), strict=True)]


def _runs(upper: list[int], lower: list[int]) -> list[Segment]:
    """One row; neighbours that look alike are one segment."""
    segments: list[Segment] = []
    begin = 0
    for at in range(1, len(upper) + 1):
        if at == len(upper) or upper[at] != upper[begin] or lower[at] != lower[begin]:
            segments.append(Segment(theme.UPPER_HALF * (at - begin), _style(upper[begin], lower[begin])))
            begin = at
    return segments


@lru_cache(4096)
def _style(upper: int, lower: int) -> Style:
    return Style(color=_colour(upper), bgcolor=_colour(lower))


def _colour(packed: int) -> Color:
    return Color.from_rgb(packed >> 16, packed >> 8 & 255, packed & 255)


def sound_bars(sound: NDArray[np.float32], width: int, height: int) -> list[str]:
    """Loudness over the second, in decibels from QUIETEST_DB to full scale, as bars of `height` rows."""
    edges = np.linspace(0, len(sound), width + 1).astype(int)
    peaks = np.array([np.abs(sound[a:b]).max(initial=0.0) for a, b in pairwise(edges)])
    decibels = 20 * np.log10(np.maximum(peaks, 1e-6))
    eighths = np.clip((1 - decibels / QUIETEST_DB) * 8 * height, 0, 8 * height).round().astype(int)
    return [
        "".join(theme.BARS[min(max(value - 8 * level, 0), 8)] for value in eighths.tolist())
        for level in range(height - 1, -1, -1)
    ]

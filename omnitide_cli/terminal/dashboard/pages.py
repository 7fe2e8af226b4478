"""The cache as a strip: a character is a piece of a page, or several pages, coloured by what most of it holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from omnitide_cli.terminal.dashboard import theme
from omnitide_cli.terminal.dashboard.state import Cells


@dataclass(frozen=True, slots=True)
class PageMap:
    """The whole cache in the given space. Without colours, letters say the class, small ones that there are holes."""

    cells: Cells
    colours: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or 1
        for begin, end in lines(self.cells, width, height):
            yield from self._row(*pieces(self.cells, begin, end))
            yield Segment.line()

    def _row(self, classes: list[str], shades: list[int]) -> RenderResult:
        run, style = "", None
        for name, shade in zip(classes, shades, strict=True):
            own = _STYLES[name if shade else ""] if self.colours else None
            letter = theme.SHADES[shade]
            if not self.colours and shade:
                letter = name if shade == len(theme.SHADES) - 1 else name.lower()
            if own is not style and run:
                yield Segment(run, style)
                run = ""
            run, style = run + letter, own
        yield Segment(run, style)


_STYLES = {"": Style.parse(theme.FAINT), **{name: Style.parse(style) for name, style in theme.CLASSES.items()}}


def lines(cells: Cells, width: int, height: int) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """First cell and end of every piece, a line after the other."""
    total, page = len(cells.letters), cells.page_size
    pages = max(-(-total // page), 1)
    split = 1
    while pages * split * 2 <= width * height and split * 2 <= page:
        split *= 2
    per_line = width if pages > width * height else min(max(width // split, 1) * split, pages * split)
    count = min(pages * split, per_line * height)
    edges = np.linspace(0, pages * split, count + 1).astype(np.intp) * page // split
    edges = np.minimum(edges, total)
    return [
        (edges[first : min(first + per_line, count)], edges[first + 1 : min(first + per_line, count) + 1])
        for first in range(0, count, per_line)
    ]


def pieces(cells: Cells, begin: NDArray[np.intp], end: NDArray[np.intp]) -> tuple[list[str], list[int]]:
    """Of every piece the class that has most cells in it, and how full it is: an index into the shades."""
    letters = np.frombuffer(cells.letters, np.uint8)
    counts = np.stack([_within(letters == ord(name), begin, end) for name in theme.CLASSES])
    used, size = counts.sum(0), np.maximum(end - begin, 1)
    most = len(theme.SHADES) - 1
    shades = np.where(used == size, most, np.where(used == 0, 0, np.clip(used * (most - 1) // size, 1, most - 1)))
    names = list(theme.CLASSES)
    return [names[index] for index in counts.argmax(0).tolist()], shades.tolist()


def _within(mask: NDArray[np.bool_], begin: NDArray[np.intp], end: NDArray[np.intp]) -> NDArray[np.int64]:
    """How many are set in each [begin, end)."""
    sums = np.concatenate([[0], np.cumsum(mask)])
    return sums[end] - sums[begin]

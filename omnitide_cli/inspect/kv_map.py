"""The cache as a picture: which pages are in use, by what, and where the holes are.

A character is a piece of a page. Letters say what it holds, so that the map reads without colour and in a pipe.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from omnitide_cli.runtime.kv_state import KvState, UnitState

if TYPE_CHECKING:
    from rich.text import Text

MOST_LINES = 24
FULL = {
    "M": "black on magenta",
    "S": "black on cyan",
    "R": "black on green",
    "C": "black on yellow",
    ".": "bright_black",
}
PARTLY = {"m": "magenta", "s": "cyan", "r": "green", "c": "yellow"}
STYLES = FULL | PARTLY
UNIT_STYLES = {"system": "magenta", "media": "green", "question": "yellow", "response": "blue"}
UNIT_LETTERS = {"system": "s", "question": "q", "response": "a"}
UNIT_LINES = 3


def map_lines(state: KvState, width: int, most: int = MOST_LINES) -> list[Text]:
    """The pages up to the end of the cache, a line as many as fit `width` columns; at most about `most` lines."""
    from rich.text import Text

    pages = [state.cell_map[i : i + state.page_size] for i in range(0, len(state.cell_map), state.page_size)]
    label = len(str(state.cells)) + 2
    for pieces in (8, 4, 2, 1):
        pieces = min(pieces, state.page_size)
        gap = " " if pieces > 1 else ""
        per_line = max((width - label) // (pieces + len(gap)), 1)
        if len(pages) <= per_line * most or pieces == 1:
            break
    lines = []
    for first in range(0, len(pages), per_line):
        line = Text(f"{first * state.page_size:>{label - 2}}  ", no_wrap=True)
        for page in pages[first : first + per_line]:
            for letter in _letters(page, pieces):
                line.append(letter, STYLES[letter])
            line.append(gap)
        line.rstrip()
        lines.append(line)
    return lines


def _letters(page: str, pieces: int) -> str:
    """One letter a piece: of the class that has most cells in it."""
    bounds = [len(page) * i // pieces for i in range(pieces + 1)]
    return "".join(_letter(page[begin:end]) for begin, end in pairwise(bounds) if end > begin)


def _letter(cells: str) -> str:
    used = len(cells) - cells.count(".")
    if not used:
        return "."
    most = max("MSRC", key=cells.count)
    return most if used == len(cells) else most.lower()


def unit_lines(units: tuple[UnitState, ...], width: int, steps: str, most: int = UNIT_LINES) -> list[Text]:
    """A character a unit, the oldest first: how much is left of it, in the height of `steps` (the last is the whole
    scale); what is no media unit is a letter. Of a long history only the newest fit.
    """
    from rich.text import Text

    shown = units[-max(width, 1) * most :]
    largest = max((unit.tokens for unit in shown if unit.kind == "media"), default=0)
    lines = []
    for first in range(0, len(shown), max(width, 1)):
        line = Text(no_wrap=True)
        for unit in shown[first : first + max(width, 1)]:
            step = unit.tokens * (len(steps) - 1) // max(largest, 1)
            letter = UNIT_LETTERS.get(unit.kind) or steps[min(step, len(steps) - 1)]
            line.append(letter, "cyan" if unit.kind == "media" and unit.partial else UNIT_STYLES.get(unit.kind, ""))
        lines.append(line)
    return lines

"""Puts a screen on a terminal: only the lines that changed, in one write, so that nothing flickers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.color import ColorSystem
from rich.segment import Segment

Row = Sequence[Segment]

SURE = re.compile("[ -~\u00a0-\u02ff\u2010-\u2027\u2500-\u25a0\u2248\u276f\u2192\u25b6]*")
"""Characters that every terminal shows one column wide."""

BEGIN, END = "\x1b[?25l\x1b[?2026h", "\x1b[?2026l"  # terminals that know the second pair show all at once


class Painter:
    """Remembers what is on the screen."""

    def __init__(self, colours: ColorSystem | None) -> None:
        self._colours = colours
        self._shown: Sequence[Row] = []

    def forget(self) -> None:
        """The screen may hold anything: paint it all next time."""
        self._shown = []

    def paint(self, rows: Sequence[Row], cursor: tuple[int, int] | None) -> str:
        """The codes that turn the shown screen into `rows`, with the cursor at (column, row) or hidden.

        Rows are as wide as the screen.
        """
        parts = [BEGIN]
        if len(rows) != len(self._shown):
            parts.append("\x1b[0m\x1b[2J")
            self._shown = [()] * len(rows)
        for number, (row, shown) in enumerate(zip(rows, self._shown, strict=True), 1):
            if row != shown:
                parts.append(f"\x1b[{number};1H{self._row(row)}\x1b[0m")
        self._shown = rows
        parts.append(END)
        if cursor:
            parts.append(f"\x1b[{cursor[1] + 1};{cursor[0] + 1}H\x1b[?25h")
        return "".join(parts)

    def _row(self, row: Row) -> str:
        parts, column = [], 1
        for segment in row:
            text = segment.text
            parts.append(segment.style.render(text, color_system=self._colours) if segment.style else text)
            column += cell_len(text)
            if not SURE.fullmatch(text):
                # Terminals disagree about the width of the others: what follows stands right all the same.
                parts.append(f"\x1b[{column}G")
        return "".join(parts)

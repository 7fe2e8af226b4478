"""Charts of characters: readable in any terminal, without colour too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from omnitide_cli.formats.words import counted
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.times import clock

if TYPE_CHECKING:
    from rich.text import Text

HEIGHT = 12
LEAST_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Charset:
    """`steps` fill a character from empty to full; `band`: between the least and the most; `gap`: the span beyond."""

    steps: str
    band: str
    gap: str
    mark: str
    is_drawn: bool = False
    """Full characters have their background filled, too: drawn ones leave gaps between lines."""


BLOCKS = Charset(" ▁▂▃▄▅▆▇█", "▒", "░", "╌")
DRAWN = Charset(" ▁▂▃▄▅▆▇█", "▒", "░", "╌", is_drawn=True)
ASCII = Charset(" .:#", "+", "-", "_")


def history_lines(snapshot: SessionSnapshot, width: int, charset: Charset, height: int = HEIGHT) -> list[Text]:
    """Useful cells (filled) and the page span above them over media time, with the watermarks as lines."""
    from rich.text import Text

    moments = snapshot.moments
    if not moments:
        saved = snapshot.kind == "saved"
        return [Text("a saved file keeps no history over time" if saved else "no unit has been added yet")]
    about = snapshot.about
    marks = (about.high_watermark, about.low_watermark) if about.policy != "full" else ()
    top = max(1, *(max(moment.page_span, moment.useful_cells) for moment in moments), *marks)
    label = len(str(top))
    columns = max(width - label - 2, LEAST_COLUMNS)
    useful = stretched([moment.useful_cells for moment in moments], columns)
    least = stretched([moment.least for moment in moments], columns, min)
    spans = stretched([moment.page_span for moment in moments], columns)
    marked = {_row(mark, top, height): mark for mark in marks}
    lines = []
    for row in range(height - 1, -1, -1):
        named = marked.get(row, top if row == height - 1 else 0 if row == 0 else "")
        line = Text(f"{named:>{label}} ", no_wrap=True)
        for lowest, highest, reached in zip(least, useful, spans, strict=True):
            low, high, span = (each / top * height - row for each in (lowest, highest, reached))
            line.append(*_piece(low, high, span, row in marked, charset))
        lines.append(line)
    lines.append(_time_axis(moments[0].media_s, moments[-1].media_s, label + 1, columns))
    return lines


def history_words(snapshot: SessionSnapshot, charset: Charset) -> str:
    """The legend and what the chart says in figures."""
    moments = snapshot.moments
    if not moments:
        return ""
    unused = [max(moment.page_span - moment.useful_cells, 0) for moment in moments]
    each = snapshot.moment_units
    several = f"{charset.band} between the least and the most of the units in a column"
    band = f", {several}" if any(moment.least < moment.useful_cells for moment in moments) else ""
    scale = f" Each column shows {counted(each, 'unit')} or more." if each > 1 else ""
    lines = " Lines: high and low watermark." if snapshot.about.policy != "full" else ""
    return (
        f"{charset.steps[-1]} useful cells{band}, {charset.gap} empty cells within the page span, over media time."
        f"{lines}{scale} Newest: {moments[-1].useful_cells} useful in a page span of {moments[-1].page_span} cells"
        f" ({unused[-1]} empty). At most: {max(each.useful_cells for each in moments)} useful,"
        f" page span {max(each.page_span for each in moments)}, {max(unused)} empty."
    )


def stretched(values: Sequence[int], columns: int, of: Callable[[Sequence[int]], int] = max) -> list[int]:
    """So many columns: the largest (`of`: the smallest) of the values that fall into one, or a value over several."""
    count = len(values)
    if count <= columns:
        return [values[column * count // columns] for column in range(columns)]
    bounds = [column * count // columns for column in range(columns + 1)]
    return [of(values[begin:end]) for begin, end in pairwise(bounds)]


def _row(value: int, top: int, height: int) -> int:
    return min(value * height // top, height - 1)


def _piece(least: float, most: float, reached: float, marked: bool, charset: Charset) -> tuple[str, str]:
    """A character and its style; heights count from the character's own bottom edge, 1 is its top."""
    steps = len(charset.steps) - 1
    if least < 0.5 <= most and most - least >= 1:  # mostly between the two, which are a line or more apart
        return (charset.mark, "bold green") if marked else (charset.band, "green")
    step = max(0, min(int(most * steps + 0.5), steps))
    if step == steps and marked:
        return charset.mark, "black on green"
    if step:
        return charset.steps[step], "green on green" if charset.is_drawn and step == steps else "green"
    if reached >= 0.5:
        return charset.gap, "yellow"
    return (charset.mark, "bright_black") if marked else (" ", "")


def _time_axis(first: float, last: float, indent: int, columns: int) -> Text:
    from rich.text import Text

    begin, end = clock(max(first, 0.0)), clock(max(last, 0.0))
    return Text(" " * indent + begin + end.rjust(max(columns - len(begin), len(end) + 1)), no_wrap=True)

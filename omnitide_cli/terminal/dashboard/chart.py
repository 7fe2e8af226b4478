"""The length of the history over time, against both watermarks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from omnitide_cli.terminal.dashboard import theme
from omnitide_cli.terminal.dashboard.state import Trace
from omnitide_cli.times import clock

EIGHTHS = 8
HEADROOM = 1.08


@dataclass(frozen=True, slots=True)
class HistoryChart:
    """Bars from left to right; the whole width is the whole source, or twice what has been seen when it is endless."""

    trace: Trace
    high: int | None
    low: int | None
    limit: int
    """Tokens at the top when there are no watermarks: what the cache holds."""
    units_total: int | None
    begin_s: float
    unit_s: float
    end_s: float

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or 6
        peak = max((high for _, high in self.trace.buckets), default=0)
        top = max((self.high or self.limit) * HEADROOM, peak)
        label = len(f"{self.high or self.limit:,}") + 1
        rows = height - 1
        columns = ranges(self.trace, width - label, self.units_total)
        lines = self._lines(rows, top)
        for row in range(rows):
            value, style = lines.get(row, (None, None))
            yield Segment(f"{value:>{label - 1},} " if value is not None else " " * label, style)
            yield from _bar_row(columns, rows - 1 - row, rows / top, style)
            yield Segment.line()
        yield from self._axis(label, width - label)

    def _lines(self, rows: int, top: float) -> dict[int, tuple[int, Style]]:
        """Row of each watermark; where both fall into one row, the high one is shown."""
        marks = [(self.low, theme.LOW), (self.high, theme.HIGH)] if self.high else [(self.limit, theme.FAINT)]
        return {
            rows - 1 - min(int(value / top * rows), rows - 1): (value, Style.parse(style))
            for value, style in marks
            if value is not None
        }

    def _axis(self, label: int, width: int) -> RenderResult:
        begin = clock(self.begin_s)
        seen = reach(self.trace, width, self.units_total)
        end = clock(self.begin_s + seen * self.unit_s) if self.units_total is None else clock(self.end_s)
        gap = width - len(begin) - len(end)
        yield Segment(" " * label + (begin + " " * gap + end if gap > 0 else begin[:width]), Style.parse(theme.FAINT))


def reach(trace: Trace, width: int, units_total: int | None) -> int:
    """Units that the whole width stands for."""
    if units_total and units_total >= trace.units:
        return units_total
    reach = max(width, 1)
    while reach < trace.units:
        reach *= 2
    return reach


def ranges(trace: Trace, width: int, units_total: int | None) -> list[tuple[int, int] | None]:
    """The lowest and the highest history in each column; None where nothing has been seen yet."""
    whole = reach(trace, width, units_total)
    columns: list[tuple[int, int] | None] = []
    for column in range(width):
        first, last = column * whole // width, (column + 1) * whole / width
        if first >= trace.units:
            columns.append(None)
            continue
        begin = first // trace.step
        end = max(math.ceil(last / trace.step), begin + 1)
        buckets = trace.buckets[begin:end]
        columns.append((min(low for low, _ in buckets), max(high for _, high in buckets)) if buckets else None)
    return columns


def _bar_row(columns: list[tuple[int, int] | None], level: int, scale: float, line: Style | None) -> RenderResult:
    """One row of all bars; `level` counts rows from the ground. A watermark is drawn over the bars it crosses."""
    bar = Style.parse(theme.HISTORY)
    crossing = line + Style(bgcolor=bar.color) if line else None
    text, style = "", None
    for value in columns:
        least, filled = (0, 0) if value is None else (_eighths(each * scale - level) for each in value)
        is_band = value is not None and (value[1] - value[0]) * scale >= 1
        if is_band and least < EIGHTHS // 2 <= filled:
            letter, own = (theme.WATERMARK, line) if line else (theme.BAND, bar)
        elif line and filled in (0, EIGHTHS):
            letter, own = theme.WATERMARK, crossing if filled else line
        else:
            letter, own = theme.BARS[filled], bar
        if own is not style and text:
            yield Segment(text, style)
            text = ""
        text, style = text + letter, own
    if text:
        yield Segment(text, style)


def _eighths(height: float) -> int:
    """Of a row that a bar fills."""
    return min(max(round(height * EIGHTHS), 0), EIGHTHS)

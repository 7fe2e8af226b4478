"""Bars and lines as SVG that needs nothing: no library, no font, no network; dark where the viewer is dark.

A chart says one thing; a figure has one or more of them below each other. The same values give the same file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH = 760
MARGIN = 20
LETTER = 6.7  # pixels of a character at 12 pixels, on the safe side
BAR, BAR_GAP, GROUP_GAP = 15, 3, 12
PLOT_HEIGHT = 260
TICKS = 5

LIGHT = ("#2f6fb7", "#d9822b", "#3f9a6b", "#b5484f", "#7a5bb0", "#8a6d4b", "#c25b9a", "#5f6b76")
DARK = ("#6ea8ec", "#eba55d", "#6cc596", "#e07c82", "#a98fe0", "#c2a47d", "#e48fc3", "#9aa6b2")
STYLE = """<style>
text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f; }
.title { font-size: 15px; font-weight: 600; } .chart { font-size: 13px; font-weight: 600; } .faint { fill: #656d76; }
.paper { fill: #ffffff; } .grid { stroke: #d8dee4; stroke-width: 1; } .whisker { stroke: #24292f; stroke-width: 1.2; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .faint { fill: #9198a1; } .paper { fill: #0d1117; } .grid { stroke: #30363d; }
.whisker { stroke: #e6edf3; } }
"""


@dataclass(frozen=True, slots=True)
class Value:
    """A measured value, with its interval if it has one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars: for every series a value (None: nothing was measured) in every group; stacked: end to end."""

    title: str
    groups: Sequence[str]
    series: Mapping[str, Sequence[Value | None]]
    stacked: bool = False

    def draw(self, top: float) -> tuple[list[str], float]:
        """Elements of the chart whose upper edge is at `top`, and its height."""
        names = list(self.series)
        parts, y = _head(self.title, names, top)
        left = MARGIN + max(len(group) for group in self.groups) * LETTER + 8
        right = WIDTH - MARGIN - 60  # room for the value behind the longest bar
        ends = [0.0]
        for index in range(len(self.groups)):
            here = [value for values in self.series.values() if (value := values[index]) is not None]
            ends += [sum(v.value for v in here)] if self.stacked else [max(v.value, v.high or 0.0) for v in here]
        scale = _Scale(min(0.0, *self._values()), max(ends), left, right)
        rows = 1 if self.stacked else len(names)
        height = len(self.groups) * (rows * (BAR + BAR_GAP) + GROUP_GAP)
        parts += scale.grid(y, y + height)
        for index, group in enumerate(self.groups):
            begin = y + GROUP_GAP / 2 + index * (rows * (BAR + BAR_GAP) + GROUP_GAP)
            middle = begin + (rows * (BAR + BAR_GAP) - BAR_GAP) / 2
            parts.append(_text(left - 8, middle + 4, group, anchor="end"))
            parts += self._group(index, begin, scale)
        return [*parts, *scale.labels(y + height + 14)], y + height + 22 - top

    def _values(self) -> list[float]:
        return [value.value for values in self.series.values() for value in values if value is not None]

    def _group(self, index: int, begin: float, scale: _Scale) -> list[str]:
        parts: list[str] = []
        done = 0.0
        for number, values in enumerate(self.series.values()):
            value = values[index]
            row = begin + (0 if self.stacked else number * (BAR + BAR_GAP))
            if value is None:
                parts.append(_text(scale(0) + 4, row + BAR - 3, "–", "faint"))
                continue
            start, end = scale(done), scale(done + value.value)
            parts.append(_rect(min(start, end), row, abs(end - start), BAR, number))
            done += value.value if self.stacked else 0.0
            reach = end
            if value.low is not None and value.high is not None and not self.stacked:
                parts.append(_whisker(scale(value.low), scale(value.high), row + BAR / 2))
                reach = max(end, scale(value.high))
            if not self.stacked:
                parts.append(_text(max(reach, scale(0)) + 5, row + BAR - 3, number_text(value.value), "faint"))
        if self.stacked:
            parts.append(_text(scale(done) + 5, begin + BAR - 3, number_text(done), "faint"))
        return parts


@dataclass(frozen=True, slots=True)
class Lines:
    """Points (x, y) of every series, joined; y begins at 0. log_x: equal factors lie equally far apart.

    x_names: what to write instead of some x.
    """

    title: str
    x_title: str
    series: Mapping[str, Sequence[tuple[float, float | Value]]]
    log_x: bool = False
    x_names: Mapping[float, str] = field(default_factory=dict)

    def draw(self, top: float) -> tuple[list[str], float]:
        """Elements of the chart whose upper edge is at `top`, and its height."""
        parts, y = _head(self.title, list(self.series), top)
        points = [(x, _measured(value)) for series in self.series.values() for x, value in series]
        xs = sorted({x for x, _ in points})
        most = max(max(value.value, value.high or 0.0) for _, value in points)
        up = _Scale(0.0, most, y + PLOT_HEIGHT, y + 8)
        left = MARGIN + max(len(number_text(tick)) for tick in up.ticks) * LETTER + 8
        across = _Scale(xs[0], xs[-1], left, WIDTH - MARGIN - 20, log=self.log_x, whole=False)
        for tick in up.ticks:
            parts.append(_line(left, up(tick), WIDTH - MARGIN, up(tick)))
            parts.append(_text(left - 6, up(tick) + 4, number_text(tick), "faint", anchor="end"))
        marks = xs if len(xs) <= 2 * TICKS else [t for t in across.ticks if xs[0] <= t <= xs[-1]]
        for mark in marks:
            name = self.x_names.get(mark, number_text(mark))
            parts.append(_text(across(mark), y + PLOT_HEIGHT + 16, name, "faint", anchor="middle"))
        parts.append(_text((left + WIDTH - MARGIN) / 2, y + PLOT_HEIGHT + 34, self.x_title, "faint", anchor="middle"))
        for number, series in enumerate(self.series.values()):
            measured = sorted(((x, _measured(value)) for x, value in series), key=lambda point: point[0])
            placed = [(across(x), up(value.value)) for x, value in measured]
            aside = 3 * (number - (len(self.series) - 1) / 2)  # whiskers of series at the same x stand side by side
            parts += [
                _upright_whisker(across(x) + aside, up(value.low), up(value.high), number)
                for x, value in measured
                if value.low is not None and value.high is not None
            ]
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in placed)
            parts.append(f'<polyline class="l{number % len(LIGHT)}" points="{path}"/>')
            if len(placed) <= 30:
                parts += [
                    f'<circle class="s{number % len(LIGHT)}" cx="{px:.1f}" cy="{py:.1f}" r="3"/>' for px, py in placed
                ]
        return parts, y + PLOT_HEIGHT + 42 - top


def _measured(value: float | Value) -> Value:
    return value if isinstance(value, Value) else Value(value)


Chart = Bars | Lines


@dataclass(frozen=True, slots=True)
class Figure:
    """Charts below each other, under one title."""

    title: str
    charts: Sequence[Chart]

    def svg(self) -> str:
        """The file's text."""
        parts = [_text(MARGIN, MARGIN + 12, self.title, "title")]
        y = MARGIN + 26.0
        for chart in self.charts:
            drawn, height = chart.draw(y)
            parts += drawn
            y += height + MARGIN
        colours = [
            *(f".s{i} {{ fill: {light}; }} .l{i} {{ stroke: {light}; }}" for i, light in enumerate(LIGHT)),
            "@media (prefers-color-scheme: dark) {",
            *(f".s{i} {{ fill: {dark}; }} .l{i} {{ stroke: {dark}; }}" for i, dark in enumerate(DARK)),
            "} polyline { fill: none; stroke-width: 2; } .thin { stroke-width: 1; opacity: 0.6; }",
        ]
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y:.0f}" width="{WIDTH}" height="{y:.0f}">'
        )
        style = STYLE + "\n".join(colours) + "\n</style>"
        paper = f'<rect class="paper" width="{WIDTH}" height="{y:.0f}"/>'
        return "\n".join([head, style, paper, *parts, "</svg>", ""])


def number_text(value: float) -> str:
    """Four digits at most where they suffice, thousands parted."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if value and abs(value) < 0.001:
        return f"{value:.1e}"
    return f"{value:.3g}"


class _Scale:
    """From values to pixels, with round values for an axis. `whole`: the axis ends at round values."""

    def __init__(
        self, low: float, high: float, begin: float, end: float, *, log: bool = False, whole: bool = True
    ) -> None:
        high = high if high > low else low + 1.0
        raw = (high - low) / TICKS
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        self.ticks = [index * step for index in range(first, last + 1)]
        self._low, self._high = (self.ticks[0], self.ticks[-1]) if whole else (low, high)
        self._log = log and low > 0
        self._begin, self._end = begin, end

    def __call__(self, value: float) -> float:
        low, high = self._low, self._high
        if self._log:
            value, low, high = math.log(value), math.log(low), math.log(high)
        return self._begin + (value - low) / (high - low) * (self._end - self._begin)

    def grid(self, top: float, bottom: float) -> list[str]:
        return [_line(self(tick), top, self(tick), bottom) for tick in self.ticks]

    def labels(self, y: float) -> list[str]:
        return [_text(self(tick), y, number_text(tick), "faint", anchor="middle") for tick in self.ticks]


def _head(title: str, names: Sequence[str], top: float) -> tuple[list[str], float]:
    """A chart's title and, where there is more than one series, their names; and where the plot begins."""
    parts = [_text(MARGIN, top + 12, title, "chart")]
    if len(names) < 2:
        return parts, top + 22
    x, y = float(MARGIN), top + 24
    for number, name in enumerate(names):
        width = 16 + len(name) * LETTER + 14
        if x + width > WIDTH - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + 18
        parts += [_rect(x, y, 11, 11, number), _text(x + 16, y + 10, name)]
        x += width
    return parts, y + 22


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{named}{placed}>{escape(words)}</text>'


def _rect(x: float, y: float, width: float, height: float, number: int) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="s{number % len(LIGHT)}" {place} rx="1.5"/>'


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _whisker(low: float, high: float, y: float) -> str:
    ends = f"M{low:.1f} {y - 4:.1f}V{y + 4:.1f}M{high:.1f} {y - 4:.1f}V{y + 4:.1f}"
    return f'<path class="whisker" d="M{low:.1f} {y:.1f}H{high:.1f}{ends}"/>'


def _upright_whisker(x: float, low: float, high: float, number: int) -> str:
    return f'<polyline class="l{number % len(LIGHT)} thin" points="{x:.1f},{low:.1f} {x:.1f},{high:.1f}"/>'

"""The dashboard as a renderable: a pure function of what is known, what is typed, and the size of the terminal.

With less room, things go in this order: the picture, the chart, the cache, the borders; the talk and the prompt stay
down to 20 columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.align import Align
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from omnitide_cli.formats.words import counted, printable
from omnitide_cli.terminal.dashboard import theme
from omnitide_cli.terminal.dashboard.chart import HistoryChart
from omnitide_cli.terminal.dashboard.conversation import Talk, TalkPanel
from omnitide_cli.terminal.dashboard.pages import PageMap
from omnitide_cli.terminal.dashboard.panel import panel
from omnitide_cli.terminal.dashboard.picture import Picture
from omnitide_cli.terminal.dashboard.scroll import Scroll
from omnitide_cli.terminal.dashboard.state import State
from omnitide_cli.terminal.dashboard.upkeep import (
    cost_words,
    lag_words,
    migration_words,
    retention_words,
    same_words,
    speed_words,
    time_words,
)
from omnitide_cli.terminal.line import Line, after
from omnitide_cli.times import clock

WIDE = (120, 30)
FULL = (60, 20)
FRAMED = (40, 12)
GAUGE_ROWS = 6
NAME = "OmniTide"
HINT = "ask anything · /kv · /save FILE · /help · /quit"
END_HINT = "the end: ask a question, or /quit"


@dataclass(frozen=True, slots=True)
class View:
    """How the state is looked at: the terminal, the line being typed, what is scrolled back or laid over."""

    width: int
    height: int
    line: Line = field(default_factory=Line)
    has_prompt: bool = True
    colours: bool = True
    pictures: bool = True
    scroll: Scroll = field(default_factory=Scroll)
    """Lines of the talk that are scrolled away below."""
    overlay: RenderableType | None = None
    """Shown instead of everything but the prompt, until a key is pressed."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Fills `view.width` by `view.height` characters exactly."""

    state: State
    view: View

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        view = self.view
        prompt = prompt_line(view, self.state)[0]
        body_height = view.height - 1 - (view.height > 1)
        parts = [
            (header(self.state, view.width), min(view.height - 1, 1)),
            (self._body(body_height), body_height),
            (prompt, 1),
        ]
        lines = []
        for part, rows in parts:
            if rows > 0:
                lines += console.render_lines(part, options.update(width=view.width, height=rows))
        for number, line in enumerate(lines):
            yield from line
            if number < len(lines) - 1:
                yield Segment.line()

    def _body(self, height: int) -> RenderableType:
        state, view = self.state, self.view
        if view.overlay is not None:
            return view.overlay
        if state.session is None:
            return loading(state, view.width, height)
        if view.width >= WIDE[0] and height >= WIDE[1]:
            return self._wide(height)
        if view.width >= FULL[0] and height >= FULL[1]:
            return self._full(height)
        return self._small(height)

    def _wide(self, height: int) -> RenderableType:
        view = self.view
        left = min(view.width * 3 // 5, 130)
        picture_rows = max(height * 2 // 5, 10)
        cache_rows = min(max(height // 6, 5), 10) + 2
        whole, column, top = Layout(), Layout(size=left), Layout(size=picture_rows)
        picture_columns = self._picture_columns(picture_rows - 2, left // 2) if self._has_picture() else 0
        numbers = Layout(self._numbers())
        if picture_columns:
            top.split_row(Layout(self._watching(), size=picture_columns + 4), numbers)
        else:
            top.update(numbers)
        column.split_column(top, Layout(self._history()), Layout(self._cache(words=False), size=cache_rows))
        whole.split_row(column, Layout(self._talk(spaced=True)))
        return whole

    def _full(self, height: int) -> RenderableType:
        view = self.view
        top_rows = min(max(height * 3 // 8, 8), 16)
        whole, top = Layout(), Layout(size=top_rows)
        columns = self._picture_columns(top_rows - 2, view.width // 2 - 4) if self._has_picture() else 0
        if columns:
            top.split_row(Layout(self._watching(), size=columns + 4), Layout(self._history()))
        else:
            top.update(self._history())
        whole.split_column(top, Layout(self._cache(words=True), size=6), Layout(self._talk()))
        return whole

    def _small(self, height: int) -> RenderableType:
        whole = Layout()
        rows = []
        framed = self.view.width >= FRAMED[0] and height >= FRAMED[1]
        if framed:
            rows.append(Layout(self._history(), size=max(height // 3, 6)))
        elif height >= GAUGE_ROWS:
            rows.append(Layout(gauge(self.state, self.view.width), size=1))
        talk = self._talk() if framed else Talk(self.state.talk, self.view.scroll)
        whole.split_column(*rows, Layout(talk))
        return whole

    def _has_picture(self) -> bool:
        return (self.state.frame is not None and self.view.pictures) or self.state.sound is not None

    def _picture_columns(self, rows: int, most: int) -> int:
        """Columns that a picture of this many rows fills, without its frame."""
        picture = self._picture()
        shape = picture.shape
        if shape is None:
            return min(32, most)
        return max(min(round(2 * (rows - picture.rows_of_sound(rows)) * shape[1] / shape[0]), most), 12)

    def _picture(self) -> Picture:
        state = self.state
        frame = state.frame if self.view.pictures else None
        return Picture(frame, state.sound, state.ratio)

    def _watching(self) -> RenderableType:
        picture = self._picture()
        title = "Watching" if picture.frame is not None else "Listening" if self.state.frame is None else "Sound"
        return panel(picture, title)

    def _history(self) -> RenderableType:
        state = self.state
        session = state.session
        assert session is not None
        bounded = session.policy != "full"
        chart = HistoryChart(
            trace=state.trace,
            high=session.high_watermark if bounded else None,
            low=session.low_watermark if bounded else None,
            limit=session.n_ctx,
            units_total=state.units_total,
            begin_s=state.first_s,
            unit_s=state.unit_s,
            end_s=state.end_s,
        )
        tokens = f"{state.unit.history_tokens:,} tokens" if state.unit else ""
        return panel(chart, "History", tokens)

    def _cache(self, *, words: bool) -> RenderableType:
        state = self.state
        parts: list[RenderableType] = []
        if state.cells is not None:
            parts.append(PageMap(state.cells, self.view.colours))
        if words:
            parts += [_clipped(line) for line in self._maintenance()]
        body = _Stack(parts, growing=0) if parts else Text()
        return panel(body, "Cache", self._legend())

    def _legend(self) -> Text:
        cells = self.state.cells
        legend = Text()
        for letter, name in theme.CLASS_NAMES.items():
            sign = theme.SHADES[-1] if self.view.colours else letter
            count = f" {cells.letters.count(letter.encode()):,}" if cells else ""
            legend.append(sign, theme.CLASSES[letter] if self.view.colours else "").append(f" {name}{count}  ")
        return legend.append(f"{theme.SHADES[0]} free")

    def _maintenance(self) -> list[Text]:
        state = self.state
        if state.retention is None:
            return [Text("nothing evicted yet", theme.FAINT), Text()]
        lines = [Text.assemble(("retention  ", theme.FAINT), retention_words(state.retention))]
        moved = migration_words(state.migration) if state.migration else "nothing moved yet"
        return [*lines, Text.assemble(("migration  ", theme.FAINT), moved)]

    def _numbers(self) -> RenderableType:
        state = self.state
        unit, session = state.unit, state.session
        assert session is not None
        rows: list[tuple[str, str]] = [
            ("model", session.model),
            ("policy", f"{session.policy}, {session.layout} layout"),
        ]
        if unit:
            counts = unit.tokens
            kinds = [("image", counts.image), ("sound", counts.audio), ("markers", counts.boundary)]
            parts = ", ".join(f"{name} {count}" for name, count in kinds if count)
            rows.append(
                (
                    "unit",
                    f"{unit.index + 1:,}"
                    + (f" of {state.units_total:,}" if unit.index < (state.units_total or 0) else ""),
                )
            )
            rows.append(("", f"{counts.total} tokens: {parts}"))
            rows += (
                [("speed", speed_words(state)), ("", cost_words(state))]
                if speed_words(state)
                else [("cost", cost_words(state))]
            )
            rows.append(("lag", lag_words(state) or "none"))
            if same_words(state):
                rows.append(("unchanged", same_words(state)))
            rows.append(("history", f"{unit.history_tokens:,} tokens"))
            rows.append(("span", f"{unit.page_span:,} cells of {session.n_ctx:,}"))
        rows.append(("answers", f"{state.answers:,}"))
        if state.alerts:
            now = f", now: {', '.join(map(printable, state.active))}" if state.active else ""
            rows.append(("alerts", f"{state.alerts:,}{now}"))
        if state.retention:
            rows.append(("retention", f"{state.retentions:,} so far, the last after unit {state.retention.unit + 1:,}"))
            rows.append(("", retention_words(state.retention)))
        if state.migration:
            rows.append(("migration", migration_words(state.migration)))
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style=theme.FAINT, no_wrap=True)
        grid.add_column(overflow="fold")
        for label, text in rows:
            grid.add_row(label, Text(text))
        return panel(grid, "Session")

    def _talk(self, *, spaced: bool = False) -> RenderableType:
        return TalkPanel(Talk(self.state.talk, self.view.scroll, spaced))


@dataclass(frozen=True, slots=True)
class _Stack:
    """Parts below each other, of one line each but for one that takes what is left."""

    parts: list[RenderableType]
    growing: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or len(self.parts)
        room = max(height - len(self.parts) + 1, 0)
        for index, part in enumerate(self.parts):
            rows = room if index == self.growing else 1
            for line in console.render_lines(part, options.update(height=rows)):
                yield from line
                yield Segment.line()


def _clipped(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def header(state: State, width: int) -> Text:
    """Name, source and model at the left; what goes on, how far and how fast at the right."""
    phase = {"loading": "loading", "watching": "", "answering": "answering", "ended": "at the end"}[state.phase]
    alerts = f"‼ {printable(', '.join(state.active))}" if state.active else ""
    if cell_len(alerts) > width // 3:
        alerts = f"‼ {counted(len(state.active), 'alert')}"
    right = [word for word in (alerts, phase, time_words(state), speed_words(state), lag_words(state)) if word]
    room = width - cell_len(f" ≈ {NAME} ")
    while right and len(" · ".join(right)) + 1 > room:
        right.pop()
    if not right and state.unit and len(clock(state.unit.end)) < room:
        right = [clock(state.unit.end)]
    tail = " · ".join(right)
    left = Text.assemble((f" ≈ {NAME}", theme.NAME))
    if state.source:
        left.append(f"  {printable(state.source.rpartition('/')[2] or state.source)}", theme.STRONG)
    if state.model:
        left.append(f" · {printable(state.model)}", theme.FAINT)
    room = max(width - cell_len(tail) - 2, 0)
    left.truncate(room, overflow="ellipsis", pad=True)
    is_late = lag_words(state) and lag_words(state) in tail
    style = theme.ALERT if alerts and alerts in tail else theme.WARNING if is_late else theme.BUSY
    return _clipped(Text.assemble(left, " ", (tail, style), " "))


def loading(state: State, width: int, height: int) -> RenderableType:
    """While a model is read from disk."""
    bar_width = max(min(width - 8, 40), 4)
    done = round(bar_width * state.loaded)
    lines = Group(
        Text(f"loading {printable(state.model)}", theme.STRONG, justify="center", no_wrap=True, overflow="ellipsis"),
        Text.assemble(("━" * done, theme.HISTORY), ("━" * (bar_width - done), theme.FAINT), justify="center"),
        Text(f"{state.loaded:.0%}", theme.FAINT, justify="center"),
    )
    return Align.center(lines, vertical="middle", height=height)


def gauge(state: State, width: int) -> Text:
    """The history against the high watermark in one line."""
    session, unit = state.session, state.unit
    if session is None or unit is None:
        return Text()
    bound = session.high_watermark if session.policy != "full" else session.n_ctx
    numbers = f" {unit.history_tokens:,}/{bound:,}"
    room = width - len(numbers)
    if room < 4:
        return _clipped(Text(numbers.strip()))
    filled = min(round(room * unit.history_tokens / bound), room)
    return Text.assemble(("━" * filled, theme.HISTORY), ("━" * (room - filled), theme.FAINT), numbers)


def prompt_line(view: View, state: State) -> tuple[Text, int]:
    """The line at the bottom and the column of its cursor; it scrolls sideways so that the cursor is always seen."""
    if not view.has_prompt:
        return _clipped(Text(" Ctrl-C ends", theme.FAINT)), 0
    mark = Text(theme.PROMPT, theme.QUESTION)
    room = max(view.width - cell_len(theme.PROMPT) - 1, 1)
    if not view.line.text:
        hint = END_HINT if state.has_ended else HINT
        return _clipped(Text.assemble(mark, (hint, theme.FAINT))), cell_len(theme.PROMPT)
    typed, cursor = view.line.text, view.line.cursor
    begin = 0
    while cell_len(typed[begin:cursor]) > room:
        begin = after(typed, begin)
    column = cell_len(theme.PROMPT) + cell_len(typed[begin:cursor])
    return Text.assemble(mark, set_cell_size(typed[begin:], min(room, cell_len(typed[begin:])))), column

"""Questions, answers and remarks, the newest at the bottom."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.segment import Segment
from rich.text import Text

from omnitide_cli.formats.words import counted, moment, printable
from omnitide_cli.terminal.dashboard import theme
from omnitide_cli.terminal.dashboard.panel import panel
from omnitide_cli.terminal.dashboard.scroll import Scroll
from omnitide_cli.terminal.dashboard.state import Exchange, Remark

NARROW = 40


@dataclass(frozen=True, slots=True)
class Talk:
    """As much as fits; `scroll` leaves out that many of the newest lines."""

    entries: tuple[Exchange | Remark, ...]
    scroll: Scroll = field(default_factory=Scroll)
    spaced: bool = False
    """With an empty line between entries."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or 1
        for line in self.window(console, options.max_width, height)[0]:
            yield from console.render_lines(line, options.update(height=1), pad=False)[0]
            yield Segment.line()

    def window(self, console: Console, width: int, height: int) -> tuple[list[Text], bool]:
        """The lines that are seen, at most `height`, and whether there are more above."""
        wanted = height + self.scroll.lines
        shown: list[Text] = []
        left = list(self.entries)
        while left and len(shown) <= wanted:
            shown[:0] = [*wrapped(left.pop(), console, width), *([Text()] if self.spaced and shown else [])]
        if not left:
            self.scroll.drawn(len(shown), height)
        self.scroll.page = height
        end = len(shown) - self.scroll.lines
        return shown[max(end - height, 0) : end], bool(left) or end > height


@dataclass(frozen=True, slots=True)
class TalkPanel:
    """A talk in a frame that says whether there is more of it."""

    talk: Talk

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = max((options.height or 3) - 2, 1)
        lines, has_earlier = self.talk.window(console, max(options.max_width - 4, 1), rows)
        away = self.talk.scroll.lines
        right = f"{counted(away, 'line')} below: PgDn" if away else "PgUp: earlier" if has_earlier else ""
        yield from console.render(panel(Group(*lines), "Talk", right), options)


def wrapped(entry: Exchange | Remark, console: Console, width: int) -> list[Text]:
    """An entry in lines of `width` columns; a full-width character is never cut."""
    if isinstance(entry, Remark) and entry.is_alert:
        return _hanging(Text(printable(entry.text), theme.ALERT), Text("‼ ", theme.ALERT), console, width)
    if isinstance(entry, Remark):
        sign, style = ("! ", theme.WARNING) if entry.is_warning else ("  ", theme.FAINT)
        return _hanging(Text(printable(entry.text), style), Text(sign, style), console, width)
    time = Text(f"{moment(entry.at, entry.wall)} ", theme.FAINT)
    lines = _hanging(Text(printable(entry.question), theme.QUESTION), time, console, width)
    answer = Text(printable(entry.text.strip()))
    if not entry.stop:
        answer.append(theme.CARET, theme.BUSY)
    elif entry.stop != "eos":
        answer.append(" (interrupted)" if entry.stop == "interrupted" else " (cut off: too long)", theme.FAINT)
    if entry.where:
        answer.append(f" ({entry.where})", theme.FAINT)
    indent = Text(" " * (len(time) if width >= NARROW else 0))
    return [*lines, *_hanging(answer, indent, console, width)]


def _hanging(text: Text, first: Text, console: Console, width: int) -> list[Text]:
    """Wrapped with `first` before the first line, the others below its text; a narrow screen has no room for that."""
    if width < NARROW:
        return list(Text.assemble(first, text).wrap(console, max(width, 2), overflow="fold")) or [first]
    lines = list(text.wrap(console, width - len(first), overflow="fold")) or [Text()]
    return [Text.assemble(first, lines[0]), *(Text.assemble(" " * len(first), line) for line in lines[1:])]

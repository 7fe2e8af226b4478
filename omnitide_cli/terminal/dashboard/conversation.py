"""Questions, answers and remarks, the newest at the bottom."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from omnitide_cli.formats.words import clock, printable
from omnitide_cli.terminal.dashboard import theme
from omnitide_cli.terminal.dashboard.state import Exchange, Remark

NARROW = 40


@dataclass(frozen=True, slots=True)
class Talk:
    """As much as fits; `back` leaves out that many of the newest entries."""

    entries: tuple[Exchange | Remark, ...]
    back: int = 0
    spaced: bool = False
    """With an empty line between entries."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or 1
        for line in self.tail(console, options.max_width, height):
            yield from console.render_lines(line, options.update(height=1), pad=False)[0]
            yield Segment.line()

    def tail(self, console: Console, width: int, height: int) -> list[Text]:
        """The last lines, at most `height`."""
        shown: list[Text] = []
        for entry in reversed(self.entries[: len(self.entries) - self.back]):
            shown[:0] = [*wrapped(entry, console, width), *([Text()] if self.spaced and shown else [])]
            if len(shown) >= height:
                break
        return shown[-height:]


def wrapped(entry: Exchange | Remark, console: Console, width: int) -> list[Text]:
    """An entry in lines of `width` columns; a full-width character is never cut."""
    if isinstance(entry, Remark):
        sign, style = ("! ", theme.WARNING) if entry.is_warning else ("  ", theme.FAINT)
        return _hanging(Text(printable(entry.text), style), Text(sign, style), console, width)
    time = Text(f"{clock(entry.at)} ", theme.FAINT)
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

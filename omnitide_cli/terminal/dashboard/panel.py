"""A frame around a part of the dashboard."""

from __future__ import annotations

from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.panel import Panel
from rich.text import Text

from omnitide_cli.terminal.dashboard import theme


def panel(body: RenderableType, title: str, right: str | Text = "") -> RenderableType:
    return _Panel(body, title, Text(right) if isinstance(right, str) else right)


@dataclass(frozen=True, slots=True)
class _Panel:
    """A frame with a title at the left and, where there is room, a word at the right."""

    body: RenderableType
    title: str
    right: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        title = Text(self.title, theme.TITLE)
        gap = width - 8 - title.cell_len - self.right.cell_len
        if self.right.cell_len and gap > 0:
            line = (f" {'─' * gap} ", theme.BORDER)
            title = Text.assemble(title, line, Text.assemble(self.right, style=theme.ON_BORDER))
        yield Panel(
            self.body,
            box=box.ROUNDED,
            title=title,
            title_align="left",
            border_style=theme.BORDER,
            padding=(0, 1),
            height=options.height,
        )

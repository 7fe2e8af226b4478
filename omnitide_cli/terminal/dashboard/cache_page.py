"""What `inspect-kv` shows, over the dashboard."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from omnitide_cli.formats.charts import BLOCKS
from omnitide_cli.inspect.kv_view import Canvas, view
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.terminal.dashboard import theme
from omnitide_cli.terminal.dashboard.scroll import Scroll

CLOSE = "any key closes this"
SCROLL = "PgUp PgDn, any key closes"


@dataclass(frozen=True, slots=True)
class CachePage:
    """As much of it as fits; `scroll` leaves out so many lines at the top."""

    snapshot: SessionSnapshot
    scroll: Scroll

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or 24
        shown = view(self.snapshot, Canvas(width, BLOCKS, height - 1))
        lines, room = console.render_lines(shown, options.update(height=None)), height - 1
        self.scroll.drawn(len(lines), room)
        first = self.scroll.lines
        for line in lines[first : first + room]:
            yield from line
            yield Segment.line()
        where = (
            CLOSE if len(lines) <= room else f"{first + 1}–{min(first + room, len(lines))} of {len(lines)}: {SCROLL}"
        )
        yield Text(where, theme.FAINT, no_wrap=True, overflow="ellipsis")

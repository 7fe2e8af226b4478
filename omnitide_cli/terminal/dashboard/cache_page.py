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

CLOSE = "any key closes this"


@dataclass(frozen=True, slots=True)
class CachePage:
    """As much of it as fits."""

    snapshot: SessionSnapshot

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, options.height or 24
        shown = view(self.snapshot, Canvas(width, BLOCKS, height - 1))
        for line in console.render_lines(shown, options.update(height=None))[: height - 1]:
            yield from line
            yield Segment.line()
        yield Text(CLOSE, theme.FAINT, no_wrap=True, overflow="ellipsis")

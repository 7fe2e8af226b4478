"""What a session shows and where it hears from: a dashboard, plain text or NDJSON, and a prompt where a person sits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnitide_cli.commands.prompt import Prompt, QueuedLines, Silence, TypedLines
from omnitide_cli.display.ndjson import NdjsonSink
from omnitide_cli.display.plain import PlainSink
from omnitide_cli.display.sink import Sink, Tee
from omnitide_cli.display.status import StatusLine
from omnitide_cli.display.transcript import open_transcript

if TYPE_CHECKING:
    from omnitide_cli.commands.interrupt import Interrupt
    from omnitide_cli.commands.run import Globals
    from omnitide_cli.display.dashboard.show import Show
    from omnitide_cli.display.dashboard.sink import DashboardSink
    from omnitide_cli.display.terminal import Terminal
    from omnitide_cli.runtime.engine import Engine


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the flags say about the output."""

    json_lines: bool = False
    transcript: Path | None = None
    dashboard: bool | None = None
    """None: where it can be shown and neither fewer nor more words were asked for."""
    no_ask: bool = False


class Faces:
    """All sides of a session that people and programs see. `close` once nothing more comes."""

    def __init__(
        self, sink: Sink, people: PlainSink | DashboardSink, prompt: Prompt, show: tuple[Show, Terminal] | None = None
    ) -> None:
        self.sink = sink
        """Gets every event."""
        self.people = people
        """The part of it that talks to people."""
        self.prompt = prompt
        self._show = show

    def open(self, interrupt: Interrupt) -> None:
        """Take the screen, if there is to be a dashboard; what other libraries print must be over by now."""
        if self._show:
            show, terminal = self._show
            interrupt.on_leaving(terminal.leave)
            show.open()

    def close(self) -> None:
        """Give the screen back, then write what was kept for after it."""
        try:
            if self._show:
                self._show[0].close()
        finally:
            self.sink.close()

    def attach(self, engine: Engine) -> None:
        """The dashboard looks at the engine's cells from now on."""
        if not isinstance(self.people, PlainSink):
            self.people.look = engine.cell_letters


def open_faces(state: Globals, wishes: Wishes, source: str, interrupt: Interrupt) -> Faces:
    """The faces that the flags and the terminal allow. Raises UsageError for a transcript that can't be written."""
    from omnitide_cli.display.terminal import can_show, in_foreground

    status = StatusLine(sys.stderr, enabled=not state.quiet)
    detail = "quiet" if state.quiet else "verbose" if state.verbose else "normal"
    plain = PlainSink(None if wishes.json_lines else sys.stdout, sys.stderr, status, detail=detail)
    transcript: list[Sink] = [open_transcript(wishes.transcript)] if wishes.transcript else []
    if wishes.json_lines:
        return Faces(Tee([NdjsonSink(sys.stdout), plain, *transcript]), plain, Silence())
    wanted = detail == "normal" if wishes.dashboard is None else wishes.dashboard
    if wanted and can_show(sys.stdin, sys.stdout):
        return _dashboard(plain, transcript, source, interrupt, has_prompt=not wishes.no_ask)
    sits_there = sys.stdin.isatty() and sys.stdout.isatty() and in_foreground(sys.stdin)
    prompt = TypedLines(interrupt) if sits_there and not wishes.no_ask else Silence()
    return Faces(Tee([plain, *transcript]), plain, prompt)


def _dashboard(
    plain: PlainSink, transcript: list[Sink], source: str, interrupt: Interrupt, *, has_prompt: bool
) -> Faces:
    from omnitide_cli.display.dashboard.show import Show
    from omnitide_cli.display.dashboard.sink import DashboardSink
    from omnitide_cli.display.scrollback import Scrollback
    from omnitide_cli.display.terminal import Terminal

    sink = DashboardSink(source)
    terminal = Terminal(sys.stdin, sys.stdout)
    lines = QueuedLines(interrupt)
    typed: Callable[[str | None], None] | None = lines.put if has_prompt else None
    show = Show(terminal, lambda: sink.state, typed)
    prompt = lines if has_prompt else Silence()
    return Faces(Tee([sink, Scrollback(plain), *transcript]), sink, prompt, (show, terminal))

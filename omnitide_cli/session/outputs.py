"""What a session shows and where it hears from: a dashboard, plain text or NDJSON, and a prompt where a person sits."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnitide_cli.formats.ndjson import NdjsonSink
from omnitide_cli.formats.sink import Sink, Tee
from omnitide_cli.formats.status import StatusLine
from omnitide_cli.formats.transcript import open_transcript
from omnitide_cli.session.prompt import Prompt, QueuedLines, Silence, TypedLines
from omnitide_cli.terminal.plain import PlainSink

if TYPE_CHECKING:
    from omnitide_cli.runtime.engine import Engine
    from omnitide_cli.session.global_options import GlobalOptions
    from omnitide_cli.session.interrupt import Interrupt
    from omnitide_cli.terminal.dashboard.renderer import Renderer
    from omnitide_cli.terminal.dashboard.sink import DashboardSink
    from omnitide_cli.terminal.tty import Terminal


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What the flags say about the output."""

    json_lines: bool = False
    transcript: Path | None = None
    dashboard: bool | None = None
    """None: where it can be shown and neither fewer nor more words were asked for."""
    no_ask: bool = False


class Outputs:
    """All sides of a session that people and programs see. `close` once nothing more comes."""

    def __init__(
        self,
        sink: Sink,
        console: PlainSink | DashboardSink,
        prompt: Prompt,
        screen: tuple[Renderer, Terminal] | None = None,
    ) -> None:
        self.sink = sink
        """Gets every event."""
        self.console = console
        """The part of it that a person reads."""
        self.prompt = prompt
        self._screen = screen

    def open(self, interrupt: Interrupt) -> None:
        """Take the screen, if there is to be a dashboard; what other libraries print must be over by now."""
        if self._screen:
            renderer, terminal = self._screen
            interrupt.on_leaving(terminal.leave)
            renderer.open()

    def close(self) -> None:
        """Give the screen back, then write what was kept for after it."""
        try:
            if self._screen:
                self._screen[0].close()
        finally:
            self.sink.close()

    def attach(self, engine: Engine) -> None:
        """The dashboard looks at the engine's cells from now on."""
        if not isinstance(self.console, PlainSink):
            self.console.look = engine.cell_letters


def open_outputs(state: GlobalOptions, wanted: OutputOptions, source: str, interrupt: Interrupt) -> Outputs:
    """The outputs that the flags and the terminal allow. Raises UsageError for a transcript that can't be written."""
    from omnitide_cli.terminal.tty import can_show, in_foreground

    status = StatusLine(sys.stderr, enabled=not state.quiet)
    detail = "quiet" if state.quiet else "verbose" if state.verbose else "normal"
    plain = PlainSink(None if wanted.json_lines else sys.stdout, sys.stderr, status, detail=detail)
    transcript: list[Sink] = [open_transcript(wanted.transcript)] if wanted.transcript else []
    if wanted.json_lines:
        return Outputs(Tee([NdjsonSink(sys.stdout), plain, *transcript]), plain, Silence())
    with_dashboard = detail == "normal" if wanted.dashboard is None else wanted.dashboard
    if with_dashboard and can_show(sys.stdin, sys.stdout):
        return _dashboard(plain, transcript, source, interrupt, has_prompt=not wanted.no_ask)
    sits_there = sys.stdin.isatty() and sys.stdout.isatty() and in_foreground(sys.stdin)
    prompt = TypedLines(interrupt) if sits_there and not wanted.no_ask else Silence()
    return Outputs(Tee([plain, *transcript]), plain, prompt)


def _dashboard(
    plain: PlainSink, transcript: list[Sink], source: str, interrupt: Interrupt, *, has_prompt: bool
) -> Outputs:
    from omnitide_cli.terminal.dashboard.renderer import Renderer
    from omnitide_cli.terminal.dashboard.sink import DashboardSink
    from omnitide_cli.terminal.scrollback import Scrollback
    from omnitide_cli.terminal.tty import Terminal

    sink = DashboardSink(source)
    terminal = Terminal(sys.stdin, sys.stdout)
    lines = QueuedLines(interrupt)
    typed: Callable[[str | None], None] | None = lines.put if has_prompt else None
    renderer = Renderer(terminal, lambda: sink.state, typed)
    prompt = lines if has_prompt else Silence()
    return Outputs(Tee([sink, Scrollback(plain), *transcript]), sink, prompt, (renderer, terminal))

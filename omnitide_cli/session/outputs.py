"""What a session shows and where it hears from: a dashboard, plain text or NDJSON, and a prompt where a person sits."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

from omnitide_cli.formats.ndjson import NdjsonSink
from omnitide_cli.formats.patient import PatientStream
from omnitide_cli.formats.sink import Sink, Tee
from omnitide_cli.formats.status import StatusLine
from omnitide_cli.formats.transcript import Existing, TranscriptSink, open_transcripts
from omnitide_cli.runtime.events import Event, Unwritten
from omnitide_cli.session.typed_lines import Prompt, QueuedLines, Silence, TypedLines
from omnitide_cli.terminal.plain import PlainSink
from omnitide_cli.terminal.slash import help_line

if TYPE_CHECKING:
    from omnitide_cli.runtime.engine import Engine
    from omnitide_cli.session.global_options import GlobalOptions
    from omnitide_cli.session.interrupt import Interrupt
    from omnitide_cli.terminal.dashboard.renderer import Renderer
    from omnitide_cli.terminal.dashboard.sink import DashboardSink
    from omnitide_cli.terminal.scrollback import Scrollback
    from omnitide_cli.terminal.tty import Terminal

PRINT_LIMIT_S = 0.5


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What the flags say about the output."""

    json_lines: bool = False
    transcript: Sequence[Path] = ()
    overwrite: bool = False
    """Transcripts that are there already are replaced."""
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
        transcripts: Sequence[TranscriptSink] = (),
        streams: Sequence[PatientStream] = (),
        is_quiet: bool = False,
        plain: PlainSink | None = None,
    ) -> None:
        """`plain`: what writes to the terminal once the screen is given back."""
        # An answer is in the transcripts before it is shown: whatever ends the process, what was shown is there.
        self.sink: Sink = Tee([*transcripts, sink])
        """Gets every event."""
        self._shown = sink
        self._transcripts = transcripts
        self._streams = streams
        self._is_quiet = is_quiet
        self._has_begun = False
        self.console = console
        """The part of it that a person reads."""
        self.prompt = prompt
        self._screen = screen
        self._plain = plain

    def help(self) -> None:
        """What can be typed, and the dashboard's keys where there is one."""
        self.console.say(help_line(keys=self._screen is not None))

    def expect(self, units_total: int | None, ratio: float | None, *, is_live: bool) -> None:
        """What is known of the source before its first unit."""
        for each in (self.console, self._plain):
            if each is not None:
                each.expect(units_total, ratio, is_live=is_live)

    def open(self, interrupt: Interrupt) -> None:
        """Take the screen, if there is to be a dashboard; what other libraries print must be over by now."""
        if self._screen:
            self._screen[0].open()
        self._has_begun = True

    def unwritten(self) -> tuple[Unwritten, ...]:
        """What could not be written until now."""
        files = [sink.unwritten for sink in self._transcripts]
        streams = [
            Unwritten("standard output", stream.waiting_lines, stream.reason)
            for stream in self._streams
            if stream.waiting_lines
        ]
        return (*(each for each in files if each), *streams)

    def waiting(self, text: str) -> None:
        """What is waited for before anything can be shown."""
        if self._has_begun:
            self.console.say(text)
        elif not self._is_quiet:
            _write_at_once(text)

    def ending(self, saves: bool) -> None:
        """The first signal has come; from any thread."""
        what = "ending, and saving the session" if saves else "ending"
        again = "; Ctrl-C again leaves at once" + (", without saving it" if saves else "")
        if self._screen:
            self.console.say(what + again)
        elif not self._is_quiet:
            _write_at_once(f"{what}{again}")

    def leave(self) -> None:
        """The process is left at once: give the terminal back, and keep what was said. From any thread."""
        if self._screen:
            self._screen[1].leave()
        for sink in self._transcripts:
            sink.rescue()
        if not self._has_begun:
            return
        if self._screen:  # a terminal that takes nothing must not hold this up
            printing = threading.Thread(target=self._print_talk, daemon=True)
            printing.start()
            printing.join(PRINT_LIMIT_S)
        if not self._is_quiet:
            _write_at_once("left at once: what came after the last checkpoint is not saved")

    def _print_talk(self) -> None:
        with suppress(Exception):
            self._shown.close()

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


def open_outputs(
    state: GlobalOptions, wanted: OutputOptions, source: str, interrupt: Interrupt, *, resumed: bool = False
) -> Outputs:
    """The outputs that the flags and the terminal allow. Raises UsageError for a transcript that can't be written."""
    from omnitide_cli.terminal.tty import can_show, in_foreground

    out, err = _patient(sys.stdout), _patient(sys.stderr, strict=False)
    status = StatusLine(err, enabled=not state.quiet)
    detail = "quiet" if state.quiet else "verbose" if state.verbose else "normal"
    plain = PlainSink(None if wanted.json_lines else out, err, status, detail=detail)
    shown: list[Sink] = [NdjsonSink(out), plain] if wanted.json_lines else [plain]
    screen = None
    console: PlainSink | DashboardSink = plain
    prompt: Prompt = Silence()
    with_dashboard = detail == "normal" if wanted.dashboard is None else wanted.dashboard
    if not wanted.json_lines and with_dashboard and can_show(sys.stdin, sys.stdout):
        console, scrollback, prompt, screen = _dashboard(plain, source, interrupt, has_prompt=not wanted.no_ask)
        shown = [console, scrollback]
    elif not (wanted.json_lines or wanted.no_ask):
        sits_there = sys.stdin.isatty() and sys.stdout.isatty() and in_foreground(sys.stdin)
        prompt = TypedLines(interrupt) if sits_there else prompt
    streams = [each for each in (out,) if isinstance(each, PatientStream)]
    if streams:
        shown.append(_FullDisk(streams[0], plain))
    sink = Tee(shown)
    existing = Existing(goes_on=resumed, replaces=wanted.overwrite)
    transcripts = open_transcripts(wanted.transcript, existing, sink.emit)
    outputs = Outputs(sink, console, prompt, screen, transcripts, streams, state.quiet, plain)
    interrupt.on_leaving(outputs.leave)
    return outputs


def _dashboard(
    plain: PlainSink, source: str, interrupt: Interrupt, *, has_prompt: bool
) -> tuple[DashboardSink, Scrollback, Prompt, tuple[Renderer, Terminal]]:
    from omnitide_cli.terminal.dashboard.renderer import Renderer
    from omnitide_cli.terminal.dashboard.sink import DashboardSink
    from omnitide_cli.terminal.scrollback import Scrollback
    from omnitide_cli.terminal.tty import Terminal

    sink = DashboardSink(source)
    terminal = Terminal(sys.stdin, sys.stdout)
    lines = QueuedLines(interrupt)
    typed: Callable[[str | None], None] | None = lines.put if has_prompt else None
    renderer = Renderer(terminal, lambda: sink.state, typed)
    plain.rings = False  # the dashboard has
    return sink, Scrollback(plain), lines if has_prompt else Silence(), (renderer, terminal)


class _FullDisk(Sink):
    """Says once that standard output goes to a disk that is full."""

    def __init__(self, stream: PatientStream, plain: PlainSink) -> None:
        self._stream = stream
        self._plain = plain
        self._has_told = False

    def emit(self, event: Event) -> None:
        self._stream.flush()
        if self._stream.reason and not self._has_told:
            self._has_told = True
            message = f"standard output can't be written: {self._stream.reason}; the session goes on"
            self._plain.notice(message, "make room: it is tried again with every event")


def _patient(stream: TextIO, *, strict: bool = True) -> TextIO:
    """The stream, or where it leads to a disk one that outlasts a full disk."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return stream
    is_device = stat.S_ISCHR(status.st_mode) and not stream.isatty()
    if not (stat.S_ISREG(status.st_mode) or is_device):
        return stream
    return cast("TextIO", PatientStream(stream, strict=strict))


def _write_at_once(text: str) -> None:
    """A line on standard error, past everything that may hold it up."""
    with suppress(OSError):
        os.write(2, ("\r\n" * os.isatty(2) + f"{text}\n").encode())

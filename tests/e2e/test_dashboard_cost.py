"""What the dashboard costs the stream, and how soon it shows something.

`pytest -m long -s tests/e2e/test_dashboard_cost.py` tells the figures.

Measured on a terminal of 200 by 60 that takes everything at once, with the shipped model, as fast as it goes: 80 units
a second, where a live stream has one. Figures count on a quiet machine alone.
"""

from __future__ import annotations

import fcntl
import os
import pty
import statistics
import struct
import termios
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.formats.sink import Sink
from omnitide_cli.media import open_source
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Event, Summary
from omnitide_cli.runtime.options import ModelFiles
from omnitide_cli.session.configuration import engine_options, frame_fit
from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.session.loop import SessionLoop
from omnitide_cli.session.schedule import Repeated, Schedule
from omnitide_cli.terminal.dashboard.renderer import Renderer
from omnitide_cli.terminal.dashboard.sink import DashboardSink
from omnitide_cli.terminal.tty import Terminal

UNITS_OF_CLIP = 44
LOOPS = 3
ROUNDS = 3
MOST_SHARE = 0.02
MOST_FIRST_S = 1.0


class Watched(Sink):
    """Passes everything on to the dashboard and sums up what that takes; without one, nothing."""

    def __init__(self, sink: DashboardSink | None) -> None:
        self._sink = sink
        self.seconds = 0.0
        self.cpu_s = 0.0
        self.loop_s = 0.0

    def watching(self, unit: Any) -> None:
        self._timed("watching", unit)

    def asking(self, question: str, at: float) -> None:
        self._timed("asking", question, at)

    def emit(self, event: Event) -> None:
        self._timed("emit", event)
        if isinstance(event, Summary):
            self.loop_s = event.stream_loop_s

    def _timed(self, name: str, *arguments: Any) -> None:
        if self._sink is not None:
            began, cpu = time.perf_counter(), time.thread_time()
            getattr(self._sink, name)(*arguments)
            self.seconds += time.perf_counter() - began
            self.cpu_s += time.thread_time() - cpu


@contextmanager
def shown(sink: DashboardSink) -> Iterator[list[tuple[float, bytes]]]:
    """The dashboard on a pseudo-terminal that is read to its end; what was written, and when."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    written: list[tuple[float, bytes]] = []

    def read() -> None:
        while data := os.read(master, 1 << 16):
            written.append((time.perf_counter(), data))
            if b"\x1b[?1049l" in data:
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with open(slave, "r+b", buffering=0) as end:  # noqa: PTH123
        show = Renderer(Terminal(end, end), lambda: sink.state, None)  # type: ignore[arg-type]
        show.open()
        try:
            yield written
        finally:
            show.close()
            reader.join(5)
    os.close(master)


@pytest.fixture
def run(manifest: Manifest, demo_files: ModelFiles, example: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Feeds the example LOOPS times with a question every 10 s; the sink, when the model was loaded, what was shown."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")

    def call(*, with_dashboard: bool) -> tuple[Watched, float, list[tuple[float, bytes]]]:
        dashboard = DashboardSink(example.name)
        sink = Watched(dashboard if with_dashboard else None)
        media = open_source(str(example), fit=frame_fit(manifest, None), loops=LOOPS)
        engine = Engine.open(demo_files, manifest.prompt, engine_options(manifest, {}))
        loaded = time.perf_counter()
        with Interrupt() as interrupt, media, engine:
            session = SessionLoop(engine, media, sink, interrupt)
            schedule = Schedule([], [Repeated(10.0, "What do you see and hear?")])
            if not with_dashboard:
                session.run("clip", schedule)
                return sink, loaded, []
            dashboard.look = engine.cell_letters
            with shown(dashboard) as written:
                session.run("clip", schedule)
        return sink, loaded, written

    return call


@pytest.mark.long
def test_the_dashboard_takes_little_of_the_stream(run: Any) -> None:
    without, beside, shares, firsts = [], [], [], []
    sink, written = Watched(None), []
    for _ in range(ROUNDS):
        without.append(run(with_dashboard=False)[0].loop_s)
        sink, loaded, written = run(with_dashboard=True)
        beside.append(sink.loop_s)
        shares.append(sink.seconds / sink.loop_s)
        firsts.append(next(at for at, data in written if b"0:0" in data) - loaded)
    ratio = statistics.median(beside) / statistics.median(without)
    cpu = sink.cpu_s / (UNITS_OF_CLIP * LOOPS) * 1e6
    print(f"\nsink: {max(shares):.2%} of the stream loop, {cpu:.0f} us of CPU a unit")
    print(f"stream loop with the dashboard against without: {ratio:.3f}")
    print(f"first unit shown after {max(firsts):.2f} s; {sum(len(data) for _, data in written) / 1e6:.1f} MB written")
    assert max(shares) < MOST_SHARE
    assert max(firsts) < MOST_FIRST_S

"""`inspect-kv --watch`: a session's cache, again and again, until it ends."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

from omnitide_cli.catalog.folders import runtime_dir
from omnitide_cli.errors import SessionFileError

if TYPE_CHECKING:
    from omnitide_cli.runtime.kv_state import SessionSnapshot

REFRESH_S = 0.5


def watch_session(snapshot: SessionSnapshot, *, history: bool, json_lines: bool) -> SessionSnapshot:
    """Show it whenever it has changed, and return the last; a terminal gets its own screen back at the end."""
    last = snapshot
    if json_lines:
        for last in _changes(snapshot):
            print(json.dumps(last.to_json()), flush=True)
        return last
    from omnitide_cli.formats.status import is_capable
    from omnitide_cli.inspect.kv_view import show

    if not is_capable(sys.stdout):
        for fresh in _changes(snapshot):
            if fresh is not snapshot:  # the last one is for the caller to show
                show(last, sys.stdout, history=history)
                print(flush=True)
            last = fresh
        return last
    return _on_screen(snapshot, history=history)


def _on_screen(snapshot: SessionSnapshot, *, history: bool) -> SessionSnapshot:
    from rich.live import Live

    from omnitide_cli.inspect.kv_view import canvas, console, view

    last = snapshot
    with _terminable(), Live(console=console(sys.stdout, canvas(sys.stdout)), screen=True, auto_refresh=False) as live:
        for last in _changes(snapshot, ages=True):
            room = canvas(sys.stdout)
            live.console.width = room.width
            live.update(view(last, replace(room, height=live.console.height), history=history), refresh=True)
    return last


def _changes(snapshot: SessionSnapshot, *, ages: bool = False) -> Iterator[SessionSnapshot]:
    """The session as often as it has changed (with `ages`, as often as its age has) until it runs no more."""
    from omnitide_cli.runtime.published import is_locked, read_session

    path = runtime_dir() / f"{snapshot.state.session}.json"
    yield snapshot
    while snapshot.state.running:
        time.sleep(REFRESH_S)
        try:
            fresh = read_session(path)
        except SessionFileError:  # somebody has removed it: what is known stays as long as the session lives
            if not is_locked(path.with_suffix(".lock")):
                return
            continue
        if ages or fresh != snapshot:
            yield fresh
        snapshot = fresh


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the wait like Ctrl-C, so that the screen is given back."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

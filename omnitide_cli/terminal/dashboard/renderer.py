"""The thread that shows a state on a terminal and takes what is typed; it never makes the session wait."""

from __future__ import annotations

import io
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rich.color import ColorSystem
from rich.console import Console

from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.terminal.dashboard.cache_page import CachePage
from omnitide_cli.terminal.dashboard.screen import Screen, View, prompt_line
from omnitide_cli.terminal.dashboard.scroll import Scroll
from omnitide_cli.terminal.dashboard.state import State
from omnitide_cli.terminal.keys import Key, KeyReader
from omnitide_cli.terminal.line import Line
from omnitide_cli.terminal.painter import Painter
from omnitide_cli.terminal.slash import completed
from omnitide_cli.terminal.tty import Terminal

TICK_S = 0.04
FRAME_S = 0.1
LEAST_REST = 19.0  # times what the last frame took: drawing takes at most a twentieth of one core
SCROLLS: dict[str, Callable[[Scroll], None]] = {
    "page-up": lambda scroll: scroll.by_page(-1),
    "page-down": lambda scroll: scroll.by_page(1),
    "up": lambda scroll: scroll.by(-1),
    "down": lambda scroll: scroll.by(1),
}
"""Keys that scroll what is laid over the dashboard."""
SWITCH_S = 0.0005  # how long the session waits for the interpreter while a frame is being drawn
COLOURS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}


class Renderer:
    """Draws `state()` until closed; `typed` gets every line that is entered, and None once no more can come."""

    def __init__(
        self, terminal: Terminal, state: Callable[[], State], typed: Callable[[str | None], None] | None
    ) -> None:
        """Without `typed` there is no prompt."""
        self._terminal = terminal
        self._state = state
        self._typed = typed
        self._console = Console(file=io.StringIO(), force_terminal=True, legacy_windows=False)
        system = None if self._console.no_color else self._console.color_system
        self._colours = COLOURS.get(system or "")
        self._painter = Painter(self._colours)
        self._keys = KeyReader()
        self._line = Line()
        self._talk = Scroll()
        self._page = Scroll()
        self._closed_kv: SessionSnapshot | None = None
        self._has_input = True
        self._rung = 0
        """Alerts that the bell was rung for."""
        self._shown: State | None = None
        self._size = (0, 0)
        self._next = 0.0
        self._closing = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="dashboard", daemon=True)
        self._stopped_before: Any = None
        self._switch_before = sys.getswitchinterval()

    def open(self) -> None:
        """Take the screen. From the main thread."""
        self._terminal.enter()
        sys.setswitchinterval(SWITCH_S)
        self._stopped_before = signal.getsignal(signal.SIGTSTP)
        if self._stopped_before is signal.SIG_DFL:
            signal.signal(signal.SIGTSTP, self._pause)
        self._thread.start()

    def close(self) -> None:
        """Give the screen back; harmless when it was never taken. Raises what made the drawing fail."""
        if self._thread.ident is None or self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        self._terminal.leave()
        sys.setswitchinterval(self._switch_before)
        signal.signal(signal.SIGTSTP, self._stopped_before)
        if self._error:
            raise self._error

    def _pause(self, number: int, frame: object) -> None:
        """Ctrl-Z: the shell gets its terminal as it was, and we take it again when we go on."""
        self._terminal.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.enter()
        self._painter.forget()
        self._shown = None

    def _run(self) -> None:
        try:
            while not self._closing.is_set():
                self._step()
        except OSError:  # hung up: the session ends by the signal that comes with it
            self._hang_up()
        except BaseException as error:  # a fault of ours: the session ends as by Ctrl-C, and `close` tells it
            self._terminal.leave()
            self._error = error
            os.kill(os.getpid(), signal.SIGINT)

    def _hang_up(self) -> None:
        if self._typed:
            self._typed(None)

    def _step(self) -> None:
        is_touched = self._read()
        size = self._terminal.size()
        state = self._state()
        if size != self._size:
            self._painter.forget()
            is_touched = True
        now = time.monotonic()
        if is_touched or (state is not self._shown and now >= self._next):
            self._size, self._shown = size, state
            bell = "\a" if state.alerts > self._rung else ""
            self._rung = state.alerts
            self._terminal.write(self._frame(state, size) + bell)
            ended = time.monotonic()
            self._next = ended + max(FRAME_S, LEAST_REST * (ended - now))

    def _frame(self, state: State, size: tuple[int, int]) -> str:
        width, height = size
        overlay = state.kv if state.kv is not self._closed_kv else None
        view = View(
            width=width,
            height=height,
            line=self._line,
            has_prompt=self._typed is not None,
            colours=self._colours is not None,
            pictures=self._colours in (ColorSystem.EIGHT_BIT, ColorSystem.TRUECOLOR),
            scroll=self._talk,
            overlay=CachePage(overlay, self._page) if overlay else None,
        )
        options = self._console.options.update(width=width, height=height)
        rows = self._console.render_lines(Screen(state, view), options, pad=True)[:height]
        cursor = (min(prompt_line(view, state)[1], width - 1), height - 1) if view.has_prompt else None
        return self._painter.paint(rows, cursor)

    def _read(self) -> bool:
        """Take the keys that have come; whether there were any."""
        if not self._has_input:
            self._closing.wait(TICK_S)
            return False
        if not select.select([self._terminal.stdin], [], [], TICK_S)[0]:
            keys = self._keys.flush()
        else:
            data = os.read(self._terminal.stdin, 4096)
            if not data:
                self._has_input = False
                self._hang_up()
            keys = self._keys.feed(data)
        for key in keys:
            self._press(key)
        return bool(keys)

    def _press(self, key: Key) -> None:
        kv = self._state().kv
        if kv is not self._closed_kv:
            if key.name in SCROLLS:
                SCROLLS[key.name](self._page)
                return
            self._closed_kv, self._page = kv, Scroll()
            if key.name in ("enter", "escape") or key.text in ("q", " "):  # meant for the page, not as a letter
                return
        match key.name:
            case "redraw":
                self._painter.forget()
            case "page-up":
                self._talk.by_page(1)
            case "page-down":
                self._talk.by_page(-1)
            case _ if self._typed is None:
                pass
            case "text" | "paste":
                self._line = self._line.insert(key.text)
            case "tab":
                self._line = self._line.changed(completed(self._line.text))
            case "enter":
                self._enter(self._line.text.strip())
            case "end-of-input" if not self._line.text:
                self._typed("/quit")
            case "end-of-input":
                self._line = self._line.press("delete")
            case _:
                self._line = self._line.press(key.name)

    def _enter(self, text: str) -> None:
        self._line, self._talk = self._line.entered(), Scroll()
        if text and self._typed:
            self._typed(text)

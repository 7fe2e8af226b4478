"""The events of a session, folded into what the dashboard shows; nothing is drawn here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from omnitide_cli.display.dashboard.state import Cells, State, asking, fold, remark
from omnitide_cli.display.sink import SeenUnit, Sink
from omnitide_cli.runtime.events import Event, UnitIngested
from omnitide_cli.runtime.kv_state import SessionSnapshot

LOOK_S = 0.1


class DashboardSink(Sink):
    """Called from the session's thread; `state` may be read from any."""

    def __init__(self, source: str) -> None:
        self.state = State(source=source)
        self.look: Callable[[], bytes] | None = None
        """Class of every cell of the running session; called after a unit, not more often than the eye needs."""
        self._next_look = 0.0

    def expect(self, units_total: int | None, ratio: float | None = None) -> None:
        """How many units will come, and their picture's width by height, as far as that is known."""
        self.state = replace(self.state, units_total=units_total, ratio=ratio)

    def loading(self, model: str, fraction: float) -> None:
        """A model is being loaded, 0 … 1."""
        self.state = replace(self.state, model=model, loaded=fraction)

    def hint(self, text: str) -> None:
        """Something that would have been useful to know."""
        self.say(f"hint: {text}")

    def say(self, text: str) -> None:
        """A line that is no event."""
        self.state = remark(self.state, text)

    def show_kv(self, snapshot: SessionSnapshot) -> None:
        self.state = replace(self.state, kv=snapshot)

    def watching(self, unit: SeenUnit) -> None:
        self.state = replace(self.state, frame=unit.frame, sound=unit.audio)

    def asking(self, question: str, at: float) -> None:
        self.state = asking(self.state, question, at)

    def emit(self, event: Event) -> None:
        state = fold(self.state, event)
        if isinstance(event, UnitIngested) and self.look and time.monotonic() >= self._next_look:
            state = replace(state, cells=Cells(self.look(), state.session.page_size if state.session else 1))
            self._next_look = time.monotonic() + LOOK_S
        self.state = state

    def ended(self) -> None:
        self.state = replace(self.state, phase="ended", has_ended=True)

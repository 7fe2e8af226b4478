"""The events of a session on their way to the dashboard: set down by one thread, folded into a state by another."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from omnitide_cli.formats.sink import SeenUnit, Sink
from omnitide_cli.runtime.events import Event, UnitIngested
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.terminal.dashboard.state import Cells, State, asking, fold, remark

LOOK_S = 0.1

Change = Callable[[State], State]


class DashboardSink(Sink):
    """Called from the session's thread, which only notes what happened; `state` is read by one other."""

    def __init__(self, source: str) -> None:
        self.look: Callable[[], bytes] | None = None
        """Class of every cell of the running session; called after a unit, not more often than the eye needs."""
        self._state = State(source=source)
        self._changes: deque[Event | Change] = deque()
        self._seen: tuple[SeenUnit | None, bytes] = (None, b"")
        self._folded = self._seen
        self._next_look = 0.0

    @property
    def state(self) -> State:
        """What is known by now; the same object as long as nothing happens."""
        state = self._state
        while self._changes:
            change = self._changes.popleft()
            state = fold(state, change) if isinstance(change, Event) else change(state)
        if self._seen is not self._folded:
            self._folded = unit, letters = self._seen
            cells = Cells(letters, state.session.page_size if state.session else 1) if letters else None
            state = replace(state, frame=unit and unit.frame, sound=unit and unit.audio, cells=cells)
        self._state = state
        return state

    def expect(self, units_total: int | None, ratio: float | None = None, *, is_live: bool = False) -> None:
        """How many units will come and their picture's width by height, as far as that is known; and whether they come
        one a second."""
        self._changes.append(lambda state: replace(state, units_total=units_total, ratio=ratio, is_live=is_live))

    def loading(self, model: str, fraction: float) -> None:
        """A model is being loaded, 0 … 1."""
        self._changes.append(lambda state: replace(state, model=model, loaded=fraction))

    def hint(self, text: str) -> None:
        """Something that would have been useful to know."""
        self.say(f"hint: {text}")

    def say(self, text: str) -> None:
        """A line that is no event."""
        self._changes.append(lambda state: remark(state, text))

    def show_kv(self, snapshot: SessionSnapshot) -> None:
        self._changes.append(lambda state: replace(state, kv=snapshot))

    def watching(self, unit: SeenUnit) -> None:
        self._seen = (unit, self._seen[1])  # the newest alone is kept: pictures are large

    def asking(self, question: str, at: float) -> None:
        self._changes.append(lambda state: asking(state, question, at))

    def emit(self, event: Event) -> None:
        self._changes.append(event)
        if self.look and isinstance(event, UnitIngested) and time.monotonic() >= self._next_look:
            self._seen = (self._seen[0], self.look())
            self._next_look = time.monotonic() + LOOK_S

    def ended(self) -> None:
        self._changes.append(lambda state: replace(state, phase="ended", has_ended=True))

"""A stream from its first unit to the summary: what is fed, asked and reported in which order."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from omnitide_cli.catalog.folders import runtime_dir
from omnitide_cli.commands.interrupt import Interrupt
from omnitide_cli.commands.schedule import Schedule
from omnitide_cli.display.sink import Sink, Tee
from omnitide_cli.runtime.events import Event, Notice, UnitIngested
from omnitide_cli.runtime.publishing import Publisher

if TYPE_CHECKING:
    from omnitide_cli.media import MediaSource, MediaUnit
    from omnitide_cli.runtime.engine import Engine


class Session:
    """Drives one engine through one source. Every way out reports a summary, but for a reader who has left."""

    def __init__(self, engine: Engine, source: MediaSource, sink: Sink, interrupt: Interrupt) -> None:
        self._engine = engine
        self._source = source
        self._published = Publisher(runtime_dir(), engine.kv_state)
        self._sink = Tee([self._published, sink])
        self._interrupt = interrupt
        self._warnings_told = 0
        self._clock = 0.0

    def run(self, name: str, schedule: Schedule, *, realtime: bool = False, typed: Iterable[str] = ()) -> None:
        """Feed all units and ask all questions; then those that are `typed`.

        `realtime` feeds a unit no earlier than a live stream would have had it. A first signal ends the session early.
        """
        try:
            with suppress(KeyboardInterrupt):
                self._interrupt.on_request(self._engine.interrupt)
                self._sink.emit(self._engine.start(name))
                if problem := self._published.problem:
                    self._sink.emit(Notice("not-published", f"inspect-kv can't show this session: {problem}"))
                self._feed(schedule, realtime)
                self._finish(schedule, typed)
        except BrokenPipeError:
            raise
        except BaseException as error:
            self._sink.failed(error)
            with suppress(Exception):  # the engine may be what failed
                self._sink.emit(self._engine.summary())
            raise
        finally:
            self._interrupt.on_request(None)
            self._published.close()
        self._sink.emit(self._engine.summary())

    def _feed(self, schedule: Schedule, realtime: bool) -> None:
        origin: float | None = None
        for unit in self._units():
            if origin is None:
                origin = time.monotonic() - unit.start
                schedule.start_at(unit.start)
            if realtime:
                self._interrupt.sleep_until(origin + unit.end)
            if self._interrupt.requested:
                return
            for event in self._engine.ingest(unit):
                self._sink.emit(_with_lag(event, origin + unit.end) if realtime else event)
            self._published.offer()
            self._clock = unit.end
            self._ask(schedule.due(unit.end))
            if self._interrupt.requested:
                return
        self._published.offer(now=True)
        self._tell_warnings()

    def _units(self) -> Iterator[MediaUnit]:
        """The units of the source; waiting for one ends at once when a signal comes."""
        units = iter(self._source)
        while True:
            with self._interrupt.reading():
                unit = next(units, None)
            self._tell_warnings()
            if unit is None:
                return
            yield unit

    def _finish(self, schedule: Schedule, typed: Iterable[str]) -> None:
        if self._interrupt.requested:
            return
        if unreached := schedule.unreached():
            questions = "a question" if len(unreached) == 1 else f"{len(unreached)} questions"
            self._sink.emit(
                Notice(
                    code="question-not-reached",
                    message=f"the stream ended at {self._clock:g} s, before {questions} (at {unreached[0].at:g} s)",
                    hint="--ask asks after the last second",
                )
            )
        self._ask(schedule.final())
        for question in typed:
            self._ask([question])
            if self._interrupt.requested:
                return

    def _ask(self, questions: Iterable[str]) -> None:
        for question in questions:
            if self._interrupt.requested:
                return
            self._sink.asking(question, self._clock)
            for event in self._engine.ask(question, at=self._clock):
                self._sink.emit(event)
            self._published.offer()

    def _tell_warnings(self) -> None:
        for warning in self._source.warnings[self._warnings_told :]:
            self._sink.emit(Notice(code=warning.code, message=warning.message, hint=warning.hint))
            self._warnings_told += 1


def _with_lag(event: Event, due: float) -> Event:
    """A unit's event with the time by which it is behind the stream; `due` is when its last sample was there."""
    if isinstance(event, UnitIngested):
        return replace(event, lag_ms=max(0.0, time.monotonic() - due) * 1000)
    return event

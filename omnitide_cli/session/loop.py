"""A stream from its first unit to the summary: what is fed, asked and reported in which order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from omnitide_cli.addresses import redact
from omnitide_cli.catalog.folders import runtime_dir
from omnitide_cli.catalog.values import did_you_mean
from omnitide_cli.errors import OmniTideError, SessionFileError
from omnitide_cli.formats.sink import Sink
from omnitide_cli.runtime.events import AnswerDelta, Event, Notice, Summary, UnitIngested, Unwritten
from omnitide_cli.runtime.publishing import Publisher
from omnitide_cli.session.interrupt import NAP_S, Interrupt
from omnitide_cli.session.pace import Pace
from omnitide_cli.session.schedule import Schedule
from omnitide_cli.session.typed_lines import PipedLines, Prompt, Silence
from omnitide_cli.terminal.slash import unquoted
from omnitide_cli.times import clock

if TYPE_CHECKING:
    from omnitide_cli.alerts.watcher import Watcher
    from omnitide_cli.media import MediaUnit
    from omnitide_cli.media.info import SourceWarning
    from omnitide_cli.runtime.engine import Engine
    from omnitide_cli.session.checkpoint import Checkpointer
    from omnitide_cli.session.doorway import Doorway
    from omnitide_cli.session.resume import Resumption

QUIT = "/quit"
LATE_S = 1.0
"""A live stream's unit that is taken in later than this comes in a burst with others."""

Command = Callable[[str], None]
"""What a typed `/name argument` does, with its argument; called between units, on the engine's thread."""


class Stream(Protocol):
    """Where units come from.

    A source that waits for the next second yields None meanwhile, every few hundredths of a second, so that what is
    typed is answered at once.
    """

    @property
    def warnings(self) -> Sequence[SourceWarning]: ...

    def __iter__(self) -> Iterator[MediaUnit | None]: ...


class SessionLoop:
    """Drives one engine through one source. Every way out reports a summary, but for a reader who has left.

    What is typed at the `prompt` comes between units; the next typed question ends the current answer. `commands` are
    called for /name; /kv and /quit are known. What `visitors` ask waits for what is typed. The `watcher`'s rules are
    asked behind every unit, before what is due. The `checkpointer` saves the session; a `resumption` is what it
    resumes.
    """

    def __init__(
        self,
        engine: Engine,
        source: Stream,
        sink: Sink,
        interrupt: Interrupt,
        *,
        prompt: Prompt | None = None,
        commands: Mapping[str, Command] | None = None,
        checkpointer: Checkpointer | None = None,
        resumption: Resumption | None = None,
        reaches_end: Callable[[float], bool] = lambda clock: True,
        unwritten: Callable[[], tuple[Unwritten, ...]] = tuple,
        visitors: Doorway | None = None,
        watcher: Watcher | None = None,
    ) -> None:
        self._engine = engine
        self._checkpointer = checkpointer
        self._resumption = resumption
        self._source = source
        self._published = Publisher(runtime_dir(), engine.kv_state)
        if checkpointer:
            self._published.checkpoint = checkpointer.left_by_a_kill
        self._sink = sink
        self._interrupt = interrupt
        self._prompt = prompt or Silence()
        self._commands: dict[str, Command] = {"kv": self._show_kv, **(commands or {})}
        self._typed: deque[str] = deque()
        self._reaches_end = reaches_end
        self._unwritten = unwritten
        self._visitors = visitors
        self._watcher = watcher
        self._has_told_problem = False
        self._has_quit = False
        self._told_left_out = False
        self._warnings_told = 0
        self._has_seen = resumption is not None
        """Something is in the history that a question can be about."""
        self._is_begun = False
        self._clock = resumption.saved.media.clock if resumption else 0.0

    def run(self, name: str, schedule: Schedule, *, realtime: bool = False, stays: bool = False) -> None:
        """Feed all units and ask all questions; with `stays`, keep answering what is typed after the end.

        `realtime` feeds a unit no earlier than a live stream would have had it. A first signal ends the session early.
        """
        try:
            with suppress(KeyboardInterrupt):
                self._interrupt.on_request(self._engine.interrupt)
                self._start(name)
                schedule.put_back(self._ask(schedule.waiting()))
                self._feed(schedule, realtime)
                self._finish(schedule, stays)
            if self._checkpointer:
                left_early = self._interrupt.requested or (self._has_quit and self._resumption is not None)
                self._checkpointer.finish(ended=not left_early)
        except BrokenPipeError:
            with suppress(Exception):  # the reader has left; what was seen is kept all the same
                if self._checkpointer:
                    self._checkpointer.finish(ended=False)
            raise
        except BaseException as error:
            self._sink.failed(error)
            with suppress(Exception):  # the engine may be what failed
                if self._checkpointer and self._is_begun:
                    self._checkpointer.finish(ended=False, failed=True)
                elif self._checkpointer:
                    self._checkpointer.abandon()
            with suppress(Exception):
                self._emit(self._summary())
            raise
        finally:
            self._interrupt.on_request(None)
            self._published.close()
        self._emit(self._summary())

    def _summary(self) -> Summary:
        alerts = self._watcher.totals() if self._watcher else ()
        return replace(self._engine.summary(), unwritten=self._unwritten(), alerts=alerts)

    def _emit(self, event: Event) -> None:
        if isinstance(event, Notice):  # libraries may quote an address
            event = replace(event, message=redact(event.message), hint=redact(event.hint))
        self._published.emit(event)
        self._sink.emit(event)

    @property
    def _is_over(self) -> bool:
        return self._has_quit or self._interrupt.requested

    def _start(self, name: str) -> None:
        if self._resumption is None:
            step = self._engine.start(name)
        else:
            try:
                step = self._engine.start(name, self._resumption.file)
            except SessionFileError as error:
                raise self._resumption.refused(error) from error
        self._is_begun = True
        for event in step:
            self._emit(event)
        self._rest()

    def _feed(self, schedule: Schedule, realtime: bool) -> None:
        pace: Pace | None = None
        is_first = True
        try:
            for unit in self._units():
                if unit is not None:
                    if is_first:
                        is_first = False
                        pace = Pace(unit.start) if realtime else None
                        schedule.start_at(unit.start)
                    if pace:
                        self._wait_until(partial(pace.due, unit.end))
                        unit = replace(unit, complete_at=pace.due(unit.end))
                    if self._is_over:
                        return
                    self._sink.watching(unit)
                    self._ingest(unit)
                    now = time.monotonic()
                    is_late = unit.complete_at is not None and now - unit.complete_at > LATE_S
                    schedule.put_back(self._ask(schedule.due(unit.end, now, is_late=is_late)))
                    self._tell_left_out(schedule)
                self._listen()
                if self._is_over:
                    return
        finally:
            if pace:
                pace.close()
        if is_first and self._resumption is not None and not self._reaches_end(self._clock):
            message = (
                f"the session was saved at {clock(self._clock)}: nothing of what was to be watched comes after that"
            )
            self._emit(
                Notice("nothing-left", message, "--duration counts from --start, not from where the session was saved")
            )
        self._published.offer(now=True)
        self._tell_warnings()

    def _ingest(self, unit: MediaUnit) -> None:
        for event in self._engine.ingest(unit):
            self._emit(event)
            if self._checkpointer and isinstance(event, UnitIngested):
                self._checkpointer.took(unit)
        self._published.offer()
        self._clock = unit.end
        self._has_seen = True
        if self._watcher and not self._is_over:
            is_late = unit.complete_at is not None and time.monotonic() - unit.complete_at > LATE_S
            for event in self._watcher.after(unit, is_late=is_late):
                self._emit(event)

    def _units(self) -> Iterator[MediaUnit | None]:
        """The units of the source; waiting for one ends at once when a signal comes."""
        units = iter(self._source)
        while True:
            try:
                with self._interrupt.reading():
                    unit = next(units)
            except StopIteration:
                return
            finally:
                self._tell_warnings()
            yield unit

    def _wait_until(self, due: Callable[[], float]) -> None:
        """Until a second of a live stream would be over, answer what is typed."""
        while not self._is_over and (now := time.monotonic()) < (moment := due()):
            self._listen()
            self._interrupt.sleep_until(min(moment, now + NAP_S))

    def _finish(self, schedule: Schedule, stays: bool) -> None:
        if self._is_over:
            return
        if isinstance(self._prompt, PipedLines):
            self._prompt.stream_ended()
        self._has_seen = True
        if self._reaches_end(self._clock):
            self._sink.media_over(self._clock)
        if unreached := schedule.unreached():
            questions = "a question was" if len(unreached) == 1 else f"{len(unreached)} questions were"
            due = clock(unreached[0].at)
            self._emit(
                Notice(
                    code="question-not-reached",
                    message=f"the stream ended at {clock(self._clock)}, before {questions} asked ({due})",
                    hint="--ask asks at the end, whenever that is",
                )
            )
        schedule.put_back(self._ask(schedule.final()))
        self._listen()
        if not stays or self._is_over:
            return
        self._sink.ended()
        while not self._is_over and (line := self._prompt.wait()) is not None:
            self._typed.append(line.strip())
            self._listen()

    # --- what is typed

    def _listen(self) -> None:
        """Do and answer all that has been typed by now; then nothing is unfinished."""
        while not self._is_over:
            self._hear()
            line = next((line for line in self._typed if self._has_seen or line.startswith("/")), None)
            if line is None:  # what is asked before the first second waits for it
                if self._has_seen and self._visitors and (visitor := self._visitors.poll()):
                    with self._visitors.answering(visitor):
                        self._ask([visitor.question])
                    continue
                self._rest()
                return
            self._typed.remove(line)
            self._take(line)

    def _rest(self) -> None:
        if self._checkpointer:
            self._checkpointer.rest()
        if (problem := self._published.problem) and not self._has_told_problem:
            self._has_told_problem = True
            self._emit(Notice("not-published", f"inspect-kv can't show this session: {problem}"))

    def _hear(self) -> None:
        while (line := self._prompt.poll()) is not None:
            self._typed.append(line.strip())

    def _take(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        if name == QUIT:
            self._has_quit = True
        elif line.startswith("/"):
            self._command(name, unquoted(argument.strip()))
        elif line:
            self._ask([line])

    def _command(self, name: str, argument: str) -> None:
        command = self._commands.get(name.removeprefix("/"))
        if command is None:
            known = [*(f"/{known}" for known in self._commands), QUIT]
            hint = did_you_mean(name, known) or f"choose from {', '.join(known)}"
            self._emit(Notice(code="unknown-command", message=f"{name} is not a command", hint=hint))
            return
        try:
            command(argument)
        except OmniTideError as error:
            self._emit(Notice(code="command-failed", message=error.message, hint=error.hint))

    def _show_kv(self, argument: str) -> None:
        if snapshot := self._published.snapshot():
            self._sink.show_kv(snapshot)

    def _ask(self, questions: Sequence[str]) -> Sequence[str]:
        """Ask; those that are left when the session is over."""
        for number, question in enumerate(questions):
            if self._is_over:
                return questions[number:]
            self._sink.asking(question, self._clock)
            for event in self._engine.ask(question, at=self._clock):
                self._emit(event)
                if isinstance(event, AnswerDelta):
                    self._give_way()
        return ()

    def _give_way(self) -> None:
        """A question that is typed meanwhile ends the current answer, as in a talk; commands and pipes wait."""
        self._hear()
        typed = [line for line in self._typed if line == QUIT or not isinstance(self._prompt, PipedLines)]
        if any(line == QUIT or (line and not line.startswith("/")) for line in typed):
            self._engine.interrupt()

    def _tell_warnings(self) -> None:
        for warning in self._source.warnings[self._warnings_told :]:
            self._emit(Notice(code=warning.code, message=warning.message, hint=warning.hint))
            self._warnings_told += 1

    def _tell_left_out(self, schedule: Schedule) -> None:
        if schedule.left_out and not self._told_left_out:
            self._told_left_out = True
            message = "the stream is late: a repeated question is asked once instead of several times in a row"
            self._emit(Notice("questions-left-out", message, "use a smaller model or shorter answers to keep up"))

"""The loop between source, engine and prompt, with scripted ones on all sides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from scripted import ScriptedEngine

from omnitide_cli.errors import RuntimeFailure
from omnitide_cli.formats.sink import Sink
from omnitide_cli.media import MediaUnit
from omnitide_cli.media.unit import NO_SOUND
from omnitide_cli.runtime.events import Answer, Event, Notice, Summary
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.session.loop import SessionLoop
from omnitide_cli.session.schedule import Repeated, Schedule


class Lines:
    """A prompt at which lines lie ready, each once its moment has come."""

    def __init__(self) -> None:
        self.ready: list[str] = []
        self.after_the_end: list[str] = []

    def poll(self) -> str | None:
        return self.ready.pop(0) if self.ready else None

    def wait(self) -> str | None:
        return self.after_the_end.pop(0) if self.after_the_end else None


class Source:
    """Units, and None where the next second isn't over yet."""

    def __init__(self, units: int, between: Callable[[int], None] = lambda index: None) -> None:
        self.warnings: list[Any] = []
        self._units = units
        self._between = between

    def __iter__(self) -> Iterator[MediaUnit | None]:
        for index in range(self._units):
            yield MediaUnit(index, float(index), index + 1.0, None, None, NO_SOUND, NO_SOUND)
            self._between(index)
            yield None


class Record(Sink):
    """Remembers everything in its order."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def watching(self, unit: Any) -> None:
        self.calls.append(f"watching {unit.index}")

    def asking(self, question: str, at: float) -> None:
        self.calls.append(f"asking {question} at {at:g}")

    def emit(self, event: Event) -> None:
        self.calls.append(event)

    def ended(self) -> None:
        self.calls.append("ended")

    @property
    def order(self) -> list[str]:
        return [call for call in self.calls if isinstance(call, str)]

    def of(self, kind: type[Event]) -> list[Any]:
        return [call for call in self.calls if isinstance(call, kind)]


def run(source: Source, prompt: Lines, schedule: Schedule | None = None, **how: Any) -> tuple[Record, ScriptedEngine]:
    engine = ScriptedEngine(ModelFiles("tiny", None, None), None, EngineOptions())  # type: ignore[arg-type]
    record = Record()
    commands = how.pop("commands", {})
    with Interrupt() as interrupt:
        session = SessionLoop(engine, source, record, interrupt, prompt=prompt, commands=commands)  # type: ignore[arg-type]
        session.run("source", schedule or Schedule(), **how)
    assert isinstance(record.calls[-1], Summary)
    return record, engine


def test_what_is_typed_is_answered_between_units_while_the_source_waits() -> None:
    lines = Lines()
    source = Source(3, lambda index: lines.ready.extend([" a \n", "b"] if index == 1 else []))
    record, _ = run(source, lines)
    assert record.order == ["watching 0", "watching 1", "asking a at 2", "asking b at 2", "watching 2"]


def test_quit_ends_the_stream_with_a_summary() -> None:
    lines = Lines()
    record, engine = run(Source(9, lambda index: lines.ready.append("/quit") if index == 1 else None), lines)
    assert len(engine.units) == 2
    assert "ended" not in record.order


def test_the_next_question_ends_the_answer_in_hand_and_is_answered() -> None:
    lines = Lines()

    class Engine(ScriptedEngine):
        text = "one two three four"
        on_delta = staticmethod(
            lambda self, index: lines.ready.append("next?") if index == 1 and len(self.asked) == 1 else None
        )

    engine = Engine(ModelFiles("tiny", None, None), None, EngineOptions())  # type: ignore[arg-type]
    record = Record()
    with Interrupt() as interrupt:
        loop = SessionLoop(engine, Source(1), record, interrupt, prompt=lines)  # type: ignore[arg-type]
        loop.run("s", Schedule([], [Repeated(1.0, "first?")]))
    answers = record.of(Answer)
    assert [(answer.question, answer.text, answer.stop) for answer in answers] == [
        ("first?", "one two", "interrupted"),
        ("next?", "one two three four", "eos"),
    ]


def test_a_command_waits_for_the_answer_and_may_fail() -> None:
    lines, done = Lines(), []

    def fail(argument: str) -> None:
        raise RuntimeFailure(f"no room for {argument}", "make room")

    lines.ready += ["/note  a b ", "/fail x.tide", "/dance", "/"]
    record, _ = run(Source(1), lines, commands={"note": done.append, "fail": fail})
    assert done == ["a b"]
    notices = [(notice.code, notice.message) for notice in record.of(Notice)]
    assert notices == [
        ("command-failed", "no room for x.tide"),
        ("unknown-command", "/dance is not a command"),
        ("unknown-command", "/ is not a command"),
    ]


def test_the_prompt_stays_after_the_end_if_it_is_to() -> None:
    lines = Lines()
    lines.after_the_end = ["later?", "", "/quit", "never"]
    record, _ = run(Source(1), lines, stays=True)
    assert record.order == ["watching 0", "ended", "asking later? at 1"]
    lines.after_the_end = ["later?"]
    assert run(Source(1), lines)[0].order == ["watching 0"]


def test_while_a_unit_is_not_due_questions_are_answered() -> None:
    lines = Lines()
    source = Source(2, lambda index: lines.ready.append("now?") if index == 0 else None)
    began = time.monotonic()
    record, _ = run(source, lines, realtime=True)
    assert time.monotonic() - began >= 1.9
    assert record.order == ["watching 0", "asking now? at 1", "watching 1"]


def test_what_is_typed_before_the_first_second_waits_for_it_and_commands_do_not() -> None:
    lines, order = Lines(), []

    class Waiting(Source):
        def __iter__(self) -> Iterator[MediaUnit | None]:
            lines.ready += ["what?", "/note a", "and this?"]
            for _ in range(3):
                yield None
                order.append(len(done))
            yield from super().__iter__()

    done: list[str] = []
    record, _ = run(Waiting(1), lines, commands={"note": done.append})
    assert order == [1, 1, 1]
    assert record.order == ["watching 0", "asking what? at 1", "asking and this? at 1"]


def test_a_source_without_a_second_answers_at_its_end() -> None:
    lines = Lines()
    lines.ready = ["what?"]
    assert run(Source(0), lines)[0].order == ["asking what? at 0"]

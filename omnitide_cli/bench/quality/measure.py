"""TideBench: how well questions about a stream are answered under each retention policy, at equal watermarks.

Every policy sees the same streams, encoded once, and hears the same questions at the same moments. Questions are asked
in the stream, as a user asks them: the question and the model's own answer, right or wrong, stay in the history as long
as the policy keeps them, under every policy alike. Nothing is rewound, so an answer can influence later ones; what a
policy is measured by is a session as it would really have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from omnitide_cli.bench.quality.encodings import Encodings, SharedModel
from omnitide_cli.bench.quality.results import Results
from omnitide_cli.bench.quality.score import Mark
from omnitide_cli.bench.quality.task import Task
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, UnitIngested
from omnitide_cli.runtime.options import EngineOptions


def fill(
    results: Sequence[Results],
    model: SharedModel,
    tasks: Iterable[Task],
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
) -> None:
    """Hold every task under every policy; ends early, with what there is, once `stopped` says so.

    Never more than one stream's encodings are in memory.
    """
    for task in tasks:
        encodings = _encoded(task, model, results[0].options, stopped, progress)
        for each in results:
            if stopped():
                return
            _sit(each, model.engine(each.options, encodings), task, stopped, progress)
            each.loop_s += encodings.seconds


def _encoded(
    task: Task,
    model: SharedModel,
    options: EngineOptions,
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
) -> Encodings:
    def each(count: int) -> bool:
        progress(f"stream {task.name}: encoded {count} of {len(task.units)} s")
        return stopped()

    return model.encode(task.units, options, each)


def _sit(
    each: Results, engine: Engine, task: Task, stopped: Callable[[], bool], progress: Callable[[str], None]
) -> None:
    engine.start(task.name)
    for unit, due in zip(task.units, task.due, strict=True):
        for event in engine.ingest(unit):
            if isinstance(event, UnitIngested):
                each.history.append(event.history_tokens)
                each.spans.append(event.physical_span)
        for question in due:
            said = _said(engine, question.text, unit.end, stopped)
            if not stopped() and question.kind != "typed":  # which nobody doubts
                right = task.is_right(said, question.answer)
                about = (question.kind, question.sense, right, question.age)
                each.marks.append(Mark(*about, task.name, unit.end, question.text, question.answer, said))
        progress(f"stream {task.name}, {each.options.policy}: {unit.end:g} of {len(task.units)} s")
        if stopped():
            break
    each.loop_s += engine.summary().stream_loop_s


def _said(engine: Engine, question: str, at: float, stopped: Callable[[], bool]) -> str:
    """The answer; "" if the question was too long to be asked. Half an answer once `stopped` says so."""
    said = ""
    for event in engine.ask(question, at):
        if isinstance(event, Answer):
            said = event.text
        if stopped():
            engine.interrupt()
    return said

"""TideBench: how well questions about a stream are answered under each retention policy, at equal watermarks.

Every policy sees the same streams, encoded once, and hears the same questions at the same moments. Questions are asked
in the stream, as a user asks them: the question and the model's own answer, right or wrong, stay in the history as long
as the policy keeps them, under every policy alike. Nothing is rewound, so an answer can influence later ones; what a
policy is measured by is a session as it would really have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from omnitide_cli.bench.encodings import Encodings, SharedModel
from omnitide_cli.bench.exam import Exam
from omnitide_cli.bench.score import Mark
from omnitide_cli.bench.sheet import Sheet
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, UnitIngested
from omnitide_cli.runtime.options import EngineOptions


def fill(
    sheets: Sequence[Sheet],
    model: SharedModel,
    exams: Iterable[Exam],
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
) -> None:
    """Hold every exam under every policy; ends early, with what there is, once `stopped` says so.

    Never more than one stream's encodings are in memory.
    """
    for exam in exams:
        encodings = _encoded(exam, model, sheets[0].options, stopped, progress)
        for sheet in sheets:
            if stopped():
                return
            _sit(sheet, model.engine(sheet.options, encodings), exam, stopped, progress)
            sheet.loop_s += encodings.seconds


def _encoded(
    exam: Exam,
    model: SharedModel,
    options: EngineOptions,
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
) -> Encodings:
    def each(count: int) -> bool:
        progress(f"stream {exam.name}: encoded {count} of {len(exam.units)} s")
        return stopped()

    return model.encode(exam.units, options, each)


def _sit(
    sheet: Sheet, engine: Engine, exam: Exam, stopped: Callable[[], bool], progress: Callable[[str], None]
) -> None:
    engine.start(exam.name)
    for unit, due in zip(exam.units, exam.due, strict=True):
        for event in engine.ingest(unit):
            if isinstance(event, UnitIngested):
                sheet.history.append(event.history_tokens)
                sheet.spans.append(event.physical_span)
        for question in due:
            said = _said(engine, question.text, unit.end, stopped)
            if not stopped() and question.kind != "typed":  # which nobody doubts
                right = exam.is_right(said, question.answer)
                sheet.marks.append(Mark(question.kind, question.sense, right, question.age))
        progress(f"stream {exam.name}, {sheet.options.policy}: {unit.end:g} of {len(exam.units)} s")
        if stopped():
            break
    sheet.loop_s += engine.summary().stream_loop_s


def _said(engine: Engine, question: str, at: float, stopped: Callable[[], bool]) -> str:
    """The answer; "" if the question was too long to be asked. Half an answer once `stopped` says so."""
    said = ""
    for event in engine.ask(question, at):
        if isinstance(event, Answer):
            said = event.text
        if stopped():
            engine.interrupt()
    return said

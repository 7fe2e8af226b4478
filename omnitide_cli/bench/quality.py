"""TideBench: how well questions about a stream are answered under each retention policy, at equal watermarks.

Every policy sees the same streams, encoded once, and hears the same questions at the same moments. Questions are asked
in the stream, as a user asks them: the question and the model's own answer, right or wrong, stay in the history as long
as the policy keeps them, under every policy alike. Nothing is rewound, so an answer can influence later ones; what a
policy is measured by is a session as it would really have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from omnitide_cli.bench.encodings import Encodings, SharedModel
from omnitide_cli.bench.exam import Exam
from omnitide_cli.bench.score import Mark, Share
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, UnitIngested
from omnitide_cli.runtime.options import EngineOptions

SENSES = ("image", "sound", "both")


@dataclass(frozen=True, slots=True)
class QualityRow:
    """Accuracy of one policy in one kind of question ("all": in every kind), with its 95 % interval.

    history_tokens, physical_span: cells, means over all units after their maintenance. stream_loop_s: seconds that the
    policy's streams took with their questions, encoding (done once for all) included. The latter three are of all
    kinds together. The watermarks are None for `full`, which has none. senses: the same share by sense.
    """

    policy: str
    kind: str
    accuracy: float
    low: float
    high: float
    n: int
    history_tokens: int
    physical_span: int
    stream_loop_s: float
    high_watermark: int | None
    low_watermark: int | None
    senses: dict[str, Share]
    type: str = "quality"


@dataclass(slots=True)
class Sheet:
    """What came out under one policy so far."""

    options: EngineOptions
    marks: list[Mark] = field(default_factory=list)
    history: list[int] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)
    loop_s: float = 0.0

    def rows(self) -> list[QualityRow]:
        """One a kind, in the order in which they came up, then all; none while nothing is answered."""
        rows = []
        for kind in (*dict.fromkeys(mark.kind for mark in self.marks), "all"):
            marks = [mark for mark in self.marks if kind in (mark.kind, "all")]
            share = Share.of(marks)
            if share is None:
                continue
            by_sense = {sense: Share.of(mark for mark in marks if mark.sense == sense) for sense in SENSES}
            has_marks = self.options.policy != "full"
            rows.append(
                QualityRow(
                    policy=self.options.policy,
                    kind=kind,
                    accuracy=share.accuracy,
                    low=share.low,
                    high=share.high,
                    n=share.n,
                    history_tokens=round(fmean(self.history)),
                    physical_span=round(fmean(self.spans)),
                    stream_loop_s=self.loop_s,
                    high_watermark=self.options.high_watermark if has_marks else None,
                    low_watermark=self.options.low_watermark if has_marks else None,
                    senses={sense: found for sense, found in by_sense.items() if found is not None},
                )
            )
        return rows


def sheets(options: EngineOptions, policies: Sequence[str], watermarks: Sequence[tuple[int, int]]) -> list[Sheet]:
    """Empty ones, every policy at every pair (high, low) but `full`, which has no watermarks, once."""
    found = []
    for index, (high, low) in enumerate(watermarks):
        for policy in dict.fromkeys(policies):
            if policy != "full" or index == 0:
                chosen = replace(options, policy=policy, high_watermark=high, low_watermark=low)
                found.append(Sheet(chosen))
    return found


def fill(
    sheets: Sequence[Sheet],
    model: SharedModel,
    exams: Iterable[Exam],
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
) -> None:
    """Hold every exam under every policy; ends early, with what there is, once `stopped` says so."""
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
            if not stopped():
                sheet.marks.append(Mark(question.kind, question.sense, exam.is_right(said, question.answer)))
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

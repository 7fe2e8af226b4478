"""The same streams with `--change off` and `auto`, one after the other, with the same questions.

Streams keep their picture from second to second with a given chance, while the sound goes on. A second is encoded,
prefilled and maintained as in a session, so that the two loops can be compared; questions are asked as in TideBench.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

import numpy as np

from omnitide_cli.bench.common.fixture import Owner
from omnitide_cli.bench.common.intervals import mean_interval
from omnitide_cli.bench.quality.task import QUESTIONS_A_STREAM, Question, exact
from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.scene import simple_scene
from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.stream import any_stream
from omnitide_cli.media import MediaUnit
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, UnitIngested
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles, PromptTemplate
from omnitide_cli.runtime.sizing import check_low_watermark, choose_ctx
from omnitide_cli.runtime.template import TokenTemplate

WAYS = ("off", "auto")


@dataclass(slots=True)
class Sat:
    """What came of all streams of one kind in one way."""

    pictures: int = 0
    same: int = 0
    tokens: int = 0
    loop_s: float = 0.0
    history_s: list[float] = field(default_factory=list)
    marks: list[tuple[str, bool]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One way on streams that keep their picture with the chance `stay`.

    tokens: of media, those of the template included. loop_s: work of units and answers. history_s: seconds from the
    beginning of the oldest unit that has any token left to the end of the stream, the mean over streams. right: share
    of right answers by kind, `n` in all. worse: by kind, share that `off` has right less this one's, on the very same
    questions, with its 95 % interval.
    """

    stay: float
    change: str
    streams: int
    pictures: int
    same_pictures: int
    tokens: int
    loop_s: float
    history_s: float
    n: int
    right: dict[str, float]
    worse: dict[str, tuple[float, float, float]]
    type: str = "change"


class Examiner(Owner):
    """A model that stays loaded while one session after the other begins on it. Use as a context manager."""

    def __init__(self, files: ModelFiles, prompt: PromptTemplate, options: EngineOptions) -> None:
        """Loads weights and encoders. Raises ModelError, and UsageError for watermarks that the model doesn't fit."""
        super().__init__(Model(files, options))
        self._name = files.name
        try:
            self._template = TokenTemplate.of(prompt, self._model)
            check_low_watermark(options, len(self._template.system))
        except BaseException:
            self._model.close()
            raise

    def sit(
        self,
        options: EngineOptions,
        units: Sequence[MediaUnit],
        due: Sequence[Sequence[Question]],
        sat: Sat,
        stopped: Callable[[], bool],
    ) -> bool:
        """One stream; whether it came to its end."""
        session = self._begin(NativeSession, options, choose_ctx(options, self._model))
        engine = Engine(self._model, session, self._template, self._name, options)
        engine.start("stream")
        for unit, questions in zip(units, due, strict=True):
            for event in engine.ingest(unit):
                if isinstance(event, UnitIngested):
                    sat.tokens += event.tokens.total
            for question in questions:
                said = [event.text for event in engine.ask(question.text, unit.end) if isinstance(event, Answer)]
                if question.kind != "typed":
                    sat.marks.append((question.kind, bool(said) and exact(said[0], question.answer)))
            if stopped():
                return False
        summary = engine.summary()
        sat.pictures += summary.pictures
        sat.same += summary.same_pictures
        sat.loop_s += summary.stream_loop_s
        first = next((unit.start_s for unit in session.units() if unit.kind == "media" and not unit.recalled), 0.0)
        sat.history_s.append(units[-1].end - first)
        return True


def measure(
    examiner: Examiner,
    options: EngineOptions,
    split: Split,
    seeds: Sequence[int],
    units: int,
    stays: Sequence[float],
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
) -> Iterator[ChangeRow]:
    """Both ways' rows for each chance of staying; which way begins alternates from stream to stream."""
    for stay in stays:
        sat = {way: Sat() for way in WAYS}
        done = 0
        for number, seed in enumerate(seeds):
            stream = any_stream(split, seed, units, QUESTIONS_A_STREAM, draw=simple_scene, stay=stay)
            media, due = list(units_of(stream)), stream.due()
            for way in WAYS if number % 2 == 0 else WAYS[::-1]:
                progress(f"pictures stay {stay:.0%}, stream {number + 1} of {len(seeds)}, {way}")
                if not examiner.sit(replace(options, change=way), media, due, sat[way], stopped):
                    return
            done += 1
        yield from (_row(stay, way, done, sat[way], sat["off"]) for way in WAYS)


def _row(stay: float, way: str, streams: int, sat: Sat, off: Sat) -> ChangeRow:
    kinds = list(Counter(kind for kind, _ in sat.marks))
    right = {kind: fmean(ok for each, ok in sat.marks if each == kind) for kind in kinds}
    pairs = list(zip(off.marks, sat.marks, strict=True))
    worse: dict[str, Any] = {}
    for kind in kinds if way != "off" else ():
        values = [float(before[1]) - float(now[1]) for before, now in pairs if now[0] == kind]
        worse[kind] = (float(np.mean(values)), *mean_interval(values))
    return ChangeRow(
        stay=stay,
        change=way,
        streams=streams,
        pictures=sat.pictures,
        same_pictures=sat.same,
        tokens=sat.tokens,
        loop_s=sat.loop_s,
        history_s=fmean(sat.history_s),
        n=len(sat.marks),
        right=right,
        worse=worse,
    )

"""Whole sessions on a real clip, each in a process of its own: where the time goes, and what memory it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from time import perf_counter

import numpy as np

from omnitide_cli.bench.soak.measure import decoded, repeated
from omnitide_cli.errors import CacheFull
from omnitide_cli.media import FrameFit
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import KvBytes, Retention, UnitIngested
from omnitide_cli.runtime.options import EngineOptions, ModelFiles, PromptTemplate


@dataclass(frozen=True, slots=True)
class Split:
    """Milliseconds of a unit, means. attention: a part of prefill, found in a run of its own; None without one."""

    encode: float
    prefill: float
    attention: float | None
    maintain: float


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Of these milliseconds."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Percentiles | None:
        """None of nothing."""
        return cls(*(float(value) for value in np.percentile(values, [50, 95, 99]))) if values else None

    @classmethod
    def middle(cls, several: Sequence[Percentiles | None]) -> Percentiles | None:
        """Medians of each."""
        found = [each for each in several if each is not None]
        if not found:
            return None
        return cls(*(median(getattr(each, name) for each in found) for name in ("p50", "p95", "p99")))


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One policy at one pair of watermarks (None for `full`, which has none).

    per_unit_ms: whole units; per_retention_ms: upkeep after those units after which something was deleted.
    stream_loop_s: units, answers and upkeep, without loading and the system prompt (the paper's table 3). kv_bytes: at
    the end; peak_*: largest so far. stopped: why it ended before the stream did, "" if it didn't. Times are medians of
    `repeat` runs.
    """

    policy: str
    high_watermark: int | None
    low_watermark: int | None
    units: int
    media_s: float
    stream_loop_s: float
    answer_s: float
    per_unit: Split
    per_unit_ms: Percentiles | None
    per_retention_ms: Percentiles | None
    peak_rss_bytes: int
    kv_bytes: KvBytes
    peak_history_tokens: int
    peak_physical_span: int
    retentions: int
    stopped: str
    repeat: int
    type: str = "session"


@dataclass(frozen=True, slots=True)
class Job:
    """A session to run."""

    files: ModelFiles
    prompt: PromptTemplate
    options: EngineOptions
    source: str
    fit: FrameFit
    hears: bool
    units: int | None
    """None: the clip once."""
    questions: tuple[tuple[float, str], ...] = ()
    """Seconds and text: asked whenever that many seconds have passed."""
    watched: bool = False
    """Watch attention instead: an update as large as each unit, which leaves no trace. Its other times mean little."""

    @property
    def name(self) -> str:
        """Policy and watermarks."""
        marks = f" {self.options.high_watermark}/{self.options.low_watermark}" if self.options.policy != "full" else ""
        return self.options.policy + marks


@dataclass(frozen=True, slots=True)
class Run:
    """A row, and what a budget is worked out from: tokens of the system unit, tokens of all media units."""

    row: SessionRow
    system_tokens: int
    media_tokens: int
    bytes_per_cell: int


def run_session(job: Job, progress: Callable[[str], None], stopped: Callable[[], bool]) -> Run:
    """Run one in this process."""
    clip = decoded(job.source, job.fit, audio=job.hears)
    total = job.units or len(clip)
    unit_ms: list[float] = []
    ingested: list[UnitIngested] = []
    retention_ms: list[float] = []
    attention_ms: list[float] = []
    ended = ""
    with Engine.open(job.files, job.prompt, job.options) as engine:
        engine.start(job.source)
        system = engine.session.snapshot().history_tokens
        try:
            for unit in repeated(clip, total):
                if stopped():
                    ended = "interrupted"
                    break
                began = perf_counter()
                events = engine.ingest(unit)
                unit_ms.append((perf_counter() - began) * 1000)
                ingested += [event for event in events if isinstance(event, UnitIngested)]
                if any(isinstance(event, Retention) for event in events):
                    retention_ms.append(ingested[-1].maintain_ms)
                if job.watched and ingested:
                    attention_ms.append(_attention_ms(engine, ingested[-1].tokens.total))
                for seconds, question in job.questions:
                    if math.floor(unit.end / seconds) > math.floor(unit.start / seconds):
                        for _ in engine.ask(question, unit.end):
                            pass
                progress(f"{job.name}: unit {unit.index + 1} of {total}")
        except CacheFull:
            ended = "cache full"
        done = engine.summary()
        cells = engine.session.snapshot()
    row = SessionRow(
        policy=job.options.policy,
        high_watermark=job.options.high_watermark if job.options.policy != "full" else None,
        low_watermark=job.options.low_watermark if job.options.policy != "full" else None,
        units=done.units,
        media_s=done.media_s,
        stream_loop_s=done.stream_loop_s,
        answer_s=done.answer_s,
        per_unit=Split(
            encode=_mean([event.encode_ms for event in ingested]),
            prefill=_mean([event.prefill_ms for event in ingested]),
            attention=_mean(attention_ms) if job.watched else None,
            maintain=_mean([event.maintain_ms for event in ingested]),
        ),
        per_unit_ms=Percentiles.of(unit_ms),
        per_retention_ms=Percentiles.of(retention_ms),
        peak_rss_bytes=done.peak_rss_bytes,
        kv_bytes=done.kv_bytes,
        peak_history_tokens=done.peak_history_tokens,
        peak_physical_span=done.peak_physical_span,
        retentions=done.retentions,
        stopped=ended,
        repeat=1,
    )
    return Run(row, system, sum(event.tokens.total for event in ingested), cells.kv_bytes_per_cell)


def typical(runs: Sequence[Run]) -> Run:
    """Runs of one job as one: medians of times, the largest memory."""
    rows = [run.row for run in runs]
    splits = [row.per_unit for row in rows]
    row = replace(
        rows[0],
        stream_loop_s=median(row.stream_loop_s for row in rows),
        answer_s=median(row.answer_s for row in rows),
        per_unit=Split(
            encode=median(split.encode for split in splits),
            prefill=median(split.prefill for split in splits),
            attention=splits[0].attention,
            maintain=median(split.maintain for split in splits),
        ),
        per_unit_ms=Percentiles.middle([row.per_unit_ms for row in rows]),
        per_retention_ms=Percentiles.middle([row.per_retention_ms for row in rows]),
        peak_rss_bytes=max(row.peak_rss_bytes for row in rows),
        repeat=len(rows),
    )
    return replace(runs[0], row=row)


def with_attention(run: Run, watched: Run) -> Run:
    """A run with the attention that another run of the same job found."""
    split = replace(run.row.per_unit, attention=watched.row.per_unit.attention)
    return replace(run, row=replace(run.row, per_unit=split))


def _attention_ms(engine: Engine, tokens: int) -> float:
    session = engine.session
    session.begin("question")
    session.add_tokens("text", [token % engine.model.n_vocab for token in range(tokens)])
    return session.dry_run_watched()[1]


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0

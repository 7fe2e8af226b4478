"""Whether a session stays as it is: memory and time per unit at its beginning and at its end, and what upkeep costs.

One clip is decoded once and fed again and again, so that the model's work, retention and migration are all there is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from omnitide_cli.bench.soak import faults
from omnitide_cli.errors import OmniTideError
from omnitide_cli.media import FrameFit, MediaUnit, open_source
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Event, Migration, Retention, UnitIngested
from omnitide_cli.runtime.memory import resident_bytes
from omnitide_cli.runtime.options import EngineOptions, ModelFiles, PromptTemplate

HOUR = 3600  # units
LEAST_UNITS = 301
"""What a comparison needs: FIRST, and something that comes after."""

FIRST = range(200, 301)
"""Units that later ones are compared with: the cache has filled, buffers have grown."""

LAST = 100
SAMPLE = 100  # units from one look at the memory to the next
MOST_ERRORS = 10  # one after the other: this session won't recover


@dataclass(frozen=True, slots=True)
class SoakRow:
    """The row of a run.

    unit_ms: medians of whole units: the second hour's and the last hour's, in runs below three hours those of units 200
    to 300 and of the last hundred. rss: resident bytes where the first of these begins, and at the end. None: the run
    was too short. faults: how many were injected; errors: units that failed, and faults that ended otherwise than they
    must; error: the first of them.
    """

    units: int
    rss_first: int | None
    rss_last: int
    unit_ms_first: float | None
    unit_ms_last: float | None
    python_ms: float
    maintenance_share: float
    retentions: int
    peak_history_tokens: int
    largest_unit: int
    faults: int
    errors: int
    error: str
    type: str = "soak"


@dataclass(frozen=True, slots=True)
class Sample:
    """Up to `unit`: the median unit since the last sample, and what is resident now."""

    unit: int
    unit_ms: float
    rss: int


@dataclass(frozen=True, slots=True)
class Soak:
    """What came out, and how it came about."""

    row: SoakRow
    samples: list[Sample]


def soak(
    files: ModelFiles,
    prompt: PromptTemplate,
    options: EngineOptions,
    clip: list[MediaUnit],
    units: int,
    progress: Callable[[int], None],
    *,
    with_faults: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Soak:
    """Feed `units` units of a clip, again and again; fewer when `stopped` says so or nothing goes in any more."""
    with Engine.open(files, prompt, options) as engine:
        engine.start("soak")
        log = _Log(units)
        for unit in repeated(clip, units):
            if stopped() or log.errors_running >= MOST_ERRORS:
                break
            fault = faults.due(unit.index) if with_faults else None
            log.faults += fault is not None
            began = time.perf_counter()
            try:
                events = fault.inject(engine, unit) if fault else engine.ingest(unit)
            except OmniTideError as error:
                log.fail(error)
                events = []
            else:
                log.errors_running = 0
            log.add(events, (time.perf_counter() - began) * 1000)
            progress(log.done)
        return Soak(log.row(engine.summary().peak_history_tokens), log.samples)


class _Log:
    """What the units did. Its arrays are as long as the run and in memory from the start: it must not grow itself."""

    def __init__(self, units: int) -> None:
        self.unit_ms = np.full(units, np.nan)
        self.python_ms = np.full(units, np.nan)
        self.samples: list[Sample] = []
        self.done = self.retentions = self.largest = self.faults = self.errors = self.errors_running = 0
        self.error = ""
        self.busy_ms = self.upkeep_ms = 0.0

    def fail(self, error: OmniTideError) -> None:
        self.errors += 1
        self.errors_running += 1
        self.error = self.error or f"unit {self.done}: {error.message}"

    def add(self, events: Iterable[Event], elapsed_ms: float) -> None:
        ingested = [event for event in events if isinstance(event, UnitIngested)]
        upkeep = sum(event.plan_ms for event in events if isinstance(event, Retention))
        upkeep += sum(event.ms for event in events if isinstance(event, Migration))
        native = sum(event.encode_ms + event.prefill_ms for event in ingested) + upkeep
        self.unit_ms[self.done] = elapsed_ms
        self.python_ms[self.done] = elapsed_ms - native if ingested else np.nan
        self.busy_ms += elapsed_ms
        self.upkeep_ms += upkeep
        self.retentions += sum(isinstance(event, Retention) for event in events)
        self.largest = max([self.largest, *(event.tokens.total for event in ingested)])
        self.done += 1
        if self.done % SAMPLE == 0:
            recent = float(np.median(self.unit_ms[self.done - SAMPLE : self.done]))
            self.samples.append(Sample(self.done, recent, resident_bytes()))

    def row(self, peak_history: int) -> SoakRow:
        first, last = windows(self.done)
        long_enough = self.done >= LEAST_UNITS
        return SoakRow(
            units=self.done,
            rss_first=self.samples[first.start // SAMPLE - 1].rss if long_enough else None,
            rss_last=resident_bytes(),
            unit_ms_first=float(np.median(self.unit_ms[first.start : first.stop])) if long_enough else None,
            unit_ms_last=float(np.median(self.unit_ms[last.start : last.stop])) if long_enough else None,
            python_ms=float(np.nanmedian(self.python_ms)) if np.isfinite(self.python_ms).any() else 0.0,
            maintenance_share=self.upkeep_ms / self.busy_ms if self.busy_ms else 0.0,
            retentions=self.retentions,
            peak_history_tokens=peak_history,
            largest_unit=self.largest,
            faults=self.faults,
            errors=self.errors,
            error=self.error,
        )


def windows(units: int) -> tuple[range, range]:
    """Units that are compared with each other: two hours that don't overlap, where there are such."""
    if units >= 3 * HOUR:
        return range(HOUR, 2 * HOUR), range(units - HOUR, units)
    return FIRST, range(units - LAST, units)


def decoded(source: str, fit: FrameFit, *, audio: bool) -> list[MediaUnit]:
    """All units of a short clip."""
    with open_source(source, fit=fit, audio=audio) as media:
        return list(media)


def repeated(clip: list[MediaUnit], units: int) -> Iterator[MediaUnit]:
    """The clip's units over and over, index and media time going on."""
    length = clip[-1].end
    for index in range(units):
        round_, unit = index // len(clip) * length, clip[index % len(clip)]
        yield replace(unit, index=index, start=unit.start + round_, end=unit.end + round_)

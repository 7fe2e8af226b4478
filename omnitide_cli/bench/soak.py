"""Whether a session stays as it is: memory and time per unit at its beginning and at its end, and what upkeep costs.

One clip is decoded once and fed again and again, so that the model's work, retention and migration are all there is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from omnitide_cli.media import FrameFit, MediaUnit, open_source
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Migration, Retention, UnitIngested
from omnitide_cli.runtime.options import EngineOptions, ModelFiles, PromptLayout

FIRST = range(200, 301)
"""Units that later ones are compared with: the cache has filled, buffers have grown."""
LAST = 100


@dataclass(frozen=True, slots=True)
class SoakRow:
    """The row of a run. rss: resident bytes after unit 200 and after the last; unit_ms: medians of whole units."""

    units: int
    rss_first: int
    rss_last: int
    unit_ms_first: float
    unit_ms_last: float
    python_ms: float
    maintenance_share: float
    retentions: int
    peak_history_tokens: int
    largest_unit: int
    type: str = "soak"


def soak(
    files: ModelFiles,
    prompt: PromptLayout,
    options: EngineOptions,
    clip: list[MediaUnit],
    units: int,
    progress: Callable[[int], None],
) -> SoakRow:
    """Feed `units` units of a clip, again and again; at least as many as FIRST reaches."""
    with Engine.open(files, prompt, options) as engine:
        engine.start("soak")
        unit_ms: list[float] = []
        python_ms: list[float] = []
        busy_ms = upkeep_ms = 0.0
        retentions = largest = rss_first = 0
        for unit in repeated(clip, units):
            began = time.perf_counter()
            events = engine.ingest(unit)
            elapsed = (time.perf_counter() - began) * 1000
            ingested = next(event for event in events if isinstance(event, UnitIngested))
            kept = [event for event in events if isinstance(event, Retention)]
            moved = [event for event in events if isinstance(event, Migration)]
            upkeep = sum(event.plan_ms for event in kept) + sum(event.ms for event in moved)
            unit_ms.append(elapsed)
            python_ms.append(elapsed - ingested.encode_ms - ingested.prefill_ms - upkeep)
            busy_ms += elapsed
            upkeep_ms += upkeep
            retentions += len(kept)
            largest = max(largest, ingested.tokens.total)
            if unit.index == FIRST.start:
                rss_first = resident_bytes()
            progress(unit.index + 1)
        return SoakRow(
            units=units,
            rss_first=rss_first,
            rss_last=resident_bytes(),
            unit_ms_first=median(unit_ms[FIRST.start : FIRST.stop]),
            unit_ms_last=median(unit_ms[-LAST:]),
            python_ms=median(python_ms),
            maintenance_share=upkeep_ms / busy_ms,
            retentions=retentions,
            peak_history_tokens=engine.summary().peak_history_tokens,
            largest_unit=largest,
        )


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


def resident_bytes() -> int:
    """Memory of this process that is resident now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")

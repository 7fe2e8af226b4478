"""Identical retention under different layouts: what attention over them costs, and what moving cost to get there.

The pressure run of the paper's section 7 (figure 15): a stream of equal units with retention as it comes. Histories are
set up without prefilling them; each unit's update is then measured over them, layouts interleaved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from omnitide_cli.bench.stage import Stage
from omnitide_cli.runtime.history import Part
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import Stream
from omnitide_cli.runtime.sizing import QUESTION_TOKENS, whole_pages

SETTLED = 4  # retentions before anything is measured: classes have formed by then


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """Means a unit over whole cycles between retentions; attention is an update less one over an empty cache.

    shares: of what eager's attention saves over native's, how much is left after this layout's own moving (section 7).
    """

    layout: str
    useful_cells: float
    page_span: float
    physical_span: float
    peak_physical_span: int
    active_pages: float
    update_ms: float
    attention_prefill_ms: float
    attention_decode_ms: float
    migration_ms: float
    total_ms: float
    rows_moved: int
    share_prefill: float | None
    share_decode: float | None
    type: str = "layout"


@dataclass(slots=True)
class _Cycle:
    """What one pass over a layout's cycles gave, a unit each."""

    update_ms: list[float] = field(default_factory=list)
    decode_ms: list[float] = field(default_factory=list)
    migration_ms: list[float] = field(default_factory=list)
    useful: list[int] = field(default_factory=list)
    page_spans: list[int] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    rows_moved: int = 0


def compare_layouts(
    stage: Stage,
    stream: Stream,
    layouts: Sequence[str],
    cycles: int,
    repeat: int,
    progress: Callable[[int, int], None],
) -> list[LayoutRow]:
    """Run `stream` under every layout; native and eager, which the shares refer to, are always among them."""
    names = list(dict.fromkeys(["native", "eager", *layouts]))
    passes: dict[str, list[_Cycle]] = {name: [] for name in names}
    for round_ in range(repeat):
        for index, name in enumerate(names):
            passes[name].append(_run(stage, stream, name, cycles))
            progress(round_ * len(names) + index + 1, repeat * len(names))
    empty = stage.session(n_cells(stage.options, stream))
    empty_update = median(stage.update_ms(empty, stream.unit_tokens) for _ in range(5))
    empty_decode = median(stage.update_ms(empty, 1) for _ in range(5))
    update = {name: _mean_of_medians([run.update_ms for run in runs]) for name, runs in passes.items()}
    decode = {name: _mean_of_medians([run.decode_ms for run in runs]) for name, runs in passes.items()}
    moving = {name: _mean_of_medians([run.migration_ms for run in runs]) for name, runs in passes.items()}
    rows = []
    for name in names:
        run = passes[name][0]
        # Sessions that move nothing shift positions all the same: only what is above native's counts as moving.
        own = moving[name] - moving["native"]
        rows.append(
            LayoutRow(
                layout=name,
                useful_cells=fmean(run.useful),
                page_span=fmean(run.page_spans),
                physical_span=fmean(run.spans),
                peak_physical_span=max(run.spans),
                active_pages=fmean(run.pages),
                update_ms=update[name],
                attention_prefill_ms=update[name] - empty_update,
                attention_decode_ms=decode[name] - empty_decode,
                migration_ms=moving[name],
                total_ms=update[name] + moving[name],
                rows_moved=run.rows_moved,
                share_prefill=_share(update, name, own),
                share_decode=_share(decode, name, own / stream.unit_tokens),
            )
        )
    return rows


def n_cells(options: EngineOptions, stream: Stream) -> int:
    """Cells of the cache that a session would have."""
    return whole_pages(options.high_watermark + max(stream.unit_tokens, QUESTION_TOKENS) + options.max_answer_tokens)


def _run(stage: Stage, stream: Stream, layout: str, cycles: int) -> _Cycle:
    session = stage.session(n_cells(stage.options, stream), layout=layout)
    stage.add(session, "system", [Part("system", stream.system_tokens)])
    found = _Cycle()
    retentions = 0
    while retentions < SETTLED + cycles:
        measured = retentions >= SETTLED
        if measured:
            found.update_ms.append(stage.update_ms(session, stream.unit_tokens))
            found.decode_ms.append(stage.update_ms(session, 1))
        stage.add(session, "media", stream.parts())
        if measured:
            now = session.snapshot()
            found.useful.append(now.history_tokens)
            found.page_spans.append(now.layout.page_span)
            found.spans.append(now.layout.physical_span)
            found.pages.append(now.layout.active_pages)
        done = session.maintain()
        retentions += done.retained
        if measured:
            found.migration_ms.append(done.plan_ms + done.migrate_ms if done.retained else 0.0)
            found.rows_moved += done.rows_moved
    return found


def _mean_of_medians(runs: Sequence[Sequence[float]]) -> float:
    """Mean over a run's units of the medians over repeated runs: all runs meet the same layouts."""
    return fmean(median(unit) for unit in zip(*runs, strict=True))


def _share(times: dict[str, float], name: str, own: float) -> float | None:
    gain = times["native"] - times["eager"]
    if gain <= 0:
        return None
    return (times["native"] - times[name] - (own if name != "eager" else 0.0)) / gain

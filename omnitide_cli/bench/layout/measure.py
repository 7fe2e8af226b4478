"""Identical retention under different layouts: what attention over them costs, and what moving cost to get there.

The pressure run of the paper's section 7 (figure 15): a stream of equal units with retention as it comes. Histories are
set up without prefilling them; each unit's update is then measured over them, layouts interleaved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.runtime.history import Part
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import Stream
from omnitide_cli.runtime.sizing import QUESTION_TOKENS, whole_pages

SETTLED = 4  # retentions before anything is measured: classes have formed by then


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """Means over `units` units; attention is an update less one over an empty cache.

    rows_moved, rows_shifted, bytes_moved: of all retentions together; bytes are of keys and values in all layers that
    are there. migration_ms: planning and relocation.
    shares: of what eager's attention saves over native's, how much is left after this layout's own moving (section 7).
    """

    layout: str
    useful_cells: float
    page_span: float
    physical_span: float
    peak_physical_span: int
    active_pages: float
    active_subblocks: float
    update_ms: float
    decode_ms: float
    attention_prefill_ms: float
    attention_decode_ms: float
    migration_ms: float
    total_ms: float
    rows_moved: int
    rows_shifted: int
    bytes_moved: int
    share_prefill: float | None
    share_decode: float | None
    units: int
    type: str = "layout"


@dataclass(frozen=True, slots=True)
class Length:
    """How much is measured: a number of units, or whole cycles between evictions, which weigh every fill alike."""

    cycles: int | None = None
    units: int | None = None

    def is_reached(self, cycles: int, units: int) -> bool:
        """Whether that is enough."""
        return units >= self.units if self.units else cycles >= (self.cycles or 1)

    def progress(self, cycles: int, units: int) -> str:
        """What to tell a person."""
        return f"unit {units} of {self.units}" if self.units else f"cycle {cycles} of {self.cycles}"


@dataclass(slots=True)
class _Run:
    """A stream under one layout, and what was measured of it: a list entry a unit, medians of interleaved repeats."""

    session: NativeSession
    update_ms: list[float] = field(default_factory=list)
    decode_ms: list[float] = field(default_factory=list)
    migration_ms: list[float] = field(default_factory=list)
    useful: list[int] = field(default_factory=list)
    page_spans: list[int] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    subblocks: list[int] = field(default_factory=list)
    rows_moved: int = 0
    rows_shifted: int = 0
    bytes_moved: int = 0

    def take(self, fixture: Fixture, stream: Stream, *, measured: bool = False) -> bool:
        """The next unit and its upkeep; whether something was forgotten."""
        fixture.add(self.session, "media", stream.parts())
        now = self.session.snapshot()
        done = self.session.maintain()
        if measured:
            self.useful.append(now.history_tokens)
            self.page_spans.append(now.layout.page_span)
            self.spans.append(now.layout.physical_span)
            self.pages.append(now.layout.active_pages)
            self.migration_ms.append(done.plan_ms + done.migrate_ms if done.retained else 0.0)
            self.subblocks.append(now.layout.active_subblocks)
            self.rows_moved += done.rows_moved
            self.rows_shifted += done.rows_shifted
            self.bytes_moved += done.bytes
        return bool(done.retained)


def compare_layouts(
    fixture: Fixture,
    stream: Stream,
    layouts: Sequence[str],
    length: Length,
    repeat: int,
    progress: Callable[[str], None],
) -> list[LayoutRow]:
    """Run `stream` under every layout; native and eager, which the shares refer to, are always among them.

    Streams advance together, and each unit is measured under one layout after the other, `repeat` times: what slows the
    machine down for a while meets them all.
    """
    names = list(dict.fromkeys(["native", "eager", *layouts]))
    cells = n_cells(fixture.options, stream)
    runs = {name: _Run(fixture.another(cells, layout=name)) for name in names}
    empty = _Run(fixture.another(cells))
    for run in runs.values():
        fixture.add(run.session, "system", [Part("system", stream.system_tokens)])
        retentions = 0
        while retentions < SETTLED:
            retentions += run.take(fixture, stream)
        fixture.update_ms(run.session, stream.unit_tokens)  # touches what the first run of a context would pay for
    retentions = units = 0
    while not length.is_reached(retentions, units):
        _measure(fixture, stream, [*runs.values(), empty], repeat)
        retentions += max([run.take(fixture, stream, measured=True) for run in runs.values()])
        units += 1
        progress(length.progress(retentions, units))
    update = {name: fmean(run.update_ms) for name, run in runs.items()}
    decode = {name: fmean(run.decode_ms) for name, run in runs.items()}
    moving = {name: fmean(run.migration_ms) for name, run in runs.items()}
    rows = []
    for name, run in runs.items():
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
                active_subblocks=fmean(run.subblocks),
                update_ms=update[name],
                decode_ms=decode[name],
                attention_prefill_ms=update[name] - fmean(empty.update_ms),
                attention_decode_ms=decode[name] - fmean(empty.decode_ms),
                migration_ms=moving[name],
                total_ms=update[name] + moving[name],
                rows_moved=run.rows_moved,
                rows_shifted=run.rows_shifted,
                bytes_moved=run.bytes_moved,
                share_prefill=_share(update, name, own),
                share_decode=_share(decode, name, own / stream.unit_tokens),
                units=units,
            )
        )
    return rows


def _measure(fixture: Fixture, stream: Stream, runs: Sequence[_Run], repeat: int) -> None:
    updates: list[list[float]] = [[] for _ in runs]
    decodes: list[list[float]] = [[] for _ in runs]
    for _ in range(repeat):
        for run, update, decode in zip(runs, updates, decodes, strict=True):
            update.append(fixture.update_ms(run.session, stream.unit_tokens))
            decode.append(fixture.update_ms(run.session, 1))
    for run, update, decode in zip(runs, updates, decodes, strict=True):
        run.update_ms.append(median(update))
        run.decode_ms.append(median(decode))


def n_cells(options: EngineOptions, stream: Stream) -> int:
    """Cells of the cache that a session would have."""
    return whole_pages(options.high_watermark + max(stream.unit_tokens, QUESTION_TOKENS) + options.max_answer_tokens)


def _share(times: dict[str, float], name: str, own: float) -> float | None:
    gain = times["native"] - times["eager"]
    if gain <= 0:
        return None
    return (times["native"] - times[name] - (own if name != "eager" else 0.0)) / gain

"""Units of a given size through retention, placement and migration, without a model (`inspect-kv --simulate`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.events import KvBytes
from omnitide_cli.runtime.history import History, Part
from omnitide_cli.runtime.kv_state import CellClasses, KvState, Simulation, SpanState, UnitState
from omnitide_cli.runtime.options import EngineOptions, check_watermarks
from omnitide_cli.runtime.sizing import check_low_watermark, whole_pages
from omnitide_cli.runtime.view import HistoryView

CELL_LETTERS = bytes.maketrans(bytes(range(4)), b".MSR")  # OT_CELL_*

MOST_CELLS = 1 << 24


@dataclass(frozen=True, slots=True)
class Stream:
    """Units that are all alike. With `slices`, an image is a source and so many slices of `image` tokens each."""

    units: int
    image: int
    audio: int
    slices: int = 0
    system_tokens: int = 32
    boundary: int = 4

    @property
    def unit_tokens(self) -> int:
        """Tokens of one unit."""
        return sum(part.length for part in self.parts())

    def parts(self) -> list[Part]:
        """The spans of one unit: picture and sound, each between its markers."""
        image = [Part("image", self.image)] * bool(self.image)
        if self.slices and self.image:
            image = [Part("image-source", self.image), *[Part("image", self.image)] * self.slices]
        audio = [Part("audio", self.audio)] * bool(self.audio)
        of_image = self.boundary if not audio else (self.boundary + 1) // 2 if image else 0
        of_audio = self.boundary - of_image
        before, between, after = (of_image + 1) // 2, of_image // 2 + (of_audio + 1) // 2, of_audio // 2
        marked = [Part("boundary", before), *image, Part("boundary", between), *audio, Part("boundary", after)]
        return [part for part in marked if part.length]


@dataclass(slots=True)
class _Record:
    """What the states right after each maintenance were."""

    page_spans: list[int] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    active_pages: list[int] = field(default_factory=list)
    rows_moved: int = 0
    rows_shifted: int = 0
    migrations: int = 0

    def add(self, done: Any) -> None:
        self.page_spans.append(done.after.page_span)
        self.ratios.append(_ratio(done.after))
        self.active_pages.append(done.after.active_pages)
        self.rows_moved += done.rows_moved
        self.rows_shifted += done.rows_shifted
        self.migrations += done.accepted


def simulate(options: EngineOptions, stream: Stream, *, page_size: int = 64, bytes_per_cell: int = 0) -> Simulation:
    """Feed the whole stream, maintaining after each unit as a session does. Raises UsageError for what can't be.

    The cache is as large as the stream needs unless `options.ctx` says otherwise.
    """
    unit = stream.parts()
    tokens = stream.unit_tokens
    options = replace(options, unit_tokens=tokens)
    if not (stream.image or stream.audio):
        raise UsageError("the units are empty", "give --image N or --audio N")
    check_watermarks(options)
    check_low_watermark(options, stream.system_tokens)
    full = options.policy == "full"
    most = stream.system_tokens + stream.units * tokens if full else options.high_watermark + tokens
    cells = options.ctx or whole_pages(most, page_size)
    if cells > MOST_CELLS:
        raise UsageError(
            f"a cache of {cells} cells is beyond what can be simulated ({MOST_CELLS})", "simulate fewer units"
        )
    subblock_size = page_size // 2 if page_size % 2 == 0 else page_size
    record = _Record()
    peak = 0
    with History(options, cells, page_size=page_size, subblock_size=subblock_size) as history:
        if stream.system_tokens:
            history.append("system", [Part("system", stream.system_tokens)])
        for index in range(stream.units):
            history.append("media", unit, index, index + 1)
            peak = max(peak, history.snapshot().layout.physical_span)
            done = history.maintain()
            if done.retained:
                record.add(done)
        state = kv_state(
            history, "simulation", pages=(page_size, subblock_size), peak=peak, bytes_per_cell=bytes_per_cell
        )
    return Simulation(
        state=state,
        units=stream.units,
        mean_page_span=fmean(record.page_spans) if record.page_spans else None,
        mean_span_ratio=fmean(record.ratios) if record.ratios else None,
        mean_active_pages=fmean(record.active_pages) if record.active_pages else None,
        rows_moved=record.rows_moved,
        rows_shifted=record.rows_shifted,
        migrations=record.migrations,
    )


def kv_state(
    view: HistoryView,
    session: str,
    *,
    pages: tuple[int, int],
    peak: int,
    running: bool = False,
    bytes_per_cell: int = 0,
) -> KvState:
    """The state of a native history. `pages`: sizes of page and subblock; `bytes_per_cell` 0: unknown."""
    now = view.snapshot()
    layout = now.layout
    page_size, subblock_size = pages
    active_cells = layout.active_pages * page_size
    kv_bytes = KvBytes(*(bytes_per_cell * cells for cells in (now.n_cells, layout.physical_span, layout.useful_cells)))
    return KvState(
        session=session,
        running=running,
        page_size=page_size,
        subblock_size=subblock_size,
        cells=now.n_cells,
        useful_cells=layout.useful_cells,
        physical_span=layout.physical_span,
        page_span=layout.page_span,
        span_ratio=_ratio(layout),
        active_pages=layout.active_pages,
        active_subblocks=layout.active_subblocks,
        holes=layout.holes,
        largest_hole=layout.largest_hole,
        fragmentation=1 - layout.useful_cells / active_cells if active_cells else 0.0,
        classes=CellClasses(now.must_cells, now.selected_cells, now.recent_cells),
        peak_physical_span=peak,
        kv_bytes=kv_bytes if bytes_per_cell else None,
        units=tuple(
            UnitState(
                unit.id,
                unit.kind,
                unit.tokens,
                unit.partial,
                tuple(SpanState(span.role, span.length) for span in unit.spans),
            )
            for unit in view.units()
        ),
        cell_map=view.cells().tobytes().translate(CELL_LETTERS).decode("ascii"),
    )


def _ratio(layout: Any) -> float:
    return layout.page_span / layout.useful_cells if layout.useful_cells else 0.0

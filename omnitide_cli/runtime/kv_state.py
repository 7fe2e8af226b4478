"""The cache of a session at one moment, as plain values: what `inspect-kv` shows. Cheap to import."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from omnitide_cli.runtime.events import KvBytes


@dataclass(frozen=True, slots=True)
class CellClasses:
    """Cells by why they are still there."""

    must_keep: int
    selected_history: int
    recent_context: int


@dataclass(frozen=True, slots=True)
class SpanState:
    """What is left of a run of tokens of one role."""

    role: str
    tokens: int


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit of the history; `index` counts all units of the session, of whatever kind."""

    index: int
    kind: str
    tokens: int
    partial: bool
    spans: tuple[SpanState, ...]


@dataclass(frozen=True, slots=True)
class KvState:
    """Counts are cells, but for pages and subblocks."""

    session: str
    running: bool
    page_size: int
    subblock_size: int
    cells: int
    useful_cells: int
    physical_span: int
    page_span: int
    span_ratio: float
    active_pages: int
    active_subblocks: int
    holes: int
    largest_hole: int
    fragmentation: float
    classes: CellClasses
    peak_physical_span: int
    kv_bytes: KvBytes | None
    units: tuple[UnitState, ...]
    cell_map: str
    """One letter a cell: M must-keep, S selected-history, R recent-context, . empty."""

    def to_json(self) -> dict[str, Any]:
        """The object that `inspect-kv --json` prints."""
        return {name: value for name, value in asdict(self).items() if name != "cell_map"}


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulated session: its last state, and means over the states right after each maintenance (None: no such)."""

    state: KvState
    units: int
    mean_page_span: float | None
    mean_span_ratio: float | None
    mean_active_pages: float | None
    rows_moved: int
    rows_shifted: int
    migrations: int

    def to_json(self) -> dict[str, Any]:
        """The object of its state, and the means."""
        own = {name: value for name, value in asdict(self).items() if name not in ("state", "units")}
        return {**self.state.to_json(), **own}

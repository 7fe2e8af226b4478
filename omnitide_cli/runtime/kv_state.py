"""The cache of a session at one moment and what led there, as plain values: what `inspect-kv` shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from omnitide_cli.runtime.events import KvBytes, Migration, Retention, SessionStarted, UnitIngested


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
class Moment:
    """The cache after a unit and its maintenance; of a long session, the largest values of several units in a row."""

    media_s: float
    useful_cells: int
    page_span: int
    physical_span: int
    least_useful_cells: int | None = None
    """The smallest of those units; None where it was one, or in a file of before 0.2."""

    @property
    def least(self) -> int:
        """The smallest number of useful cells."""
        return self.useful_cells if self.least_useful_cells is None else self.least_useful_cells


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """What a session tells others of itself: its cache, how far it has come, and what its upkeep last did."""

    state: KvState
    about: SessionStarted
    kind: str = "session"
    """"session", "saved" or "simulated"."""
    clock: float = 0.0
    """Media seconds it has come to."""
    unit: UnitIngested | None = None
    """The newest media unit."""
    retention: Retention | None = None
    migration: Migration | None = None
    retentions: int = 0
    answers: int = 0
    moments: tuple[Moment, ...] = ()
    moment_units: int = 1
    """How many units a moment stands for."""
    pid: int = 0
    started: float = 0.0
    """Unix time, as `written`."""
    written: float = 0.0
    ended: bool = False
    """The session took leave; one that neither runs nor took leave was killed."""
    checkpoint: str = ""
    """The file from which it goes on if it is killed."""

    def to_json(self) -> dict[str, Any]:
        """The object that `inspect-kv --json` prints: the state's fields first."""
        about = self.about
        return {
            **self.state.to_json(),
            "kind": self.kind,
            "clock": self.clock,
            "model": about.model,
            "source": about.source,
            "policy": about.policy,
            "layout": about.layout,
            "positions": about.positions,
            "high_watermark": about.high_watermark,
            "low_watermark": about.low_watermark,
            "unit": self.unit and self.unit.to_json(),
            "retention": self.retention and self.retention.to_json(),
            "migration": self.migration and self.migration.to_json(),
            "retentions": self.retentions,
            "answers": self.answers,
            "history": [asdict(moment) for moment in self.moments],
            "history_units": self.moment_units,
            "pid": self.pid,
            "started": self.started,
            "written": self.written,
            "ended": self.ended,
            "checkpoint": self.checkpoint,
        }


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulated session: its last state, and means over the states right after each maintenance (None: no such)."""

    last: SessionSnapshot
    units: int
    mean_page_span: float | None
    mean_span_ratio: float | None
    mean_active_pages: float | None
    rows_moved: int
    rows_shifted: int
    migrations: int

    @property
    def state(self) -> KvState:
        """The cache after the last unit."""
        return self.last.state

    def to_json(self) -> dict[str, Any]:
        """The object of its state, and the means."""
        own = {name: value for name, value in asdict(self).items() if name not in ("last", "units")}
        return {**self.state.to_json(), **own}

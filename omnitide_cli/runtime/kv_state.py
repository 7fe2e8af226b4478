"""The cache of a session at one moment and what led there, as plain values: what `inspect-kv` shows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from omnitide_cli.runtime.events import KvBytes, Migration, Retention, SessionStarted, UnitIngested


@dataclass(frozen=True, slots=True)
class CellClasses:
    """Cells by why they are still there."""

    must_keep: int
    """Of the system prompt."""
    selected_history: int
    """Of units that have lost a token: what the policy has chosen of them."""
    recent_context: int
    """Of units that are still whole."""
    recalled: int = 0
    """Of units that were put back for a question."""


@dataclass(frozen=True, slots=True)
class SpanState:
    """What is left of a run of tokens of one role."""

    role: str
    """What the tokens are: `boundary`, `image-source`, `image`, `audio`, `text`, `response` or `system`."""
    tokens: int
    """How many are left."""


@dataclass(frozen=True, slots=True)
class UnitState:
    """A unit of the history."""

    index: int
    """Its number among all units of the session, of whatever kind."""
    kind: str
    """`system`, `media`, `question` or `response`."""
    tokens: int
    """Tokens that are left of it."""
    partial: bool
    """Whether some were deleted."""
    spans: tuple[SpanState, ...]
    """Its runs of tokens, in order."""
    recalled: bool = False
    """Put back for a question; `index` is that of the unit when it came."""


@dataclass(frozen=True, slots=True)
class KvState:
    """Counts are cells, but for pages and subblocks."""

    session: str
    """Name under which `inspect-kv` finds the session."""
    running: bool
    """Whether it runs."""
    page_size: int
    """Cells of a page."""
    subblock_size: int
    """Cells of a subblock."""
    cells: int
    """Cells of the cache."""
    useful_cells: int
    """Cells that hold a token."""
    physical_span: int
    """The highest used cell + 1, rounded as llama.cpp rounds it: the cells that attention reads."""
    page_span: int
    """The highest used cell + 1, rounded up to whole pages."""
    span_ratio: float
    """Page span by useful cells: 1 is dense; 0 where the cache is empty."""
    active_pages: int
    """Pages that hold any token."""
    active_subblocks: int
    """Subblocks that hold any token."""
    holes: int
    """Runs of empty cells before the last used one."""
    largest_hole: int
    """Cells of the longest of them."""
    fragmentation: float
    """The empty share of the active pages, 0 … 1."""
    classes: CellClasses
    """The useful cells by why they are there."""
    peak_physical_span: int
    """The largest physical span so far."""
    kv_bytes: KvBytes | None
    """Memory of the cache; null where no model is loaded."""
    units: tuple[UnitState, ...]
    """The history, the oldest first."""
    cell_map: str
    """One letter a cell: M must-keep, S selected-history, R recent-context, C recalled, . empty."""

    def to_json(self) -> dict[str, Any]:
        """The object that `inspect-kv --json` prints."""
        return {name: value for name, value in asdict(self).items() if name != "cell_map"}


@dataclass(frozen=True, slots=True)
class Moment:
    """The cache after a unit and its maintenance; of a long session, the largest values of several units in a row."""

    media_s: float
    """Media seconds."""
    useful_cells: int
    """Cells that held a token."""
    page_span: int
    """The highest used cell + 1, rounded up to whole pages."""
    physical_span: int
    """The same, rounded as llama.cpp rounds it."""
    least_useful_cells: int | None = None
    """The smallest of those units; null where it was one, and in older files."""

    @property
    def least(self) -> int:
        """The smallest number of useful cells."""
        return self.useful_cells if self.least_useful_cells is None else self.least_useful_cells


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """What a session tells others of itself: its cache, how far it has come, and what its upkeep last did."""

    state: KvState
    """The cache."""
    about: SessionStarted
    """How the session began."""
    kind: str = "session"
    """`session`, `saved` or `simulated`."""
    clock: float = 0.0
    """Media seconds it has come to."""
    unit: UnitIngested | None = None
    """The newest media unit."""
    retention: Retention | None = None
    """The newest retention."""
    migration: Migration | None = None
    """The newest migration."""
    retentions: int = 0
    """How often the history was shortened."""
    answers: int = 0
    """Answers given."""
    moments: tuple[Moment, ...] = ()
    """How the cache developed, the oldest moment first."""
    moment_units: int = 1
    """How many units a moment stands for."""
    pid: int = 0
    """Number of its process; 0: none."""
    started: float = 0.0
    """Unix time at which it began, in seconds."""
    written: float = 0.0
    """Unix time of this snapshot."""
    ended: bool = False
    """The session took leave; one that neither runs nor took leave was killed."""
    checkpoint: str = ""
    """The file from which it goes on if it is killed."""
    pictures: int = 0
    """Pictures encoded."""
    same_pictures: int = 0
    """Pictures left out because they showed the same as the last encoded one."""
    saved_tokens: int = 0
    """Tokens that those would have taken."""

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
            "pictures": self.pictures,
            "same_pictures": self.same_pictures,
            "saved_tokens": self.saved_tokens,
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

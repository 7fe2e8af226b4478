"""What a session reports while it runs.

One frozen dataclass an event. Field names are those of the NDJSON interface (schema version 1), so that writing an
event out is `to_json()` and nothing else: fields are only ever added. Times are milliseconds unless the name ends in
`_s`; spans and histories are counted in cells (= tokens).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events; `type` is the NDJSON discriminator."""

    type: ClassVar[str] = "event"

    def to_json(self) -> dict[str, Any]:
        """The NDJSON object of this event, `type` first."""
        return {"type": self.type, **asdict(self)}


@dataclass(frozen=True, slots=True)
class SessionStarted(Event):
    """The model is loaded, the system prompt is in the cache, the stream may begin."""

    type: ClassVar[str] = "session"

    version: str
    model: str
    source: str
    policy: str
    layout: str
    positions: str
    high_watermark: int
    low_watermark: int
    n_ctx: int
    page_size: int
    subblock_size: int
    cache_type: str
    threads: int
    flash_attn: bool
    resumed_at: float | None = None
    """Media seconds at which a saved session goes on."""
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one unit by modality; `total` is their sum."""

    image: int = 0
    audio: int = 0
    text: int = 0
    boundary: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class UnitIngested(Event):
    """A media unit is in the history; spans and history are taken after its maintenance."""

    type: ClassVar[str] = "unit"

    index: int
    start: float
    end: float
    tokens: TokenCounts
    history_tokens: int
    page_span: int
    physical_span: int
    encode_ms: float
    prefill_ms: float
    maintain_ms: float
    lag_ms: float = 0.0
    dropped_frames: int = 0


@dataclass(frozen=True, slots=True)
class Retention(Event):
    """OmniPick (or another policy) shortened the history."""

    type: ClassVar[str] = "retention"

    unit: int
    before_tokens: int
    after_tokens: int
    deleted_tokens: int
    full_units: int
    partial_units: int
    dropped_units: int
    plan_ms: float


@dataclass(frozen=True, slots=True)
class Migration(Event):
    """OmniPage planned, and if accepted executed, a relocation; pairs are (before, after)."""

    type: ClassVar[str] = "migration"

    unit: int
    planner: str
    accepted: bool
    reason: str
    rows_moved: int
    rows_shifted: int
    bytes: int
    active_pages: tuple[int, int]
    active_subblocks: tuple[int, int]
    page_span: tuple[int, int]
    physical_span: tuple[int, int]
    ms: float


@dataclass(frozen=True, slots=True)
class AnswerDelta(Event):
    """A piece of an answer as it is generated; whole characters only."""

    type: ClassVar[str] = "answer_delta"

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Answer(Event):
    """A finished answer. `at`: media seconds; `unit`: index of the newest media unit it could see (-1: none)."""

    type: ClassVar[str] = "answer"

    at: float
    unit: int
    question: str
    text: str
    tokens: int
    ttft_ms: float
    tokens_per_s: float
    stop: str  # "eos", "length" or "interrupted"


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something that the user should know but that stops nothing."""

    type: ClassVar[str] = "warning"

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class SessionSaved(Event):
    """The session is in a file, from which it goes on at media second `at`."""

    type: ClassVar[str] = "saved"

    path: str
    at: float


@dataclass(frozen=True, slots=True)
class KvBytes:
    """Bytes of keys and values over all layers: allocated, within the physical span, of useful cells."""

    allocated: int = 0
    span: int = 0
    useful: int = 0


@dataclass(frozen=True, slots=True)
class MigrationTotals:
    """All relocations of a session together."""

    accepted: int = 0
    rejected: int = 0
    rows: int = 0
    bytes: int = 0
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary(Event):
    """The last event of every session, also of one that was interrupted or failed."""

    type: ClassVar[str] = "summary"

    units: int
    media_s: float
    stream_loop_s: float
    answers: int
    history_tokens: int
    peak_history_tokens: int
    page_span: int
    physical_span: int
    peak_physical_span: int
    kv_bytes: KvBytes = field(default_factory=KvBytes)
    retentions: int = 0
    migrations: MigrationTotals = field(default_factory=MigrationTotals)
    dropped_frames: int = 0
    max_rotations: int = 0
    encode_s: float = 0.0
    prefill_s: float = 0.0
    maintain_s: float = 0.0
    answer_s: float = 0.0
    peak_rss_bytes: int = 0
    maintain_idle_s: float = 0.0
    """Of `maintain_s`, what ran before the next second of a live stream was over."""
    lost_sound_s: float = 0.0
    sound_skew_ms: float = 0.0
    """By how much the sound card's clock was corrected; above 0 if it is slow."""

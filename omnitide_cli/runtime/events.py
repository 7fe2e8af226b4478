"""What a session reports while it runs.

One frozen dataclass an event. Field names are those of the NDJSON interface (schema version 1), so that writing an
event out is `to_json()` and nothing else: fields are only ever added. Names ending in `_ms` are milliseconds, in `_s`
seconds; spans and histories are counted in cells (= tokens). docs/events.md is made from what stands below the fields.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from omnitide_cli.runtime.event_parts import KvBytes as KvBytes
from omnitide_cli.runtime.event_parts import MigrationTotals as MigrationTotals
from omnitide_cli.runtime.event_parts import RecalledMoment as RecalledMoment
from omnitide_cli.runtime.event_parts import RuleTotals as RuleTotals
from omnitide_cli.runtime.event_parts import TokenCounts as TokenCounts
from omnitide_cli.runtime.event_parts import Unwritten as Unwritten
from omnitide_cli.runtime.stream_clock import iso_now

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
    """The OmniTide that runs."""
    model: str
    """Name of the model."""
    source: str
    """What is watched: a path, an address, or the devices."""
    policy: str
    """Which tokens stay, as `--policy`."""
    layout: str
    """Where they lie in the cache, as `--layout`."""
    positions: str
    """`compact` or `sparse`, as `--positions`."""
    high_watermark: int
    """Tokens above which the history is shortened."""
    low_watermark: int
    """Tokens to which it is shortened."""
    n_ctx: int
    """Cells of the cache."""
    page_size: int
    """Cells of a page."""
    subblock_size: int
    """Cells of a subblock, the step in which attention is computed."""
    cache_type: str
    """How keys and values are stored: `f16` or `q8_0`."""
    threads: int
    """Threads that compute; 0 where nothing runs."""
    flash_attn: bool
    """Whether flash attention is used."""
    resumed_at: float | None = None
    """Media seconds at which a saved session goes on."""
    schema: int = SCHEMA
    """Version of these events; fields may be added without a new one."""
    wall: str | None = None
    """Time of day at which the session began: ISO 8601 with the offset from UTC."""


@dataclass(frozen=True, slots=True)
class UnitIngested(Event):
    """A media unit is in the history; spans and history are taken after its maintenance."""

    type: ClassVar[str] = "unit"

    index: int
    """Number of the unit, from 0; a resumed session counts on."""
    start: float
    """Media seconds at which it begins."""
    end: float
    """Media seconds at which it ends."""
    tokens: TokenCounts
    """What it was when it came in."""
    history_tokens: int
    """Tokens in the cache."""
    page_span: int
    """The highest used cell + 1, rounded up to whole pages."""
    physical_span: int
    """The same, rounded as llama.cpp rounds it: the cells that attention reads."""
    encode_ms: float
    """Milliseconds that picture and sound took to become embeddings."""
    prefill_ms: float
    """Milliseconds that the model took to take them in."""
    maintain_ms: float
    """Milliseconds of retention and migration."""
    lag_ms: float = 0.0
    """By how much the model is behind a live stream: milliseconds from the unit's end until it was taken in."""
    dropped_frames: int = 0
    """Pictures left out since the unit before, because the model was behind."""
    wall: str | None = None
    """Time of day at the unit's end, as the session's `wall`; null for what isn't live."""
    picture: str = "none"
    """`new`: it was encoded; `same`: it shows the same as the last encoded one and was left out (`--change`); `none`:
    there was none."""
    saved_tokens: int = 0
    """Tokens that the picture would have taken if it hadn't been left out as the same."""


@dataclass(frozen=True, slots=True)
class Scene(Event):
    """The picture was cut to another scene: it is much less like the one before it than pictures have been lately. Only
    with `--change auto`."""

    type: ClassVar[str] = "scene"

    unit: int
    """Index of the first media unit of the new scene."""
    at: float
    """Media seconds at which that unit begins."""
    similarity: float
    """How like the picture is to the one before it, 0 … 1."""
    wall: str | None = None
    """Time of day at that unit's end, as the session's `wall`; null for what isn't live."""


@dataclass(frozen=True, slots=True)
class Retention(Event):
    """OmniPick (or another policy) shortened the history."""

    type: ClassVar[str] = "retention"

    unit: int
    """Index of the newest media unit."""
    before_tokens: int
    """Tokens in the history before."""
    after_tokens: int
    """Tokens in the history after."""
    deleted_tokens: int
    """The difference."""
    full_units: int
    """Units that stayed whole."""
    partial_units: int
    """Units of which a part stayed."""
    dropped_units: int
    """Units of which nothing stayed."""
    plan_ms: float
    """Milliseconds that the decision took."""


@dataclass(frozen=True, slots=True)
class Migration(Event):
    """OmniPage planned, and if accepted executed, a relocation; pairs are (before, after)."""

    type: ClassVar[str] = "migration"

    unit: int
    """Index of the newest media unit."""
    planner: str
    """Which planner proposed it, a name of `--layout`."""
    accepted: bool
    """Whether it was carried out."""
    reason: str
    """Why not, or why so, in a word or two; may be empty."""
    rows_moved: int
    """Rows of keys and values that lie elsewhere now."""
    rows_shifted: int
    """Rows whose keys were turned to another position."""
    bytes: int
    """Bytes that were moved."""
    active_pages: tuple[int, int]
    """Pages that hold any token."""
    active_subblocks: tuple[int, int]
    """Subblocks that hold any token."""
    page_span: tuple[int, int]
    """The highest used cell + 1, rounded up to whole pages."""
    physical_span: tuple[int, int]
    """The same, rounded as llama.cpp rounds it."""
    ms: float
    """Milliseconds that it took."""


@dataclass(frozen=True, slots=True)
class AnswerDelta(Event):
    """A piece of an answer as it is generated; whole characters only."""

    type: ClassVar[str] = "answer_delta"

    at: float
    """Media seconds at which the question was asked."""
    text: str
    """What comes next."""


@dataclass(frozen=True, slots=True)
class Recalled(Event):
    """How a question was dealt with before it was asked: what came back of what had been cut from the history, or why
    nothing did."""

    type: ClassVar[str] = "recall"

    at: float
    """Media seconds at which the question was asked."""
    question: str
    """What was asked."""
    verdict: str
    """`recalled`; `nothing` (nothing is archived yet); `not-clear` (no moment stands out, as for a question about now);
    `no-room` (what stands out doesn't fit, or its rows are gone)."""
    clearness: float
    """The best unit's score over that of the one in the middle (the median); 0 where there is one alone."""
    tokens: int
    """Tokens that came back."""
    searched: int
    """Archived units that were compared."""
    oldest: float | None
    """Where the oldest of them begins, in media seconds: history reaches back so far. null: nothing is archived."""
    moments: tuple[RecalledMoment, ...]
    """What came back, in the order of time."""
    search_ms: float
    """Milliseconds of the question's queries, scores and choice."""
    insert_ms: float
    """Milliseconds of taking out what was recalled before, and of putting back what is now."""


@dataclass(frozen=True, slots=True)
class Answer(Event):
    """A finished answer."""

    type: ClassVar[str] = "answer"

    at: float
    """Media seconds at which the question was asked."""
    unit: int
    """Index of the newest media unit that the model had seen; -1: none."""
    question: str
    """What was asked."""
    text: str
    """What was answered, without spaces around it."""
    tokens: int
    """Tokens of the answer."""
    ttft_ms: float
    """Milliseconds from the question to the first token; 0 where there was none."""
    tokens_per_s: float
    """How fast the others came; 0 where there were none."""
    stop: str
    """Why it ended: `eos` (by itself), `length` (`--max-answer-tokens`) or `interrupted`."""
    recalled: tuple[RecalledMoment, ...] = ()
    """What came back for the question, in the order of time; empty where nothing did."""
    wall: str | None = None
    """Time of day at media second `at`, as the session's `wall`; null for what isn't live."""
    thought_tokens: int = 0
    """Of `tokens`, what the model thought aloud; left out of `text` unless --show-thoughts is given."""
    history_from: float | None = None
    """Where what it could be drawn from begins, in media seconds: the oldest that is archived, or still whole in the
    history; null: nothing was seen or heard."""


@dataclass(frozen=True, slots=True)
class Alert(Event):
    """What a rule of `--alert` waits for has begun."""

    type: ClassVar[str] = "alert"

    rule: str
    """Name of the rule."""
    question: str
    """Its yes-or-no question."""
    at: float
    """Media seconds at which it was certain enough."""
    since: float
    """Media seconds of the first yes in a row."""
    probability: float
    """Of yes against no, 0 … 1."""
    text: str
    """What the model says is happening; may be empty."""
    unit: int = -1
    """Index of the newest media unit that the model had seen."""
    wall: str | None = None
    """Time of day at media second `at`, as the session's `wall`; null for what isn't live."""


@dataclass(frozen=True, slots=True)
class AlertEnded(Event):
    """What a rule had reported is over."""

    type: ClassVar[str] = "alert-ended"

    rule: str
    """Name of the rule."""
    at: float
    """Media seconds of the first clear no."""
    since: float
    """Media seconds at which it had begun."""
    probability: float
    """Of yes against no, 0 … 1, now."""
    highest: float
    """The highest that it was meanwhile."""
    wall: str | None = None
    """Time of day at media second `at`, as the session's `wall`; null for what isn't live."""


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something that the user should know but that stops nothing."""

    type: ClassVar[str] = "warning"

    code: str
    """What it is about, in a word that doesn't change."""
    message: str
    """What happened, for people."""
    hint: str = ""
    """What to do about it; may be empty."""
    wall: str = field(default_factory=iso_now, compare=False)
    """Time of day at which it was told, as the session's `wall`."""


@dataclass(frozen=True, slots=True)
class SessionSaved(Event):
    """The session is in a file, from which it goes on at media second `at`."""

    type: ClassVar[str] = "saved"

    path: str
    """The file."""
    at: float
    """Media seconds."""


@dataclass(frozen=True, slots=True)
class Summary(Event):
    """The last event of every session, also of one that was interrupted or failed."""

    type: ClassVar[str] = "summary"

    units: int
    """Media units taken in."""
    media_s: float
    """Seconds of media in them."""
    stream_loop_s: float
    """Seconds of work: units, answers and upkeep, but for what waiting takes."""
    answers: int
    """Answers given."""
    history_tokens: int
    """Tokens in the cache."""
    peak_history_tokens: int
    """The most there were."""
    page_span: int
    """The highest used cell + 1, rounded up to whole pages."""
    physical_span: int
    """The same, rounded as llama.cpp rounds it."""
    peak_physical_span: int
    """The most there were."""
    kv_bytes: KvBytes = field(default_factory=KvBytes)
    """Memory of the cache."""
    retentions: int = 0
    """How often the history was shortened."""
    migrations: MigrationTotals = field(default_factory=MigrationTotals)
    """What relocation did."""
    dropped_frames: int = 0
    """Pictures left out because the model was behind a live stream."""
    max_rotations: int = 0
    """How often the most often turned key was turned since it was computed."""
    encode_s: float = 0.0
    """Seconds in which pictures and sounds became embeddings."""
    prefill_s: float = 0.0
    """Seconds in which the model took them in."""
    maintain_s: float = 0.0
    """Seconds of retention and migration."""
    answer_s: float = 0.0
    """Seconds of answers."""
    peak_rss_bytes: int = 0
    """The most memory that the process had; 0 where the system doesn't say."""
    maintain_idle_s: float = 0.0
    """Of `maintain_s`, what ran before the next second of a live stream was over."""
    lost_sound_s: float = 0.0
    """Seconds of live sound that a device or a backlog lost."""
    sound_skew_ms: float = 0.0
    """By how much the sound card's clock was corrected; above 0 if it is slow."""
    pictures: int = 0
    """Pictures encoded."""
    same_pictures: int = 0
    """Pictures left out because they showed the same as the last encoded one."""
    saved_tokens: int = 0
    """Tokens that those would have taken."""
    unwritten: tuple[Unwritten, ...] = ()
    """What could not be written, on a full disk for example."""
    alerts: tuple[RuleTotals, ...] = ()
    """The rules of `--alert`."""

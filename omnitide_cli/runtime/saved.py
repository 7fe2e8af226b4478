"""What a session file says beside the cache's state. Plain values, strictly read: the file may come from anyone."""

from __future__ import annotations

import math
import types
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from omnitide_cli.errors import SessionFileError
from omnitide_cli.runtime._registry import Knobs

MOST = 1 << 53
LONGEST_S = 1e9


@dataclass(frozen=True, slots=True)
class SavedOptions(Knobs):
    """Settings that belong to the history, not to the machine: as in `EngineOptions`, those of policies and layouts
    included, which a file from before they were there may lack."""

    policy: str
    layout: str
    positions: str
    high_watermark: int
    low_watermark: int
    ctx: int | None
    cache_type: str
    flash_attn: str
    max_answer_tokens: int
    temperature: float
    seed: int
    change: str = "off"
    refresh: float = 30.0


@dataclass(frozen=True, slots=True)
class SavedModel:
    """Which model it was, and its files' fingerprints."""

    name: str
    weights: str
    encoders: str | None
    system_text: str


@dataclass(frozen=True, slots=True)
class SavedMedia:
    """The source, how it was read, and where its next unit begins (see `media.SourcePosition`)."""

    source: str
    path: str | None
    size: int | None
    unit_seconds: float
    image_tokens: int | None
    video: bool
    audio: bool
    start: float
    duration: float | None
    loops: int
    position: float
    clock: float
    index: int
    loop: int
    audio_track: int | None = None
    """Which sound track is heard, counted from 1; None: nothing was said of it (also in files of before)."""
    is_whole: bool = True
    """Whether `source` is the whole address: False where a login was left out of it."""


@dataclass(frozen=True, slots=True)
class SavedQuestions:
    """A schedule in mid-course: (seconds, text); (seconds, text, closing, asked until); texts for the end."""

    timed: tuple[tuple[float, str], ...] = ()
    asked: tuple[tuple[float, str], ...] = ()
    repeated: tuple[tuple[float, str, bool, float], ...] = ()
    last: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    """Due, but the session ended before they were asked."""
    closed_at: float | None = None
    """Media seconds at which the questions for the end were asked."""


@dataclass(frozen=True, slots=True)
class SavedTotals:
    """As in `reports.Totals`."""

    units: int
    media_s: float
    answers: int
    last_unit: int
    peak_history: int
    peak_span: int
    retentions: int
    accepted: int
    rejected: int
    rows: int
    bytes: int
    migrate_ms: float
    encode_s: float
    prefill_s: float
    maintain_s: float
    answer_s: float
    loop_s: float
    pictures: int = 0
    same_pictures: int = 0
    saved_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SavedEngine:
    """The engine's part: cells of the cache, those up to the last used one, and sums."""

    cells: int
    used_cells: int
    totals: SavedTotals


@dataclass(frozen=True, slots=True)
class Saved:
    """All of it. `version`: the OmniTide that wrote it."""

    version: str
    model: SavedModel
    options: SavedOptions
    media: SavedMedia
    questions: SavedQuestions
    engine: SavedEngine

    def to_json(self) -> dict[str, Any]:
        """What `read_saved` reads."""
        return asdict(self)


def read_saved(value: Any) -> Saved:
    """Raises SessionFileError, without a file's name, for anything but what `to_json` gives."""
    saved: Saved = _read(Saved, value, "it")
    media = saved.media
    times = (media.start, media.position, media.clock, media.duration or 0.0)
    if not all(0 <= seconds <= LONGEST_S for seconds in times) or not 0.1 <= media.unit_seconds <= 30:
        raise SessionFileError("its media clock is damaged")
    counts = (media.index, media.loop, media.loops - 1, media.image_tokens or 0, saved.engine.cells)
    if any(count < 0 for count in counts) or not 0 <= saved.engine.used_cells <= saved.engine.cells:
        raise SessionFileError("a count in it is damaged")
    return saved


def read_plain(kind: type, value: Any) -> Any:
    """A dataclass of plain values from JSON, strictly. Raises SessionFileError, without a file's name."""
    return _read_fields(kind, value, "it")


def _read(hint: Any, value: Any, where: str) -> Any:
    if is_dataclass(hint):
        return _read_fields(hint, value, where)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _read(arguments[0], value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise _wrong(where)
        if arguments[-1] is ...:
            return tuple(_read(arguments[0], item, where) for item in value)
        if len(value) != len(arguments):
            raise _wrong(where)
        return tuple(_read(kind, item, where) for kind, item in zip(arguments, value, strict=True))
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) <= MOST and math.isfinite(value):
            return float(value)
    elif type(value) is hint and not (hint is int and abs(value) > MOST):
        return value
    raise _wrong(where)


def _read_fields(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(where)
    hints = get_type_hints(kind)
    names = {field.name: field.default is MISSING for field in fields(kind)}
    if not value.keys() <= names.keys() or any(needed and name not in value for name, needed in names.items()):
        raise _wrong(where)
    return kind(**{name: _read(hints[name], item, name) for name, item in value.items()})


def _wrong(where: str) -> SessionFileError:
    return SessionFileError(f"its '{where}' is damaged")

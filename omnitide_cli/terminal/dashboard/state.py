"""What the dashboard knows, and how an event changes it: plain values, no terminal.

A state is never changed but replaced, so that the thread that draws may read the newest one at any moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.formats.alerts import alert_words, over_words
from omnitide_cli.formats.origins import origin
from omnitide_cli.formats.words import moment, one_line, saved, with_hint
from omnitide_cli.runtime.events import (
    Alert,
    AlertEnded,
    Answer,
    AnswerDelta,
    Event,
    Migration,
    Notice,
    Retention,
    SessionSaved,
    SessionStarted,
    UnitIngested,
)
from omnitide_cli.runtime.kv_state import SessionSnapshot

Phase = Literal["loading", "watching", "answering", "ended"]

MOST_BUCKETS = 512
MOST_TALK = 100
SMOOTHING = 0.2  # weight of the newest unit in the shown cost


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer as far as it is spoken; `stop` is empty until it ends."""

    at: float
    question: str
    text: str = ""
    stop: str = ""
    where: str = ""
    """The moments of the past that came back for it, in words."""
    wall: str | None = None
    """Time of day at `at`, of a live session."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the session says of itself, in one line."""

    text: str
    is_warning: bool = True
    is_alert: bool = False


@dataclass(frozen=True, slots=True)
class Trace:
    """The length of the history over all units, in at most MOST_BUCKETS buckets of `step` units each.

    A bucket is (lowest, highest); a long session halves the resolution, not the time it shows.
    """

    buckets: tuple[tuple[int, int], ...] = ()
    step: int = 1
    units: int = 0

    def add(self, tokens: int) -> Trace:
        """With one more unit, after which the history has `tokens`."""
        trace = self
        if self.units == self.step * MOST_BUCKETS:
            pairs = zip(self.buckets[::2], self.buckets[1::2], strict=True)
            merged = tuple((min(a[0], b[0]), max(a[1], b[1])) for a, b in pairs)
            trace = Trace(merged, self.step * 2, self.units)
        if trace.units % trace.step == 0:
            return Trace((*trace.buckets, (tokens, tokens)), trace.step, trace.units + 1)
        low, high = trace.buckets[-1]
        return Trace((*trace.buckets[:-1], (min(low, tokens), max(high, tokens))), trace.step, trace.units + 1)

    def raised(self, tokens: int) -> Trace:
        """With `tokens` as a height that the newest unit reached for a moment."""
        if not self.buckets:
            return self
        low, high = self.buckets[-1]
        return replace(self, buckets=(*self.buckets[:-1], (low, max(high, tokens))))


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds that a unit takes, smoothed."""

    encode: float
    prefill: float
    maintain: float

    @property
    def total(self) -> float:
        return self.encode + self.prefill + self.maintain

    def mixed(self, newer: Cost) -> Cost:
        """Moved towards a newer cost."""
        pairs = ((self.encode, newer.encode), (self.prefill, newer.prefill), (self.maintain, newer.maintain))
        return Cost(*(old + SMOOTHING * (new - old) for old, new in pairs))


@dataclass(frozen=True, slots=True)
class Cells:
    """Class of every cell, one letter each: M must-keep, S selected-history, R recent-context, C recalled, . empty."""

    letters: bytes
    page_size: int


@dataclass(frozen=True, slots=True)
class State:
    """Everything that the dashboard shows, but for what is being typed."""

    source: str = ""
    model: str = ""
    phase: Phase = "loading"
    has_ended: bool = False
    """The stream is over."""
    loaded: float = 0.0
    session: SessionStarted | None = None
    units_total: int | None = None
    is_live: bool = False
    """Its seconds come one a second, however fast they are taken in."""
    unit: UnitIngested | None = None
    frame: NDArray[np.uint8] | None = None
    ratio: float | None = None
    """Width by height of the picture itself, which the frame may have bars around."""
    sound: NDArray[np.float32] | None = None
    cells: Cells | None = None
    trace: Trace = field(default_factory=Trace)
    cost: Cost | None = None
    first_s: float = 0.0
    """Media second at which the first unit that was seen here began."""
    first_index: int = 0
    """Its number: a resumed session counts on."""
    unit_s: float = 1.0
    """Media seconds of a whole unit."""
    dropped_frames: int = 0
    same_pictures: int = 0
    saved_tokens: int = 0
    retention: Retention | None = None
    retentions: int = 0
    migration: Migration | None = None
    talk: tuple[Exchange | Remark, ...] = ()
    answers: int = 0
    alerts: int = 0
    """How many there have been."""
    active: tuple[str, ...] = ()
    """Rules whose alert isn't over, the newest last."""
    kv: SessionSnapshot | None = None
    """What was asked for with /kv last; shown until a key is pressed."""

    @property
    def end_s(self) -> float:
        """Media second at which the last unit ends, as far as it is known."""
        newest = self.unit.end if self.unit else self.first_s
        return max(newest, self.first_s + ((self.units_total or 0) - self.first_index) * self.unit_s)


def asking(state: State, question: str, at: float) -> State:
    """A question goes to the model."""
    return replace(_said(state, Exchange(at, one_line(question))), phase="answering")


def remark(state: State, text: str, *, is_warning: bool = False) -> State:
    """The session says something of itself."""
    return _said(state, Remark(one_line(text), is_warning))


def fold(state: State, event: Event) -> State:
    """The state after an event."""
    match event:
        case SessionStarted():
            return replace(state, session=event, model=event.model, phase="watching", loaded=1.0)
        case UnitIngested():
            if state.unit is None:
                state = replace(state, first_s=event.start, first_index=event.index, unit_s=event.end - event.start)
            cost = Cost(event.encode_ms, event.prefill_ms, event.maintain_ms)
            return replace(
                state,
                phase="watching",
                unit=event,
                trace=state.trace.add(event.history_tokens),
                cost=cost if state.cost is None else state.cost.mixed(cost),
                dropped_frames=state.dropped_frames + event.dropped_frames,
                same_pictures=state.same_pictures + (event.picture == "same"),
                saved_tokens=state.saved_tokens + event.saved_tokens,
            )
        case Retention():
            trace = state.trace.raised(event.before_tokens)
            return replace(state, retention=event, retentions=state.retentions + 1, trace=trace)
        case Migration():
            return replace(state, migration=event)
        case AnswerDelta():
            return _spoken(state, lambda last: replace(last, text=last.text + event.text))
        case Answer():
            where = origin(event)
            done = _spoken(
                state, lambda last: replace(last, text=event.text, stop=event.stop, where=where, wall=event.wall)
            )
            return replace(done, phase="ended" if state.has_ended else "watching", answers=state.answers + 1)
        case Alert():
            line = Remark(f"{moment(event.at, event.wall)} {alert_words(event)}", is_alert=True)
            return replace(
                _said(state, line), alerts=state.alerts + 1, active=(*_without(state, event.rule), event.rule)
            )
        case AlertEnded():
            told = remark(state, f"{moment(event.at, event.wall)} {over_words(event)}")
            return replace(told, active=_without(state, event.rule))
        case Notice():
            return remark(state, with_hint(event.message, event.hint), is_warning=True)
        case SessionSaved():
            return remark(state, saved(event.path, event.at))
        case _:
            return state


def _without(state: State, rule: str) -> tuple[str, ...]:
    return tuple(each for each in state.active if each != rule)


def _said(state: State, line: Exchange | Remark) -> State:
    return replace(state, talk=(*state.talk[-MOST_TALK + 1 :], line))


def _spoken(state: State, change: Callable[[Exchange], Exchange]) -> State:
    """With the current exchange changed; remarks may have come after it."""
    for index in range(len(state.talk) - 1, -1, -1):
        last = state.talk[index]
        if isinstance(last, Exchange):
            if last.stop:
                break
            return replace(state, talk=(*state.talk[:index], change(last), *state.talk[index + 1 :]))
    return state

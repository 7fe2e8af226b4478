"""Objects in events: what several numbers that belong together are called. Like events (events.py), they only grow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one unit by modality; `total` is their sum."""

    image: int = 0
    """Tokens of its picture."""
    audio: int = 0
    """Tokens of its sound."""
    text: int = 0
    """Tokens of text."""
    boundary: int = 0
    """Tokens that the template puts around them."""
    total: int = 0
    """All of them."""


@dataclass(frozen=True, slots=True)
class RecalledMoment:
    """A stretch of the past that came back for a question."""

    start: float
    """Where it begins, in media seconds."""
    end: float
    """Where it ends; a question and its answer last no time."""
    score: float
    """Its share of the question's attention over everything archived, 0 … 1."""


@dataclass(frozen=True, slots=True)
class RuleTotals:
    """A rule over the whole session."""

    rule: str
    """Its name."""
    question: str
    """Its question."""
    asked: int
    """How often it was asked."""
    yes: int
    """How often the probability reached its threshold."""
    fired: int
    """Alerts."""
    lowest: float
    """The lowest probability of a yes."""
    mean: float
    """The mean of all: what is usual for this stream."""
    highest: float
    """The highest."""
    mass: float
    """Mean share of yes and no together in what the model would have begun its answer with."""
    seconds: float
    """Seconds that asking took."""
    verdict: str
    """What speaks against the rule: `always` (it said yes nearly every time), `never`, `neither` (the model answers
    neither yes nor no); empty where nothing does, or it was asked too seldom to tell."""


@dataclass(frozen=True, slots=True)
class KvBytes:
    """Bytes of keys and values over all layers."""

    allocated: int = 0
    """Of the whole cache."""
    span: int = 0
    """Of the cells up to the last used one."""
    useful: int = 0
    """Of the cells that hold a token."""


@dataclass(frozen=True, slots=True)
class MigrationTotals:
    """All relocations of a session together."""

    accepted: int = 0
    """Those carried out."""
    rejected: int = 0
    """Those that would not have paid."""
    rows: int = 0
    """Rows moved."""
    bytes: int = 0
    """Bytes moved."""
    ms: float = 0.0
    """Milliseconds."""


@dataclass(frozen=True, slots=True)
class Unwritten:
    """A file that lacks something at the end of the session."""

    path: str
    """The file."""
    answers: int
    """Answers that it lacks; of NDJSON on standard output, events."""
    reason: str
    """Why, as the system says it."""

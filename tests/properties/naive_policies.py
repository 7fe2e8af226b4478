"""docs/omnipick.md as it is written down, token by token; section 5.1 of the paper. Slow and plain: the reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple


class Token(NamedTuple):
    """One token of a unit; `offset` counts inside its span as it was added, `width` > 0 makes that a raster."""

    unit: int
    span: int
    role: str
    offset: int
    width: int


@dataclass
class Unit:
    """A unit and what is left of it."""

    id: int
    kind: str
    tokens: list[Token] = field(default_factory=list)
    partial: bool = False


@dataclass(frozen=True)
class Rules:
    """The settings that the policies read."""

    policy: str
    high: int
    low: int
    recent_units: int  # 0: auto
    image_sinks: int
    audio_sinks: int
    text_budget: int
    sinks: int
    newest_units: int = 4


Kept = dict[int, list[Token]]  # what stays, by unit


def retain(units: list[Unit], rules: Rules, scores: dict[Token, float] | None = None) -> Kept:
    """Tokens that stay of each unit; all of them when the history is not above the high watermark."""
    whole = {unit.id: list(unit.tokens) for unit in units}
    if _count(whole) <= rules.high or rules.policy == "full":
        return whole
    policies: dict[str, Callable[[list[Unit], Rules], Kept]] = {
        "omnipick": _omnipick,
        "fifo": _fifo,
        "token": _token,
        "streaming-llm": _streaming_llm,
        "recent": _recent,
        "h2o": partial(_h2o, scores=scores or {}),
    }
    return policies[rules.policy](units, rules)


def _count(kept: Kept) -> int:
    return sum(map(len, kept.values()))


def _evictable(units: list[Unit]) -> list[Unit]:
    return [unit for index, unit in enumerate(units) if not (index == 0 and unit.kind == "system")]


def _omnipick(units: list[Unit], rules: Rules) -> Kept:
    evictable = _evictable(units)
    if not evictable:
        return {unit.id: list(unit.tokens) for unit in units}
    # Step 2: a window begins with a media unit; where there is none, every unit counts as one.
    begins = [i for i, unit in enumerate(evictable) if unit.kind == "media"] or list(range(len(evictable)))
    plans = [_steps_1_to_3(units, evictable[:begin], rules) for begin in reversed(begins)]
    if rules.recent_units:
        kept = plans[min(rules.recent_units, len(plans)) - 1]
    else:
        kept = [plan for i, plan in enumerate(plans) if i == 0 or _count(plan) <= rules.low][-1]
    # Step 4: whole units, partially kept ones before complete ones; the newest stays.
    partial = [unit for unit in evictable[:-1] if unit.partial or len(kept[unit.id]) < len(unit.tokens)]
    complete = [unit for unit in evictable[:-1] if unit not in partial]
    for unit in partial + complete:
        if _count(kept) > rules.low:
            kept[unit.id] = []
    return kept


def _steps_1_to_3(units: list[Unit], older: list[Unit], rules: Rules) -> Kept:
    kept = {unit.id: list(unit.tokens) for unit in units}
    budget = rules.text_budget
    for unit in older:
        kept[unit.id] = []
        taken: dict[int, int] = {}  # tokens of each span that stay
        for token in unit.tokens:
            if token.role in ("boundary", "image-source"):
                stays = True
            elif token.role in ("image", "audio"):
                sinks = rules.audio_sinks if token.role == "audio" else rules.image_sinks
                stays = taken.get(token.span, 0) < sinks
            else:
                stays = budget > 0
                budget -= stays
            if stays:
                taken[token.span] = taken.get(token.span, 0) + 1
                kept[unit.id].append(token)
    return kept


def _recent(units: list[Unit], rules: Rules) -> Kept:
    evictable = _evictable(units)
    media = [index for index, unit in enumerate(evictable) if unit.kind == "media" and unit.tokens]
    begin = media[-rules.newest_units] if len(media) >= rules.newest_units else 0
    kept = {unit.id: list(unit.tokens) for unit in units}
    newest = [unit for unit in units if unit.tokens][-1]
    for index, unit in enumerate(evictable):
        if unit is newest or (index >= begin and _count(kept) <= rules.low):
            break
        kept[unit.id] = []
    return kept


def _fifo(units: list[Unit], rules: Rules) -> Kept:
    kept = {unit.id: list(unit.tokens) for unit in units}
    for unit in _evictable(units)[:-1]:
        if _count(kept) > rules.low:
            kept[unit.id] = []
    return kept


def _token(units: list[Unit], rules: Rules) -> Kept:
    return _slide(units, 0, rules)


def _streaming_llm(units: list[Unit], rules: Rules) -> Kept:
    return _slide(units, rules.sinks, rules)


def _slide(units: list[Unit], sinks: int, rules: Rules) -> Kept:
    """Deletes the oldest tokens behind `sinks` ones; the newest token stays."""
    kept = {unit.id: list(unit.tokens) for unit in units}
    tokens = [token for unit in _evictable(units) for token in unit.tokens]
    surplus = max(_count(kept) - rules.low, 0)
    doomed = set(tokens[sinks:-1][:surplus])
    return {unit: [token for token in left if token not in doomed] for unit, left in kept.items()}


def _h2o(units: list[Unit], rules: Rules, scores: dict[Token, float]) -> Kept:
    """Half of the budget for the newest tokens, half for those that attention has read most; one is left at least."""
    kept = {unit.id: list(unit.tokens) for unit in units}
    tokens = [token for unit in _evictable(units) for token in unit.tokens]
    if not tokens or _count(kept) <= rules.low:
        return kept
    budget = max(rules.low - (_count(kept) - len(tokens)), 1)
    heavy = budget // 2
    older, newest = tokens[: len(tokens) - (budget - heavy)], tokens[len(tokens) - (budget - heavy) :]
    by_weight = sorted(range(len(older)), key=lambda i: (scores.get(older[i], 0.0), i))
    stays = {older[i] for i in by_weight[len(older) - heavy :]} | set(newest)
    system = set(units[0].tokens) if units[0].kind == "system" else set()
    return {unit: [token for token in left if token in stays | system] for unit, left in kept.items()}

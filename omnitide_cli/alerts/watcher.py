"""Asks the rules of a session behind every unit, and reports what has begun and what is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from omnitide_cli.alerts.change import Seen, change
from omnitide_cli.alerts.judge import Began, Change, Judge, Over, Useless
from omnitide_cli.alerts.rule import Rule, Senses, checked
from omnitide_cli.errors import CacheFull
from omnitide_cli.runtime.events import Alert, AlertEnded, Event, Notice, RuleTotals
from omnitide_cli.runtime.rehearsal import Rehearsal
from omnitide_cli.runtime.yes_no import Weighed

MOST_WORDS = 48
"""Tokens of an alert's text."""

Compares = Callable[[Seen | None, Seen, Senses], Change]
"""How a second differs from the one before, for rules about these senses."""


class Unit(Seen, Protocol):
    """A media unit that the model has just taken in."""

    @property
    def index(self) -> int: ...
    @property
    def end(self) -> float: ...


class Listener(Protocol):
    """What rules are asked of: an engine."""

    @property
    def rehearsal(self) -> Rehearsal: ...
    def wall(self, at: float) -> str | None: ...


class Watcher:
    """The rules of one session; its state begins anew with each, also with one that is resumed.

    Nothing that it asks stays in the history. From the engine's thread, between units.
    """

    def __init__(self, engine: Listener, rules: Iterable[Rule] = (), compares: Compares = change) -> None:
        """Raises UsageError for two rules of one name, ModelError where the model doesn't tell yes from no."""
        self._engine = engine
        self._compares = compares
        self._judges: list[Judge] = []
        self._before: Seen | None = None
        self._has_told_room = False
        for rule in checked(rules):
            self.add(rule)

    def add(self, rule: Rule) -> None:
        """One more rule from now on. Raises as the constructor."""
        checked([*self.rules, rule])
        _ = self._engine.rehearsal.yes_no
        self._judges.append(Judge(rule))

    @property
    def rules(self) -> Sequence[Rule]:
        """In the order in which they are asked."""
        return [judge.rule for judge in self._judges]

    @property
    def active(self) -> Sequence[str]:
        """Names of the rules whose alert has begun and is not over."""
        return [judge.rule.name for judge in self._judges if judge.is_on]

    def after(self, unit: Unit, *, is_late: bool = False) -> Iterator[Event]:
        """The events of a unit that is in the history; read them to their end. `is_late`: the model is behind, so that
        rules are checked at their intervals alone. Raises RuntimeFailure when the model fails. A question that has no
        room in the cache is left out, which is told once."""
        if not self._judges:
            return
        before, self._before = self._before, unit
        compared: dict[Senses, Change] = {}
        for judge in self._judges:
            senses = judge.rule.senses
            if senses not in compared:
                changed = self._compares(before, unit, senses)
                compared[senses] = "some" if is_late and changed == "changed" else changed
            if judge.is_due(unit.end, compared[senses]):
                try:
                    yield from self._ask(judge, unit)
                except CacheFull as error:
                    if not self._has_told_room:
                        self._has_told_room = True
                        message = f"an alert rule could not be asked: {error.message}"
                        yield Notice("alert-no-room", message, "raise --ctx, or choose another --policy than full")

    def totals(self) -> tuple[RuleTotals, ...]:
        """What came of each rule, for the summary."""
        return tuple(judge.totals() for judge in self._judges)

    def _ask(self, judge: Judge, unit: Unit) -> Iterator[Event]:
        rule, at = judge.rule, round(unit.end, 6)
        weighed = weigh(self._engine.rehearsal, rule)
        if weighed is None:  # interrupted: the session is ending
            return
        wall = self._engine.wall(at)
        for found in judge.heard(at, weighed):
            match found:
                case Began():
                    text = self._engine.rehearsal.answer(rule.describe, MOST_WORDS) if rule.describe.strip() else ""
                    yield Alert(
                        rule=rule.name,
                        question=rule.question,
                        at=at,
                        since=found.since,
                        probability=weighed.probability,
                        text=text or "",
                        unit=unit.index,
                        wall=wall,
                    )
                case Over():
                    yield AlertEnded(
                        rule=rule.name,
                        at=at,
                        since=found.since,
                        probability=weighed.probability,
                        highest=found.highest,
                        wall=wall,
                    )
                case Useless():
                    yield _useless(judge.totals(), found.verdict)


def weigh(rehearsal: Rehearsal, rule: Rule) -> Weighed | None:
    """Ask a rule. Of two questions the less likely counts; the second isn't asked where the first decides."""
    first = rehearsal.weigh(rule.question)
    if first is None or not rule.also.strip() or first.probability < rule.threshold / 2:
        return first
    second = rehearsal.weigh(rule.also)
    return None if second is None else both(first, second)


def both(first: Weighed, second: Weighed) -> Weighed:
    """Two answers that must be yes at the same time."""
    likely, mass = min(first.probability, second.probability), min(first.mass, second.mass)
    return Weighed(likely, mass, first.ms + second.ms)


def _useless(totals: RuleTotals, verdict: str) -> Notice:
    if verdict == "always":
        message = (
            f"the alert rule '{totals.rule}' says yes to nearly everything: {totals.yes} of {totals.asked} times;"
            " it gives no more alerts until that changes"
        )
        return Notice("alert-always", message, "ask for something rarer, or raise its threshold")
    message = (
        f"the model answers the alert rule '{totals.rule}' with neither yes nor no"
        f" ({totals.mass:.1%} of what it would say)"
    )
    return Notice("alert-neither", message, "word it as a question for yes or no that this model knows")

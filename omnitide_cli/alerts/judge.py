"""When a rule is asked, and what its answers amount to: pure, on the media clock.

An alert begins when the probability has reached the threshold `hold` times in a row, and ends below half of it: what
lies between changes nothing, so that a score that wavers around the threshold is told once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnitide_cli.alerts.rule import Rule
from omnitide_cli.runtime.events import RuleTotals
from omnitide_cli.runtime.yes_no import Weighed

QUIET_S = 3.0
"""Nothing is told in the first seconds of a stream: the model has hardly seen anything."""
STILL_TIMES = 5
"""A scene in which nothing changes is asked so much less often: many small changes are a large one at last."""
LEAST_MASS = 0.05
"""Where yes and no together are less likely than this, the model says something else, which is no yes."""
ENOUGH_ASKED = 40
"""So many answers tell whether a rule tells anything."""
NEARLY_ALWAYS = 0.95

Change = Literal["changed", "some", "none"]
"""How a second differs from the one before: clearly, in the ordinary way, or not at all."""


@dataclass(frozen=True, slots=True)
class Began:
    """The alert has begun; `since`: media seconds of the first yes in a row."""

    since: float


@dataclass(frozen=True, slots=True)
class Over:
    """It is over. `highest`: probability meanwhile."""

    since: float
    highest: float


@dataclass(frozen=True, slots=True)
class Useless:
    """The rule has turned out to tell nothing; said once. `verdict` is that of RuleTotals."""

    verdict: Literal["always", "neither"]


class Judge:
    """One rule on one stream."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.is_on = False
        """An alert has begun and is not over."""
        self._started: float | None = None
        self._asked_at: float | None = None
        self._is_still = False  # what was asked about is still all there is
        self._row = 0
        self._since = self._told_since = 0.0
        self._highest_now = 0.0
        self._fired_at: float | None = None
        self._told: set[str] = set()
        self._asked = self._yes = self._fired = 0
        self._lowest, self._highest = 1.0, 0.0
        self._sum = self._mass = self._seconds = 0.0

    def is_due(self, at: float, change: Change) -> bool:
        """Whether to ask after the unit that ends at `at` seconds, each of which is told here."""
        if self._started is None:
            self._started = at
        self._is_still = self._is_still and change == "none"
        if self._asked_at is None:
            return True
        if change == "changed" or 0 < self._row < self.rule.hold:
            return True
        wait = self.rule.every * (STILL_TIMES if self._is_still else 1)
        return at - self._asked_at >= wait - 1e-6

    def heard(self, at: float, weighed: Weighed) -> list[Began | Over | Useless]:
        """What an answer, asked at `at` seconds, amounts to."""
        self._asked_at, self._is_still = at, True
        likely = self._count(weighed)
        found: list[Began | Over | Useless] = []
        is_yes = likely >= self.rule.threshold
        if is_yes and self._row == 0:
            self._since = at
        self._row = self._row + 1 if is_yes else 0
        if self.is_on:
            self._highest_now = max(self._highest_now, likely)
            if likely < self.rule.threshold / 2:
                self.is_on = False
                found.append(Over(self._told_since, self._highest_now))
        elif self._row >= self.rule.hold and self._may_fire(at):
            self.is_on = True
            self._fired_at, self._told_since, self._highest_now = at, self._since, likely
            self._fired += 1
            found.append(Began(self._since))
        verdict = self._verdict()
        if verdict in ("always", "neither") and verdict not in self._told:
            self._told.add(verdict)
            found.append(Useless(verdict))
        return found

    def totals(self) -> RuleTotals:
        """All of its answers together."""
        asked = max(self._asked, 1)
        return RuleTotals(
            rule=self.rule.name,
            question=self.rule.question,
            asked=self._asked,
            yes=self._yes,
            fired=self._fired,
            lowest=self._lowest if self._asked else 0.0,
            mean=self._sum / asked,
            highest=self._highest,
            mass=self._mass / asked,
            seconds=self._seconds,
            verdict=self._verdict(),
        )

    def _count(self, weighed: Weighed) -> float:
        likely = weighed.probability if weighed.mass >= LEAST_MASS else 0.0
        self._asked += 1
        self._yes += likely >= self.rule.threshold
        self._lowest, self._highest = min(self._lowest, likely), max(self._highest, likely)
        self._sum += likely
        self._mass += weighed.mass
        self._seconds += weighed.ms / 1000
        return likely

    def _may_fire(self, at: float) -> bool:
        assert self._started is not None
        is_quiet = at - self._started < QUIET_S
        cools = self._fired_at is not None and at - self._fired_at < self.rule.cooldown
        return not (is_quiet or cools or self._verdict() == "always")

    def _verdict(self) -> Literal["", "always", "never", "neither"]:
        if self._asked < ENOUGH_ASKED:
            return ""
        if self._mass / self._asked < LEAST_MASS:
            return "neither"
        if self._yes >= NEARLY_ALWAYS * self._asked:
            return "always"
        return "never" if self._yes == 0 else ""

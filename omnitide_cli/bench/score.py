"""Marks of an exam and how sure a share of right ones is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

Z = 1.959964
"""Standard deviations that 95 % of a normal distribution lie within."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One answer; `sense` is "" and `age` (seconds since what it is about) None where nobody said."""

    kind: str
    sense: str
    right: bool
    age: int | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """The share of right answers among `n`, and its 95 % interval (Wilson's score interval)."""

    accuracy: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, marks: Iterable[Mark]) -> Share | None:
        """None where nothing was asked."""
        rights = [mark.right for mark in marks]
        if not rights:
            return None
        return cls(sum(rights) / len(rights), *wilson(sum(rights), len(rights)), len(rights))


def wilson(right: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share: never empty nor beyond 0 … 1, also for 0 or all of few. `n` is above 0."""
    share = right / n
    centre = share + Z * Z / (2 * n)
    half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    whole = 1 + Z * Z / n
    return (centre - half) / whole if right else 0.0, (centre + half) / whole if right < n else 1.0

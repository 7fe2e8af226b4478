"""Marks of a task and how sure a share of right ones is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnitide_cli.bench.common.intervals import share_interval


@dataclass(frozen=True, slots=True)
class Mark:
    """One answer; `sense` is "" and `age` (seconds since what it is about) None where nobody said.

    stream: the task's name; at: media seconds; asked: the question; accepted: what is right; said: the answer.
    """

    kind: str
    sense: str
    right: bool
    age: int | None = None
    stream: str = ""
    at: float = 0.0
    asked: str = ""
    accepted: str = ""
    said: str = ""


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
        return cls(sum(rights) / len(rights), *share_interval(sum(rights), len(rights)), len(rights))

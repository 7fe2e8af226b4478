"""Sheets of TideBench: what a policy with its settings answered, and the rows that come of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from omnitide_cli.bench.common.intervals import mean_interval
from omnitide_cli.bench.quality.score import Mark, Share
from omnitide_cli.runtime.options import EngineOptions, has_knob

SENSES = ("image", "sound", "both", "text")
AGES = {"0-4": range(5), "5-16": range(5, 17), "17-32": range(17, 33), "33-": range(33, 1 << 24)}
"""Seconds since the latest moment that a question is about."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Share of right answers less that of another policy on the very same questions, with its 95 % interval."""

    to: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class QualityRow:
    """Accuracy of one policy in one kind of question ("all": in every kind), with its 95 % interval.

    history_tokens, physical_span: cells, means over all units after their maintenance. stream_loop_s: seconds that the
    policy's streams took with their questions, encoding (done once for all) included. The latter three are of all
    kinds together. The watermarks are None for `full`, which has none. senses and ages (AGES): the same share by sense
    and by age. setting: what a sweep changed, "image-sinks=8"; "" for the defaults. difference: None without a each
    to compare with.
    """

    policy: str
    kind: str
    accuracy: float
    low: float
    high: float
    n: int
    history_tokens: int
    physical_span: int
    stream_loop_s: float
    high_watermark: int | None
    low_watermark: int | None
    positions: str
    setting: str
    senses: dict[str, Share]
    ages: dict[str, Share]
    difference: Difference | None
    type: str = "quality"


@dataclass(slots=True)
class Results:
    """What came out under one policy so far. settings: the points of a sweep that it stands for, "" for none."""

    options: EngineOptions
    settings: list[str] = field(default_factory=lambda: [""])
    base: Results | None = None
    base_name: str = ""
    marks: list[Mark] = field(default_factory=list)
    history: list[int] = field(default_factory=list)
    spans: list[int] = field(default_factory=list)
    loop_s: float = 0.0

    def rows(self) -> list[QualityRow]:
        """One a kind, in the order in which they came up, then all; none while nothing is answered."""
        kinds = (*dict.fromkeys(mark.kind for mark in self.marks), "all") if self.marks else ()
        return [self._row(kind, setting) for setting in self.settings for kind in kinds]

    def _row(self, kind: str, setting: str) -> QualityRow:
        marks = [mark for mark in self.marks if kind in (mark.kind, "all")]
        share = Share.of(marks)
        assert share is not None
        has_marks = self.options.policy != "full"
        return QualityRow(
            policy=self.options.policy,
            kind=kind,
            accuracy=share.accuracy,
            low=share.low,
            high=share.high,
            n=share.n,
            history_tokens=round(fmean(self.history)),
            physical_span=round(fmean(self.spans)),
            stream_loop_s=self.loop_s,
            high_watermark=self.options.high_watermark if has_marks else None,
            low_watermark=self.options.low_watermark if has_marks else None,
            positions=self.options.positions,
            setting=setting,
            senses=_shares(marks, SENSES, lambda mark, sense: mark.sense == sense),
            ages=_shares(marks, AGES, lambda mark, age: mark.age is not None and mark.age in AGES[age]),
            difference=self._difference(kind),
        )

    def answers(self) -> Iterator[dict[str, Any]]:
        """A row for each question that was asked."""
        marks = self.options.policy != "full"
        about = {
            "policy": self.options.policy,
            "setting": self.settings[0],
            "high_watermark": self.options.high_watermark if marks else None,
            "low_watermark": self.options.low_watermark if marks else None,
            "positions": self.options.positions,
        }
        for mark in self.marks:
            yield about | asdict(mark)

    def _difference(self, kind: str) -> Difference | None:
        """Both results answered the same questions, so pairs are compared; these are taken as independent."""
        if self.base is None:
            return None
        pairs = [
            (mine, other)
            for mine, other in zip(self.marks, self.base.marks, strict=False)  # an interruption leaves some without
            if kind in (mine.kind, "all")
        ]
        if not pairs:
            return None
        values = [float(mine.right) - float(other.right) for mine, other in pairs]
        return Difference(self.base_name, fmean(values), *mean_interval(values))


def results(
    options: EngineOptions,
    policies: Sequence[str],
    watermarks: Sequence[tuple[int, int]],
    positions: Sequence[str] = ("compact",),
    sweep: Sequence[tuple[str, float | None]] = (),
) -> list[Results]:
    """Empty ones: every policy at every pair (high, low) and with every kind of positions.

    `full`, which has no watermarks and moves nothing, comes once, and the other policies are compared with it; with
    several kinds of positions, each with its like under the first one. `sweep`: fields of the options with a value;
    for each of them the policies whose setting it is come once more with it changed, compared with their defaults.
    """
    found: list[Results] = []
    full: Results | None = None
    for high, low in watermarks:
        for policy in dict.fromkeys(policies):
            chosen = replace(options, policy=policy, high_watermark=high, low_watermark=low)
            first: Results | None = None
            for place in dict.fromkeys(positions):
                if policy == "full" and (full or first):
                    continue
                base, name = (first, first.options.positions) if first else (full, "full")
                each = Results(replace(chosen, positions=place), base=base, base_name=name)
                found.append(each)
                first = first or each
            full = full or (first if policy == "full" else None)
            if first:
                found += _swept(first, [change for change in sweep if has_knob(policy, change[0])])
    return found


def _swept(base: Results, sweep: Sequence[tuple[str, float | None]]) -> list[Results]:
    """One result a value; the one that `base` has already is said to stand for it."""
    found = []
    for name, value in sweep:
        setting = f"{name.replace('_', '-')}={'auto' if value is None else value}"
        chosen = replace(base.options, **{name: value})  # type: ignore[arg-type]
        if chosen == base.options:
            base.settings.append(setting)
        else:
            found.append(Results(chosen, [setting], base, "defaults"))
    return found


def _shares(marks: Sequence[Mark], names: Iterable[str], belongs: Callable[[Mark, str], bool]) -> dict[str, Share]:
    """Only what was asked for at all."""
    shares = {name: Share.of(mark for mark in marks if belongs(mark, name)) for name in names}
    return {name: share for name, share in shares.items() if share is not None}

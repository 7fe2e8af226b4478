"""When a rule is asked, when it fires, and when it has turned out to tell nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnitide_cli.alerts.judge import ENOUGH_ASKED, QUIET_S, STILL_TIMES, Began, Judge, Over, Useless
from omnitide_cli.alerts.rule import Rule
from omnitide_cli.runtime.yes_no import Weighed

FIRST = 10.0
"""The second after which the first answer of a table comes: the quiet ones are over."""


def rule(**settings: object) -> Rule:
    return Rule("Is it there?", "it", **{"cooldown": 0, "threshold": 0.5, **settings})  # type: ignore[arg-type]


def told(judge: Judge, scores: Sequence[float], mass: float = 1.0, step: float = 1.0) -> list[tuple[float, object]]:
    """What a judge makes of answers a step apart, after some seconds of no."""
    judge.is_due(0.0, "some")
    found = []
    for index, score in enumerate(scores):
        at = FIRST + index * step
        judge.is_due(at, "some")
        found += [(at, each) for each in judge.heard(at, Weighed(score, mass, 1.0))]
    return found


@pytest.mark.parametrize(
    ("settings", "scores", "expected"),
    [
        ({}, [0.1, 0.9], [(11, Began(11))]),
        ({}, [0.5], [(10, Began(10))]),
        ({}, [0.49], []),
        ({}, [0.9, 0.9, 0.9], [(10, Began(10))]),
        ({}, [0.9, 0.3, 0.9, 0.26], [(10, Began(10))]),
        ({}, [0.9, 0.95, 0.24, 0.1], [(10, Began(10)), (12, Over(10, 0.95))]),
        ({}, [0.9, 0.1, 0.9], [(10, Began(10)), (11, Over(10, 0.9)), (12, Began(12))]),
        ({"threshold": 0.8}, [0.79, 0.8, 0.4, 0.39], [(11, Began(11)), (13, Over(11, 0.8))]),
        ({"hold": 2}, [0.9, 0.1, 0.9, 0.9], [(13, Began(12))]),
        ({"hold": 3}, [0.9, 0.9, 0.4, 0.9, 0.9], []),
        ({"cooldown": 3}, [0.9, 0.1, 0.9, 0.1, 0.9], [(10, Began(10)), (11, Over(10, 0.9)), (14, Began(14))]),
        ({"cooldown": 3}, [0.9, 0.1, 0.9, 0.9], [(10, Began(10)), (11, Over(10, 0.9)), (13, Began(12))]),
    ],
)
def test_an_alert_begins_above_the_threshold_and_ends_below_half(
    settings: dict[str, float], scores: list[float], expected: list[tuple[float, object]]
) -> None:
    assert told(Judge(rule(**settings)), scores) == expected


def test_the_first_seconds_are_quiet_and_what_still_holds_then_is_told() -> None:
    judge = Judge(rule())
    found = []
    for at in (1.0, 2.0, 3.0, 4.0, 5.0):
        assert judge.is_due(at, "changed")
        found += [(at, each) for each in judge.heard(at, Weighed(0.9, 1.0, 1.0))]
    assert found == [(1.0 + QUIET_S, Began(1.0))]


def test_an_answer_that_is_neither_yes_nor_no_is_no_yes() -> None:
    assert told(Judge(rule()), [0.99, 0.99], mass=0.01) == []


def test_what_says_yes_to_everything_is_named_and_silent_from_then_on() -> None:
    judge = Judge(rule())
    found = told(judge, [0.9] * (ENOUGH_ASKED - 1) + [0.1] + [0.9] * 3)
    assert found == [(10, Began(10)), (49, Over(10, 0.9)), (49, Useless("always"))]
    assert judge.totals().verdict == "always"


def test_it_alerts_again_once_it_says_no_as_well() -> None:
    judge = Judge(rule())
    found = told(judge, [0.9] * ENOUGH_ASKED + [0.1] * 10 + [0.9])
    assert [type(each) for _, each in found] == [Began, Useless, Over, Began]
    assert judge.totals().verdict == ""


@pytest.mark.parametrize(("score", "mass", "verdict"), [(0.01, 1.0, "never"), (0.9, 0.001, "neither")])
def test_what_never_says_yes_is_named(score: float, mass: float, verdict: str) -> None:
    judge = Judge(rule())
    found = told(judge, [score] * (ENOUGH_ASKED + 5), mass)
    assert judge.totals().verdict == verdict
    assert [each for _, each in found] == ([Useless("neither")] if verdict == "neither" else [])


def test_totals_count_what_was_said() -> None:
    judge = Judge(rule())
    assert judge.totals().lowest == judge.totals().highest == judge.totals().mean == 0.0
    told(judge, [0.2, 0.6, 0.7], mass=0.5)
    totals = judge.totals()
    assert (totals.asked, totals.yes, totals.fired, totals.lowest, totals.highest) == (3, 2, 1, 0.2, 0.7)
    assert (round(totals.mean, 6), totals.mass, round(totals.seconds, 6)) == (0.5, 0.5, 0.003)


# --- when it is asked


def asked(judge: Judge, changes: Sequence[str], score: float = 0.1) -> list[int]:
    """The seconds in which it is asked."""
    found = []
    for second, change in enumerate(changes, 1):
        if judge.is_due(float(second), change):  # type: ignore[arg-type]
            found.append(second)
            judge.heard(float(second), Weighed(score, 1.0, 1.0))
    return found


def test_it_is_asked_at_its_interval_and_at_once_when_the_scene_changes() -> None:
    assert asked(Judge(rule(every=2)), ["some"] * 7) == [1, 3, 5, 7]
    assert asked(Judge(rule(every=3)), ["some", "some", "changed", "some", "some", "some"]) == [1, 3, 6]


def test_a_scene_that_stands_still_is_asked_about_seldom() -> None:
    stands = asked(Judge(rule(every=2)), ["none"] * 25)
    assert stands == [1, 1 + 2 * STILL_TIMES, 1 + 4 * STILL_TIMES]
    assert asked(Judge(rule(every=2)), ["some", "none", "some", "none", "none"]) == [1, 3]


def test_a_first_yes_is_confirmed_second_by_second() -> None:
    assert asked(Judge(rule(every=5, hold=3)), ["none"] * 4, score=0.9) == [1, 2, 3]


def test_seconds_that_are_no_whole_ones_miss_no_interval() -> None:
    judge, count = Judge(rule(every=0.3)), 0
    for number in range(1, 1001):
        at = number * 0.1
        if judge.is_due(at, "some"):
            count += 1
            judge.heard(at, Weighed(0.0, 1.0, 1.0))
    assert count == 334


@given(
    scores=st.lists(st.floats(0, 1), max_size=120),
    threshold=st.floats(0.05, 0.95),
    hold=st.integers(1, 4),
    cooldown=st.floats(0, 20),
)
def test_whatever_comes_alerts_and_ends_take_turns(
    scores: list[float], threshold: float, hold: int, cooldown: float
) -> None:
    judge = Judge(rule(threshold=threshold, hold=hold, cooldown=cooldown))
    found = [(at, each) for at, each in told(judge, scores) if not isinstance(each, Useless)]
    kinds = [type(each) for _, each in found]
    assert kinds == [Began, Over] * (len(kinds) // 2) + [Began] * (len(kinds) % 2)
    begins = [at for at, each in found if isinstance(each, Began)]
    assert all(later - earlier >= cooldown for earlier, later in pairwise(begins))
    for at, each in found:
        index = int(at - FIRST)
        if isinstance(each, Began):
            assert min(scores[index - hold + 1 : index + 1]) >= threshold
            assert min(scores[int(each.since - FIRST) : index + 1]) >= threshold
        elif isinstance(each, Over):
            assert scores[index] < threshold / 2
    assert judge.is_on == (len(kinds) % 2 == 1)
    assert judge.totals().fired == len(begins)

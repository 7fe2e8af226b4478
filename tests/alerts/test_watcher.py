"""Rules on a stream: who is asked when, what is reported, and what an engine that fails makes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from omnitide_cli.alerts.rule import Rule
from omnitide_cli.alerts.watcher import Watcher
from omnitide_cli.errors import CacheFull, RuntimeFailure, UsageError
from omnitide_cli.media.unit import NO_SOUND, MediaUnit
from omnitide_cli.runtime.events import Alert, AlertEnded, Event, Notice
from omnitide_cli.runtime.yes_no import Weighed

DOOR = Rule("Is somebody at the door?", "door", cooldown=0, threshold=0.5)
FOX = Rule("Is there a fox?", "fox", cooldown=0, threshold=0.5, every=1)


@dataclass
class Scripted:
    """An engine whose probabilities are given by rule's question and second."""

    score: Callable[[str], float | None]
    asked: list[str] = field(default_factory=list)

    @property
    def rehearsal(self) -> Scripted:
        return self

    @property
    def yes_no(self) -> None:
        return None

    def weigh(self, question: str) -> Weighed | None:
        self.asked.append(question)
        score = self.score(question)
        return None if score is None else Weighed(score, 0.9, 2.0)

    def answer(self, question: str, most: int) -> str | None:
        return f"{question} Much."

    def wall(self, at: float) -> str | None:
        return f"wall {at:g}"


def unit(index: int) -> MediaUnit:
    return MediaUnit(index, float(index), index + 1.0, None, None, NO_SOUND, NO_SOUND)


def run(watcher: Watcher, seconds: range) -> list[Event]:
    return [event for index in seconds for event in watcher.after(unit(index))]


def watch(engine: Scripted, *rules: Rule) -> Watcher:
    return Watcher(engine, rules, lambda before, now, senses: "some")  # type: ignore[arg-type]


def test_each_rule_has_its_own_alert() -> None:
    scores = {"now": 0.1}
    engine = Scripted(lambda question: scores["now"] if question == FOX.question else 0.0)
    watcher = watch(engine, DOOR, FOX)
    assert run(watcher, range(6)) == []
    scores["now"] = 0.875
    [event] = run(watcher, range(6, 8))
    assert event == Alert("fox", FOX.question, 7.0, 7.0, 0.875, "What is happening? Much.", unit=6, wall="wall 7")
    assert watcher.active == ["fox"]
    scores["now"] = 0.0
    assert run(watcher, range(8, 9)) == [AlertEnded("fox", 9.0, 7.0, 0.0, 0.875, "wall 9")]
    assert watcher.active == []
    door, fox = watcher.totals()
    assert (door.rule, door.asked, door.fired) == ("door", 5, 0)
    assert (fox.rule, fox.asked, fox.fired, fox.yes) == ("fox", 9, 1, 2)


def test_of_two_questions_both_must_be_yes_and_the_second_is_asked_where_it_matters() -> None:
    scores = {"See?": 0.1, "Hear?": 0.9}
    engine = Scripted(lambda question: scores[question])
    watcher = watch(engine, Rule("See?", "both", "Hear?", threshold=0.5, every=1))
    assert run(watcher, range(5)) == []
    assert engine.asked == ["See?"] * 5
    scores["See?"] = 0.8
    [event] = run(watcher, range(5, 6))
    assert isinstance(event, Alert)
    assert event.probability == 0.8
    scores["Hear?"] = 0.2
    [event] = run(watcher, range(6, 7))
    assert isinstance(event, AlertEnded)
    assert event.probability == 0.2
    assert watcher.totals()[0].seconds == pytest.approx((5 + 2 * 2) * 0.002)


def test_a_rule_may_want_no_text() -> None:
    watcher = watch(Scripted(lambda _: 0.9), Rule("Is it?", describe=" ", threshold=0.5))
    [event] = run(watcher, range(5))
    assert isinstance(event, Alert)
    assert event.text == ""


def test_a_stream_that_is_late_is_checked_at_its_intervals_alone() -> None:
    engine = Scripted(lambda _: 0.0)
    watcher = Watcher(engine, [DOOR], lambda before, now, senses: "changed")  # type: ignore[arg-type]
    for index in range(6):
        list(watcher.after(unit(index), is_late=index >= 2))
    assert len(engine.asked) == 4  # after 0:01, 0:02, 0:04, 0:06


def test_an_interruption_reports_nothing() -> None:
    watcher = watch(Scripted(lambda _: None), FOX)
    assert run(watcher, range(5)) == []
    assert watcher.totals()[0].asked == 0


def test_no_room_is_told_once_and_other_failures_end_the_session() -> None:
    def full(question: str) -> float:
        raise CacheFull("no room")

    def broken(question: str) -> float:
        raise RuntimeFailure("broken")

    [event] = run(watch(Scripted(full), FOX, DOOR), range(5))
    assert isinstance(event, Notice)
    assert event.code == "alert-no-room"
    with pytest.raises(RuntimeFailure, match="broken"):
        run(watch(Scripted(broken), FOX), range(1))


@pytest.mark.parametrize(("mass", "score", "code"), [(0.9, 0.9, "alert-always"), (0.01, 0.9, "alert-neither")])
def test_a_useless_rule_is_named_once(mass: float, score: float, code: str) -> None:
    class Other(Scripted):
        def weigh(self, question: str) -> Weighed | None:
            return Weighed(score, mass, 1.0)

    events = run(watch(Other(lambda _: 0.0), FOX), range(200))
    [notice] = [event for event in events if isinstance(event, Notice)]
    assert notice.code == code
    assert "'fox'" in notice.message
    assert len([event for event in events if isinstance(event, Alert)]) == (code == "alert-always")


def test_rules_can_be_added_and_names_stay_single() -> None:
    watcher = watch(Scripted(lambda _: 0.0), FOX)
    watcher.add(DOOR)
    assert [rule.name for rule in watcher.rules] == ["fox", "door"]
    with pytest.raises(UsageError, match="two alert rules"):
        watcher.add(Rule("Is it?", "door"))


def test_without_rules_nothing_is_compared() -> None:
    def compares(before: object, now: object, senses: object) -> str:
        raise AssertionError("compared")

    assert list(Watcher(Scripted(lambda _: 0.0), (), compares).after(unit(0))) == []  # type: ignore[arg-type]

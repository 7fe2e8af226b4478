"""Alerts on the shipped model and the shipped example: what is found, and that a session with rules is one without."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnitide_cli as omnitide
from omnitide_cli.alerts.watcher import Watcher
from omnitide_cli.runtime.events import Alert, AlertEnded, Event

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shapes-and-notes.mp4"
RULES = ("circle=Do you see a red circle?", "apple=Do you hear the word apple?", "digit=Do you see the digit 7?")


def watched(rules: tuple[str, ...], seconds: int, *, cache_type: str = "f16") -> tuple[bytes, str, list[Event]]:
    """State, next answer, and events of a session."""
    chosen = {"cache_type": cache_type, "threads": 1, "high_watermark": 900, "low_watermark": 700}
    with omnitide.load(**chosen) as session:  # type: ignore[arg-type]
        for rule in rules:
            session.alert(rule)
        for unit in omnitide.read(EXAMPLE, for_=session, duration=seconds):
            session.add(unit)
            if unit.index == 9:
                session.ask("What do you see and hear?")
        state = session._engine.session.save().tobytes()
        answer = session.ask("What do you see and hear?").text
        return state, answer, list(session.events)


@pytest.mark.parametrize("cache_type", ["f16", "q8_0"])
def test_a_session_with_rules_is_bit_by_bit_one_without(cache_type: str) -> None:
    without, with_rules = watched((), 26, cache_type=cache_type), watched(RULES, 26, cache_type=cache_type)
    assert any(isinstance(event, omnitide.events.Retention) for event in without[2])
    assert [event.rule for event in with_rules[2] if isinstance(event, Alert)]
    assert without[0] == with_rules[0]
    assert without[1] == with_rules[1]


def test_what_is_there_is_told_once_with_what_happens() -> None:
    heard: list[Alert] = []
    with omnitide.load(threads=1) as session:
        session.alert(RULES[1], heard.append)
        session.alert(RULES[2])
        for unit in omnitide.read(EXAMPLE, for_=session, duration=14):
            session.add(unit)
        totals = session.summary().alerts
        events = list(session.events)
    assert [(alert.rule, alert.at) for alert in heard] == [("apple", 9.0)]
    assert "the word apple" in heard[0].text
    assert heard[0].probability > 0.9
    [over] = [event for event in events if isinstance(event, AlertEnded)]
    assert (over.rule, over.since) == ("apple", 9.0)
    assert [(each.rule, each.fired) for each in totals] == [("apple", 1), ("digit", 0)]
    assert totals[0].mass > 0.9
    assert not [event for event in events if isinstance(event, omnitide.Answer)], "nothing was asked for real"


def test_a_question_for_no_yes_or_no_is_named() -> None:
    with omnitide.load(threads=1) as session:
        session.alert("what=What do you see?")
        for unit in omnitide.read(EXAMPLE, for_=session, loop=2):
            session.add(unit)
        [totals] = session.summary().alerts
        codes = [event.code for event in session.events if isinstance(event, omnitide.events.Notice)]
    assert (totals.fired, totals.verdict) == (0, "neither")
    assert codes.count("alert-neither") == 1


def test_a_model_without_yes_and_no_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnitide_cli.runtime.yes_no.NO", ("yes", "Yes", "YES"))
    with omnitide.load(threads=1) as session:
        with pytest.raises(omnitide.errors.ModelError, match="yes from no"):
            session.alert("Do you see a red circle?")
        with pytest.raises(omnitide.errors.ModelError, match="yes from no"):
            Watcher(session._engine, [omnitide.Rule("Is it?")])

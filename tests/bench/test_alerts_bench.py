"""Streams in which something happens, and what is counted of the alerts about it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.alerts.measure import Line, Trace, best, lines, told
from omnitide_cli.bench.world.happening import EVENT_S, SENSES, Happening, event_stream
from omnitide_cli.bench.world.split import TEST, VALIDATION
from omnitide_cli.commands.run import run
from omnitide_cli.runtime.yes_no import Weighed

UNITS = 240


@pytest.mark.parametrize("seed", range(12))
def test_what_rules_wait_for_is_there_in_its_events_and_nowhere_else(seed: int) -> None:
    found = event_stream(VALIDATION, seed, UNITS)
    assert len(found.stream.scenes) == UNITS
    assert {event.sense for event in found.events} == set(SENSES)
    for wanted in found.wanted:
        mine = [event for event in found.events if event.sense == wanted.sense]
        inside = {second for event in mine for second in range(event.start, event.end)}
        assert {second for second, scene in enumerate(found.stream.scenes) if wanted.is_in(scene)} == inside
        assert all(EVENT_S[0] <= event.end - event.start < EVENT_S[1] for event in mine)
    assert len({key for wanted in found.wanted for key in (wanted.figure, wanted.word) if key}) == 4
    assert [len(wanted.questions) for wanted in found.wanted] == [1, 1, 2]


def test_a_part_of_what_the_rule_for_both_waits_for_is_there_alone_at_times() -> None:
    alone = 0
    for seed in range(6):
        found = event_stream(TEST, seed, UNITS)
        both = found.wanted[2]
        for scene in found.stream.scenes:
            alone += not both.is_in(scene) and any(
                replace(both, figure=figure, word=word).is_in(scene)
                for figure, word in ((both.figure, None), (None, both.word))
            )
    assert alone > 20


def test_streams_without_events_have_none_and_seeds_tell_them_apart() -> None:
    for seed in range(6):
        quiet = event_stream(TEST, seed, UNITS, happens=False)
        assert not quiet.events
        for wanted in quiet.wanted:
            parts = [replace(wanted, figure=None), replace(wanted, word=None)]
            parts = [part for part in parts if part.questions]
            assert not any(part.is_in(scene) for part in parts for scene in quiet.stream.scenes)
    assert event_stream(TEST, 3, UNITS) == event_stream(TEST, 3, UNITS)
    assert event_stream(TEST, 3, UNITS) != event_stream(TEST, 4, UNITS)
    assert event_stream(TEST, 3, UNITS) != event_stream(VALIDATION, 3, UNITS)


# --- what is counted

SECONDS = 60


def trace(scores: dict[int, float], *events: tuple[int, int]) -> Trace:
    """One in which the rule for sight is answered so; the others never say yes."""

    def answers(found: dict[int, float]) -> tuple[Weighed, ...]:
        return tuple(Weighed(found.get(second, 0.01), 1.0, 2.0) for second in range(SECONDS))

    return Trace(
        seed=0,
        events=tuple(Happening("sight", *event) for event in events),
        changes=dict.fromkeys(("both", "sight", "sound"), ("some",) * SECONDS),
        answers={"sight": (answers(scores),), "sound": (answers({}),), "both": (answers(scores), answers({}))},
        loop_s=1.0,
    )


def first(busy: list[Trace], quiet: list[Trace], every: float = 1.0) -> Line:
    return lines(busy, quiet, 0.5, 1, every, hints=False)[0]


def test_alerts_in_time_late_and_false_are_told_apart() -> None:
    scores = {10: 0.9, 11: 0.9, 53: 0.9}  # told at 11 (at once), at 54 (too late)
    line = first([trace(scores, (10, 12), (50, 56))], [])
    assert (line.events, line.in_time, line.late, line.alerts, line.false) == (2, 1, 1, 2, 0)
    assert (line.precision, line.recall, line.delay_s) == (1.0, 0.5, 1.0)
    line = first([trace({20: 0.9}, (30, 36))], [])
    assert (line.in_time, line.late, line.alerts, line.false) == (0, 0, 1, 1)
    assert (line.precision, line.recall, line.f1) == (0.0, 0.0, 0.0)


def test_false_alarms_are_counted_by_the_hour() -> None:
    line = first([], [trace({20: 0.9}), trace({})])
    assert (line.quiet_s, line.false_an_hour) == (2 * SECONDS, 30.0)
    assert (line.events, line.recall) == (0, 1.0)
    total = lines([], [trace({20: 0.9})], 0.5, 1, 1.0, hints=False)[-1]
    assert (total.sense, total.quiet_s, total.false_an_hour) == ("all", 3 * SECONDS, 20.0)


def test_the_second_question_counts_and_costs_where_the_first_says_yes() -> None:
    given = trace(dict.fromkeys(range(10, 20), 0.9), (10, 20))
    rule = lines([given], [], 0.5, 1, 1.0, hints=False)[2]
    assert (rule.sense, rule.alerts) == ("both", 0)
    assert rule.ask_ms == pytest.approx(2.0 * (SECONDS + 10) / SECONDS)
    assert rule.cost == pytest.approx(0.002 * (SECONDS + 10))


def test_a_rule_is_replayed_as_a_session_asks_it() -> None:
    from omnitide_cli.alerts.rule import Rule

    given = trace(dict.fromkeys(range(10, 20), 0.9))
    assert told(given, "sight", Rule("Is it?", threshold=0.5, every=1)).alerts == (11.0,)
    seldom = told(given, "sight", Rule("Is it?", threshold=0.5, every=7))
    assert seldom.alerts == (15.0,)
    assert seldom.asked == 9
    assert told(given, "sight", Rule("Is it?", threshold=0.5, every=1, hold=3)).alerts == (13.0,)


def test_the_best_settings_have_few_false_alarms_first() -> None:
    some = first([trace({10: 0.9}, (10, 12))], [])
    loud = replace(some, f1=0.99, false_an_hour=3.0, threshold=0.3)
    good = replace(some, f1=0.9, false_an_hour=0.5, threshold=0.7)
    same = replace(good, threshold=0.8)
    assert best([loud, good, same, replace(good, hold=2, threshold=0.9)]) == same
    assert best([loud, replace(loud, false_an_hour=2.0)]).false_an_hour == 2.0


def test_the_command_measures_the_shipped_model(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = "bench alerts --streams 1 --eventless 1 --units 40 --threads 1 --threshold 0.9 --hold 1 --json"
    assert run(app, arguments.split()) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [row["sense"] for row in rows] == ["sight", "sound", "both", "all"]
    assert all(row["quiet_s"] == 40 for row in rows[:3])
    assert rows[0]["events"] >= 1
    assert all(row["ask_ms"] > 0 and row["cost"] > 0 for row in rows)
    assert run(app, ["bench", "alerts", "--split", "nowhere"]) == 2

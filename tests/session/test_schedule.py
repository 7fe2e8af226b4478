"""Which question is asked when."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnitide_cli.errors import UsageError
from omnitide_cli.session.schedule import (
    Repeated,
    Schedule,
    Timed,
    parse_repeated,
    parse_timed,
    read_questions,
)


def asked(schedule: Schedule, clocks: list[float]) -> list[tuple[float, str]]:
    """What is asked after units that end at `clocks`, then after the last."""
    during = [(clock, question) for clock in clocks for question in schedule.due(clock)]
    return during + [(-1, question) for question in schedule.final()]


def test_a_timed_question_waits_for_the_first_unit_whose_end_reaches_it() -> None:
    schedule = Schedule(timed=[Timed(2.5, "b"), Timed(1.0, "a")])
    assert asked(schedule, [1, 2, 3, 4]) == [(1, "a"), (3, "b")]
    assert schedule.unreached() == []


def test_a_timed_question_beyond_the_end_is_unreached() -> None:
    schedule = Schedule(timed=[Timed(9, "late")])
    assert asked(schedule, [1, 2]) == []
    assert schedule.unreached() == [Timed(9, "late")]


def test_a_repeated_question_comes_with_every_multiple() -> None:
    schedule = Schedule(repeated=[Repeated(2, "r")])
    assert asked(schedule, [1, 2, 3, 4, 5]) == [(2, "r"), (4, "r")]


def test_a_repeated_question_comes_at_most_once_a_unit() -> None:
    assert asked(Schedule(repeated=[Repeated(0.25, "r")]), [1, 2]) == [(1, "r"), (2, "r")]


def test_intervals_without_an_exact_float_lose_no_question() -> None:
    clocks = [(index + 1) * 0.1 for index in range(1000)]
    assert len(asked(Schedule(repeated=[Repeated(0.1, "r")]), clocks)) == 1000
    assert len(asked(Schedule(repeated=[Repeated(0.3, "r")]), clocks)) == 333


def test_a_stream_that_begins_late_counts_from_the_next_multiple() -> None:
    schedule = Schedule(repeated=[Repeated(10, "r")])
    schedule.start_at(95)
    assert asked(schedule, [96, 99, 100, 101]) == [(100, "r")]


def test_a_closing_question_is_about_what_came_since() -> None:
    assert asked(Schedule(repeated=[Repeated(10, "r", closing=True)]), [9, 10, 11]) == [(10, "r"), (-1, "r")]
    assert asked(Schedule(repeated=[Repeated(10, "r", closing=True)]), [9, 10]) == [(10, "r")]
    assert asked(Schedule(repeated=[Repeated(10, "r", closing=True)]), []) == []


def test_last_questions_keep_their_order() -> None:
    assert asked(Schedule(last=["b", "a"]), [1]) == [(-1, "b"), (-1, "a")]


def test_a_schedule_without_questions_is_false() -> None:
    assert not Schedule()
    assert Schedule(last=["a"])


def test_a_question_may_hold_an_equals_sign() -> None:
    assert parse_timed("1.5= is x=1? ", "--ask-at") == Timed(1.5, "is x=1?")
    assert parse_repeated("10=again", "--every") == Repeated(10, "again")


@pytest.mark.parametrize("text", ["", "5", "=a", "x=a", "-1=a", "nan=a", "inf=a", "5=", "5= "])
def test_what_is_no_time_and_question_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--ask-at"):
        parse_timed(text, "--ask-at")


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="interval"):
        parse_repeated("0=a", "--every")


def test_questions_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('\ufeff{"at": 2, "ask": "Was ist grün?"}\n\n{"ask": "end"}\n{"at": 0, "ask": "b"}', "utf-8")
    assert read_questions(path) == ([Timed(2, "Was ist grün?"), Timed(0, "b")], ["end"])


@pytest.mark.parametrize(
    "line",
    [
        "What?",
        "[]",
        '{"at": 1}',
        '{"ask": ""}',
        '{"ask": 1}',
        '{"at": "1:60", "ask": "a"}',
        '{"at": "soon", "ask": "a"}',
        '{"at": -1, "ask": "a"}',
        '{"at": true, "ask": "a"}',
        '{"at": NaN, "ask": "a"}',
        '{"ask": "a", "when": 1}',
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(f'{{"ask": "fine"}}\n{line}\n')
    with pytest.raises(UsageError, match="line 2"):
        read_questions(path)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        read_questions(path)


def test_a_resumed_schedule_asks_what_is_left() -> None:
    asked = Schedule([Timed(1, "a"), Timed(5, "b")], [Repeated(2, "r")], ["end"])
    asked.start_at(0)
    assert asked.due(1) + asked.due(2) + asked.due(3) == ["a", "r"]
    again = Schedule.of(asked.saved(), 3)
    again.start_at(3)
    assert again.due(4) == ["r"]
    assert again.due(5) == ["b"]
    assert again.final() == ["end"]
    assert again.saved().closed_at == 5


def test_what_was_due_at_the_end_is_asked_first() -> None:
    ended = Schedule([Timed(1, "a")], [Repeated(1, "r")])
    ended.start_at(0)
    ended.put_back(ended.due(1))
    assert Schedule.of(ended.saved(), 1).waiting() == ["a", "r"]
    anew = Schedule([Timed(1, "a")])
    anew.go_on(ended.saved(), 1)
    assert anew.waiting() == ["a"]
    assert anew.due(2) == []


def test_questions_given_anew_are_not_asked_twice() -> None:
    before = Schedule([Timed(1, "a")], [Repeated(2, "r")], ["end"])
    before.start_at(0)
    before.due(3)
    anew = Schedule([Timed(1, "a"), Timed(2, "new")], [Repeated(2, "r"), Repeated(4, "other")], ["end"])
    anew.go_on(before.saved(), 3)
    anew.start_at(3)
    assert anew.due(4) == ["new", "r", "other"]
    assert anew.final() == ["end"]


def test_the_end_is_asked_again_only_after_more_was_seen() -> None:
    ended = Schedule(last=["end"])
    ended.start_at(0)
    ended.due(3)
    assert ended.final() == ["end"]
    again = Schedule.of(ended.saved(), 3)
    assert again.final() == []
    again.due(4)
    assert again.final() == ["end"]


def test_a_burst_of_late_seconds_asks_a_repeated_question_once() -> None:
    schedule = Schedule(timed=[Timed(5, "once")], repeated=[Repeated(2, "r")])
    assert schedule.due(2, 100.0) == ["r"]
    burst = [schedule.due(clock, 108.0 + clock / 100, is_late=True) for clock in range(3, 11)]
    assert [question for questions in burst for question in questions] == ["r", "once"]
    assert schedule.left_out == 3
    assert schedule.due(12, 110.0) == ["r"]


def test_a_model_that_is_always_late_is_still_asked() -> None:
    schedule = Schedule(repeated=[Repeated(2, "r")])
    asked = [schedule.due(clock, 3.0 * clock, is_late=True) for clock in range(1, 9)]
    assert [question for questions in asked for question in questions] == ["r"] * 4

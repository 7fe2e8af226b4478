"""The clock of a live stream, with moments chosen by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pytest

from omnitide_cli.runtime import stream_clock
from omnitide_cli.runtime.stream_clock import StreamClock, iso_time


@dataclass
class Unit:
    start: float
    end: float
    complete_at: float | None


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    moment = {"monotonic": 10.0, "time": 1_000_000.0}

    class Time:
        monotonic = staticmethod(lambda: moment["monotonic"])
        time = staticmethod(lambda: moment["time"])

    monkeypatch.setattr(stream_clock, "time", Time)
    return moment


def test_upkeep_is_idle_until_the_next_second_is_over(now: dict[str, float]) -> None:
    clock = StreamClock()
    clock.upkeep(0.0, 1.0)  # nothing is live
    assert clock.idle_s == 0
    clock.take(Unit(0.0, 1.0, complete_at=9.0))
    for began, ended in ((9.0, 9.5), (9.75, 10.5), (11.0, 12.0)):
        clock.upkeep(began, ended)
    assert clock.idle_s == 0.75


def test_a_time_of_day_stays_right_over_a_suspended_machine(now: dict[str, float]) -> None:
    clock = StreamClock()
    clock.take(Unit(0.0, 1.0, complete_at=9.0))
    assert clock.wall(1.0) == iso_time(999_999.0)
    now["time"] += 3600  # the monotonic clock stood still meanwhile
    now["monotonic"] += 1
    clock.take(Unit(1.0, 2.0, complete_at=11.0))
    assert clock.wall(2.0) == iso_time(1_003_600.0)
    assert clock.lag_ms() == 0


def test_a_time_of_day_has_milliseconds_and_an_offset() -> None:
    text = iso_time(1_000_000.5)
    assert datetime.fromisoformat(text).timestamp() == 1_000_000.5
    assert datetime.fromisoformat(text).utcoffset() is not None
    assert text[19:23] == ".500"

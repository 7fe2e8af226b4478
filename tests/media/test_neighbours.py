"""Who falls behind is told what helps: room on the machine where others take it, less work where nobody does."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from omnitide_cli.media import neighbours
from omnitide_cli.media.neighbours import Neighbours


class Machine:
    """Four processors; time passes as it is told."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.busy, self.own, self.load = 500.0, 3.0, 0.3
        self._file = folder / "stat"
        monkeypatch.setattr(neighbours, "STAT", self._file)
        monkeypatch.setattr(neighbours.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(os, "cpu_count", lambda: 4)
        monkeypatch.setattr(os, "sysconf", lambda _: 100)
        monkeypatch.setattr(os, "getloadavg", lambda: (self.load, 0.0, 0.0))
        monkeypatch.setattr(os, "times", lambda: SimpleNamespace(user=self.own, system=0.0))
        self.write()

    def write(self) -> None:
        idle = int((4 * self.now - self.busy) * 100)
        # user nice system idle iowait irq softirq steal guest guest_nice; guests are part of user
        self._file.write_text(f"cpu  {int(self.busy * 60)} 0 {int(self.busy * 40)} {idle} 7 0 0 0 99999 5\ncpu0 1 2\n")

    def pass_time(self, seconds: float, *, others: float, own: float) -> None:
        self.now += seconds
        self.busy += seconds * (others + own)
        self.own += seconds * own
        self.write()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_on_a_quiet_machine_there_is_too_much_work(machine: Machine) -> None:
    seen = Neighbours()
    machine.pass_time(10, others=0.05, own=3.9)
    assert seen.cores() == pytest.approx(0.05, abs=0.01)
    assert seen.remedy().startswith("Use a smaller model")


def test_beside_busy_programs_threads_are_fewer(machine: Machine) -> None:
    seen = Neighbours()
    machine.load = 5.2
    machine.pass_time(10, others=1.6, own=2.4)
    assert seen.cores() == pytest.approx(1.6, abs=0.01)
    expected = "Other programs take 1.6 of 4 cores (load 5.2): close some of them, or try --threads 2."
    assert seen.remedy() == expected
    machine.pass_time(1000, others=4.0, own=0.0)
    assert "--threads 1" in seen.remedy()


def test_only_the_last_half_minute_counts(machine: Machine) -> None:
    seen = Neighbours()
    for _ in range(600):
        machine.pass_time(6, others=0.0, own=4.0)
        seen.look()
    for _ in range(6):
        machine.pass_time(6, others=2.0, own=2.0)
        seen.look()
    found = seen.cores()
    assert found is not None
    assert found > 1.5


def test_where_nothing_is_told_the_load_tells(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "STAT", Path("/nowhere"))
    seen = Neighbours()
    machine.pass_time(10, others=3, own=1)
    assert seen.cores() is None
    assert seen.remedy().startswith("Use a smaller model")
    machine.load = 9.0
    assert seen.remedy() == "The machine is busy (load 9.0, 4 cores): close other programs, or try --threads 1."

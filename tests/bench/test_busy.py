"""`bench busy`: every way of waiting alone and beside busy processes, in turn, and nothing left of either."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.busy import measure
from omnitide_cli.bench.busy.measure import WAYS, Busy
from omnitide_cli.commands.run import run

EXAMPLE = Path(__file__).parents[2] / "examples" / "shapes-and-notes.mp4"


def children() -> list[str]:
    found = Path(f"/proc/self/task/{os.getpid()}/children")
    return found.read_text().split() if found.exists() else []


def test_runs_are_in_turn_and_ratios_are_those_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[dict[str, str], int]] = []
    times = iter([1.0, 1.1, 2.0, 3.0, 3.3, 20.0, 2.0, 2.0, 2.0, 4.0, 4.0, 8.0])

    def played(*_: object, **__: object) -> Any:
        settings = {name: os.environ[name] for name in measure.VARIABLES if name in os.environ}
        seen.append((settings, len(children())))
        return SimpleNamespace(row=SimpleNamespace(stream_loop_s=next(times)))

    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.setattr(measure, "run_in_subprocess", played)
    before = len(children())
    job: Any = None
    rows = Busy(job, threads=2, processes=3, rounds=2).run(lambda _: None, lambda: False)
    assert [settings for settings, _ in seen] == [*WAYS.values()] * 4
    assert [count - before for _, count in seen] == [0, 0, 0, 3, 3, 3] * 2
    assert len(children()) == before
    assert os.environ["OMP_WAIT_POLICY"] == "active"
    first = rows[0]
    assert (first.waiting, first.idle_s, first.busy_s, first.rounds) == ("briefly", 1.5, 3.5, 2)
    assert first.busy_ratio == pytest.approx((3.0 + 2.0) / 2)
    assert first.idle_ratio == pytest.approx((0.5 + 1.0) / 2)
    assert rows[2].idle_ratio == 1.0


def test_stopped_it_tells_whole_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def played(*_: object, **__: object) -> Any:
        nonlocal count
        count += 1
        return SimpleNamespace(row=SimpleNamespace(stream_loop_s=1.0))

    monkeypatch.setattr(measure, "run_in_subprocess", played)
    job: Any = None
    rows = Busy(job, threads=1, processes=1, rounds=9).run(lambda _: None, lambda: count >= 8)
    assert [row.rounds for row in rows] == [1, 1, 1]
    assert Busy(job, threads=1, processes=1, rounds=1).run(lambda _: None, lambda: True) == []


def test_real_sessions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    size = ["--units", "2", "--repeat", "1", "--processes", "1", "--threads", "1"]
    assert run(app, ["bench", "busy", str(EXAMPLE), *size, "--json", "--out", str(tmp_path)]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [row["waiting"] for row in rows] == list(WAYS)
    assert all(row["idle_s"] > 0 and row["busy_s"] > 0 and row["rounds"] == 1 for row in rows)
    with (tmp_path / "busy.csv").open() as file:
        assert [row["waiting"] for row in csv.DictReader(file)] == list(WAYS)

"""A process that is really stopped for some seconds and continued, as by Ctrl-Z or a lid: one gap, and no burst."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers_media import beeps, flashes
from live_devices import Fixture, LoopbackCamera

SCRIPTED = Path(__file__).parents[1] / "scripted.py"
STOPPED_S = 4.0


def stopped(tmp_path: Path, weights: Path, *arguments: object) -> list[dict[str, Any]]:
    """The events of a session that was stopped after its third unit."""
    variables = {
        **os.environ,
        "OMNITIDE_HOME": str(tmp_path / "home"),
        "OMNITIDE_MODEL": str(weights / "tiny.gguf"),
        "OMNITIDE_MMPROJ": str(weights / "mmproj-tiny.gguf"),
    }
    command = [sys.executable, str(SCRIPTED), *map(str, arguments), "--every", "1=What?", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as running:
        try:
            assert running.stdout is not None
            events: list[dict[str, Any]] = []
            while len([event for event in events if event["type"] == "unit"]) < 3:
                events.append(json.loads(running.stdout.readline()))
            os.kill(running.pid, signal.SIGSTOP)
            time.sleep(STOPPED_S)
            os.kill(running.pid, signal.SIGCONT)
            events += [json.loads(line) for line in running.stdout]
            assert running.wait(timeout=60) == 0
        finally:
            running.kill()
    return events


def of(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def test_a_file_that_plays_as_live_goes_on_where_it_was(tmp_path: Path, weights: Path, clip: Path) -> None:
    events = stopped(tmp_path, weights, "watch", clip, "--loop", 3, "--pace", "realtime")
    units = of(events, "unit")
    assert [unit["start"] for unit in units] == [float(number) for number in range(9)]
    assert max(unit["lag_ms"] for unit in units[4:]) < 1500, "they come at their pace, not all at once"
    assert len(of(events, "answer")) == 9
    assert of(events, "warning") == []


@pytest.mark.timeout(120)
def test_of_a_camera_the_gap_is_told_and_asked_about_once(tmp_path: Path, weights: Path) -> None:
    with LoopbackCamera(Fixture(flashes([1.5, 9.5]), beeps([1.5]))) as camera:
        events = stopped(tmp_path, weights, "live", "--camera", camera.url, "--mic", "none", "--duration", 11)
    (warning,) = of(events, "warning")
    assert warning["code"] == "stood-still"
    units = of(events, "unit")
    gaps = [after["start"] - before["end"] for before, after in itertools.pairwise(units)]
    assert sum(gap > 0 for gap in gaps) == 1, "one gap"
    assert STOPPED_S - 1.5 <= max(gaps) <= STOPPED_S + 1
    assert max(unit["lag_ms"] for unit in units[-3:]) < 1500
    assert len(of(events, "answer")) <= len(units), "no burst of questions"

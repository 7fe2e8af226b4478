"""A loopback camera and a loopback microphone: what the real libraries do with devices that work, go and come back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers_media import beeps, flashes
from live_devices import Fixture, LoopbackCamera, LoopbackMicrophone, missing_for_sound

needs_sound = pytest.mark.skipif(missing_for_sound() is not None, reason=str(missing_for_sound()))
MOMENTS = [0.5 + second for second in range(60)]

READER = """
import json, sys, time
import numpy as np
from omnitide_cli.media import FrameFit, open_live

camera, microphone, seconds = sys.argv[1:]
with open_live(camera, microphone, fit=FrameFit.square(32), duration=float(seconds)) as source:
    print(json.dumps({"name": source.name}), flush=True)
    for unit in source:
        for warning in source.warnings:
            print(json.dumps({"warning": warning.code}), flush=True)
        source.warnings.clear()
        if unit is None:
            continue
        loud = np.flatnonzero(np.abs(unit.audio) > 0.1) if unit.audio is not None else []
        print(json.dumps({
            "unit": unit.index, "picture": unit.frame is not None, "sound": unit.audio is not None,
            "late": time.monotonic() - unit.complete_at, "beep": unit.start + loud[0] / 16000 if len(loud) else None,
        }), flush=True)
"""


@pytest.fixture
def fixture() -> Fixture:
    return Fixture(flashes(MOMENTS), beeps(MOMENTS))


@pytest.fixture
def webcam(fixture: Fixture) -> Iterator[LoopbackCamera]:
    with LoopbackCamera(fixture) as device:
        yield device


@pytest.fixture
def microphone(fixture: Fixture) -> Iterator[LoopbackMicrophone]:
    with LoopbackMicrophone(fixture) as device:
        yield device


class Reader:
    """Reads a live source in a process of its own, whose sound server is the test's."""

    def __init__(self, camera: str, microphone: str, seconds: float, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", READER, camera, microphone, str(seconds)],
            env=environment,
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[dict[str, Any]] = []

    def until(self, key: str, value: object = None) -> None:
        """Read up to a line with this key (and value)."""
        assert self._process.stdout
        for line in self._process.stdout:
            self.lines.append(json.loads(line))
            if key in self.lines[-1] and (value is None or self.lines[-1][key] == value):
                return
        raise AssertionError(f"no {key} {value}: {self.end()}")

    def end(self) -> str:
        """Read the rest; what went to standard error, which must be nothing."""
        out, err = self._process.communicate(timeout=60)
        self.lines += [json.loads(line) for line in out.splitlines()]
        return err

    def stop(self) -> str:
        """Enough; what went to standard error so far."""
        self._process.kill()
        return self.end()

    def of(self, key: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if key in line]


def test_a_network_camera_that_is_killed_and_restarted(webcam: LoopbackCamera) -> None:
    reader = Reader(webcam.url, "none", 60)
    reader.until("unit", 1)
    webcam.unplug()
    reader.until("warning", "camera-lost")
    webcam.plug_in()
    reader.until("warning", "camera-back")
    reader.until("picture", True)
    assert reader.stop() == ""
    units = reader.of("unit")
    assert [unit["unit"] for unit in units] == list(range(len(units)))
    assert units[0]["picture"]
    assert max(unit["late"] for unit in units) < 0.5


@needs_sound
def test_a_microphone_that_goes_and_comes_back(microphone: LoopbackMicrophone) -> None:
    reader = Reader("none", "default", 60, microphone.environment)
    reader.until("unit", 1)
    microphone.unplug()
    reader.until("warning", "microphone-lost")
    time.sleep(0.5)
    microphone.plug_in()
    reader.until("warning", "microphone-back")
    reader.until("unit", reader.of("unit")[-1]["unit"] + 2)
    assert reader.stop() == ""
    units = reader.of("unit")
    assert [unit["unit"] for unit in units] == list(range(len(units)))
    assert units[0]["sound"]
    assert not all(unit["sound"] for unit in units)
    assert units[-1]["beep"]
    assert max(unit["late"] for unit in units) < 2.5


@needs_sound
def test_a_sound_server_that_is_killed(microphone: LoopbackMicrophone) -> None:
    reader = Reader("none", "default", 60, microphone.environment)
    reader.until("unit", 0)
    microphone.kill()
    reader.until("warning", "microphone-lost")
    reader.until("sound", False)
    assert reader.stop() == ""
    assert [unit["unit"] for unit in reader.of("unit")] == list(range(len(reader.of("unit"))))

"""`omnitide live` with a loopback camera and an engine that plays a part: flags, questions, signals, devices."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scripted
from helpers_media import flashes
from live_devices import Fixture, LoopbackCamera
from pty_terminal import Terminal

from omnitide_cli.catalog.manifest import Manifest

Omnitide = Callable[..., Any]
Event = dict[str, Any]


@pytest.fixture
def webcam() -> Iterator[LoopbackCamera]:
    with LoopbackCamera(Fixture(flashes([0.5]), np.zeros_like)) as device:
        yield device


@pytest.fixture
def process(weights: Path, tmp_path: Path, webcam: LoopbackCamera) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start `omnitide live` with the scripted engine, as a process that can be signalled."""
    started: list[subprocess.Popen[str]] = []
    environment = {
        **os.environ,
        "OMNITIDE_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "OMNITIDE_CAMERA": webcam.url,
        "OMNITIDE_MIC": "none",
    }

    def start(*arguments: object, **changed: str) -> subprocess.Popen[str]:
        command = [sys.executable, scripted.__file__, "live", *map(str, arguments)]
        started.append(
            subprocess.Popen(
                command,
                env={**environment, **changed},
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def read_until(process: subprocess.Popen[str], kind: str, number: int = 1) -> list[Event]:
    """Events up to the n-th of a kind."""
    assert process.stdout
    found: list[Event] = []
    for line in process.stdout:
        found.append(json.loads(line))
        number -= found[-1]["type"] == kind
        if number == 0:
            return found
    raise AssertionError(process.communicate())


def rest(process: subprocess.Popen[str]) -> list[Event]:
    out, _ = process.communicate(timeout=20)
    return [json.loads(line) for line in out.splitlines()]


def of_type(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


def test_units_questions_and_the_summary(omnitide: Omnitide, engine: Any, webcam: LoopbackCamera) -> None:
    questions = ["--ask-at", "1=First?", "--every", "2=Again?", "--ask", "Last?"]
    done = omnitide("live", "--camera", webcam.url, "--mic", "none", "--duration", 3, "--json", *questions)
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.out.splitlines()]
    assert events[0]["source"] == f"camera {webcam.url}"
    units = of_type(events, "unit")
    assert [(unit["index"], unit["start"], unit["end"]) for unit in units] == [(i, i, i + 1) for i in range(3)]
    assert all(0 < unit["lag_ms"] < 1000 for unit in units)
    assert [(event["at"], event["question"]) for event in of_type(events, "answer")] == [
        (1.0, "First?"),
        (2.0, "Again?"),
        (3.0, "Last?"),
    ]
    summary = events[-1]
    assert (summary["type"], summary["units"], summary["dropped_frames"]) == ("summary", 3, 0)
    fed = engine.opened[0].units
    assert all(unit.frame is not None and unit.audio is None for unit in fed)


def test_a_saved_session_goes_on_at_its_clock(omnitide: Omnitide, engine: Any, webcam: LoopbackCamera) -> None:
    devices = ("live", "--camera", webcam.url, "--mic", "none", "--no-ask")
    done = omnitide(*devices, "--duration", 2, "--save-session", "s.tide")
    assert done.code == 0, done.err
    done = omnitide(*devices, "--duration", 1, "--resume", "s.tide")
    assert done.code == 0, done.err
    assert "resumed at 0:02" in done.err
    assert [(unit.index, unit.start, unit.end) for unit in engine.opened[-1].units] == [(2, 2.0, 3.0)]


def test_plain_text_and_a_hint(omnitide: Omnitide, engine: Any, webcam: LoopbackCamera) -> None:
    done = omnitide("live", "--camera", webcam.url, "--mic", "none", "--duration", 1.2)
    assert done.code == 0
    assert done.out == ""
    assert "no question will be asked" in done.err
    assert "2 units" in done.err


def test_a_slow_engine_gets_fewer_pictures(process: Callable[..., subprocess.Popen[str]]) -> None:
    live = process("--json", "--duration", 4, "--unit-seconds", 0.5, SCRIPTED_ENGINE_DELAY="0.8")
    events = rest(live)
    units = of_type(events, "unit")
    assert [unit["index"] for unit in units] == list(range(8))
    dropped = sum(unit["dropped_frames"] for unit in units)
    assert 0 < dropped < 8
    assert events[-1]["dropped_frames"] == dropped
    assert [event["code"] for event in of_type(events, "warning")] == ["frames-thinned"]
    assert units[-1]["lag_ms"] > 1000


def test_a_lost_camera_is_a_warning_and_the_session_goes_on(
    process: Callable[..., subprocess.Popen[str]], webcam: LoopbackCamera
) -> None:
    live = process("--json")
    events = read_until(live, "unit", 2)
    webcam.unplug()
    events += read_until(live, "warning")
    assert (events[-1]["code"], live.poll()) == ("camera-lost", None)
    webcam.plug_in()
    events += read_until(live, "warning")
    assert events[-1]["code"] == "camera-back"
    events += read_until(live, "unit", 2)
    live.send_signal(signal.SIGINT)
    events += rest(live)
    assert [unit["index"] for unit in of_type(events, "unit")] == list(range(events[-1]["units"]))
    assert events[-1]["history_tokens"] == 45 * events[-1]["units"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_with_a_summary(process: Callable[..., subprocess.Popen[str]], number: signal.Signals) -> None:
    live = process("--json")
    read_until(live, "unit")
    began = time.monotonic()
    live.send_signal(number)
    assert rest(live)[-1]["type"] == "summary"
    assert live.returncode == 130
    assert time.monotonic() - began < 2


def test_a_second_signal_leaves_at_once(process: Callable[..., subprocess.Popen[str]]) -> None:
    live = process("--json", SCRIPTED_ENGINE_DELAY="5")
    read_until(live, "session")
    time.sleep(1.5)  # the engine has its first unit in hand
    live.send_signal(signal.SIGINT)
    time.sleep(0.7)  # sooner it would be the same press of the key
    assert live.poll() is None
    began = time.monotonic()
    live.send_signal(signal.SIGINT)
    assert live.wait(10) == 130
    assert time.monotonic() - began < 1


def test_a_signal_while_the_camera_does_not_answer(
    process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    live = process("--camera", tmp_path / "pipe", "--json")
    time.sleep(2)
    live.send_signal(signal.SIGINT)
    assert live.wait(10) == 130


def test_a_camera_that_hangs_is_given_up(omnitide: Omnitide, engine: Any, tmp_path: Path) -> None:
    """Case 13. A named pipe that nobody writes to blocks in open(2), as a broken driver does."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    began = time.monotonic()
    done = omnitide("live", "--camera", pipe, "--mic", "none")
    took = time.monotonic() - began
    os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))  # lets the thread go
    assert done.code == 5
    assert "does not answer within 4 s" in done.err
    assert took < 5


def test_a_thread_that_hangs_does_not_keep_the_process(
    process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    live = process("--camera", tmp_path / "pipe")
    _, err = live.communicate(timeout=30)
    assert live.returncode == 5
    assert err.count("\n") == 1


def test_no_camera_is_exit_5_before_the_model_is_loaded(omnitide: Omnitide, engine: Any) -> None:
    done = omnitide("live", "--camera", "77", "--mic", "none", "--json")
    assert done.code == 5
    assert done.err.startswith("omnitide: there is no camera 77")
    assert json.loads(done.out)["type"] == "error"
    assert not engine.opened


def test_neither_camera_nor_microphone_is_wrong_usage(omnitide: Omnitide, engine: Any) -> None:
    assert omnitide("live", "--camera", "none", "--mic", "none").code == 2
    assert omnitide("live", "--no-video", "--no-audio").code == 2


def test_without_portaudio_only_live_with_a_microphone_fails(
    omnitide: Omnitide, engine: Any, webcam: LoopbackCamera, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 7."""

    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    assert omnitide("live", "--help").code == 0
    assert omnitide("watch", clip, "--ask", "What?").code == 0
    assert omnitide("live", "--camera", webcam.url, "--mic", "none", "--duration", 1).code == 0
    failed = omnitide("live", "--camera", webcam.url)
    assert failed.code == 5
    assert "apt install libportaudio2" in failed.err


def test_a_model_that_can_not_hear_needs_no_microphone(
    omnitide: Omnitide, engine: Any, webcam: LoopbackCamera, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Manifest, "hears", property(lambda self: False))
    done = omnitide("live", "--camera", webcam.url, "--duration", 1, "--json")
    assert done.code == 0, done.err
    assert [event["code"] for event in of_type([json.loads(line) for line in done.out.splitlines()], "warning")] == [
        "no-sound"
    ]


def test_help_shows_examples(omnitide: Omnitide) -> None:
    done = omnitide("live", "--help")
    assert done.code == 0
    assert "rtsp://" in done.out
    for flag in ("--camera", "--mic", "--duration", "--every", "--ask-at", "--high-watermark"):
        assert flag in done.out


def test_questions_are_typed_while_it_runs(weights: Path, tmp_path: Path, webcam: LoopbackCamera) -> None:
    environment = {
        **os.environ,
        "OMNITIDE_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TERM": "xterm-256color",
        "SCRIPTED_ENGINE_TEXT": " ".join(["word"] * 400),
        "SCRIPTED_ENGINE_DELAY": "0.05",
    }
    terminal = Terminal(["live", "--camera", webcam.url, "--mic", "none"], environment, tmp_path)
    try:
        terminal.wait_to_see("0:01")
        terminal.type("First?\r")
        terminal.wait_to_see("First?")
        terminal.wait_to_see("word word")
        terminal.type("Second?\r")  # ends the first answer, which would take 20 s
        terminal.wait_until(lambda: any(re.search(r"\d:\d\d Second\?", row) for row in terminal.rows), seconds=10)
        terminal.type("/quit\r")
        assert terminal.end() == 0
        assert terminal.is_restored
    finally:
        terminal.close()

"""Devices that are missing, hang, get lost and come back; what a driver would do is played by the test."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rtsp_camera
from helpers_media import Video, flashes, make_clip, plain

from omnitide_cli.errors import DeviceError
from omnitide_cli.media import FrameFit, LiveSource, camera, device_thread, open_live
from omnitide_cli.media.live_pictures import PictureQueue

FIT = FrameFit.square(8)


class FakeCapture:
    """A camera that gives so many frames and then none; `hang` blocks it until the test is over."""

    over = threading.Event()

    def __init__(self, frames: int, hang: bool = False) -> None:
        self.left, self.hang, self.released = frames, hang, False
        self.position = None

    def grab(self) -> bool:
        if self.hang and self.left == 0:
            self.over.wait(30)
        self.left -= 1
        time.sleep(0.005)
        return self.left >= 0

    def canvas(self, fit: FrameFit) -> Any:
        return np.zeros((8, 8, 3), np.uint8)

    def release(self) -> None:
        self.released = True


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeCapture]]:
    """What opening the camera gives, one after the other; then nothing any more."""
    waiting: list[FakeCapture] = []
    monkeypatch.setattr(camera, "refuse_missing", lambda address: None)
    monkeypatch.setattr(camera, "open_capture", lambda address, tell: waiting.pop(0) if waiting else FakeCapture(0))
    monkeypatch.setattr(device_thread, "FIRST_WAIT_S", 0.02)
    FakeCapture.over.clear()
    yield waiting
    FakeCapture.over.set()


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_a_camera_that_gets_lost_is_opened_again(captures: list[FakeCapture]) -> None:
    first, gone, second = FakeCapture(20), FakeCapture(0), FakeCapture(10_000)
    captures += [first, gone, second]
    with open_live("http://camera", "none", fit=FIT) as source:
        assert source.camera is not None
        until(lambda: len(source.warnings) == 2)
        assert [warning.code for warning in source.warnings] == ["camera-lost", "camera-back"]
        assert first.released
        assert gone.released
        assert source.camera.connected
        assert source.camera.losses == 1
    assert second.released
    assert not source.camera.is_alive()


def test_back_off_grows_and_is_bounded(captures: list[FakeCapture], monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    captures.append(FakeCapture(1))
    device = camera.Camera("http://camera", PictureQueue(FIT, 1.0), lambda *_: None)

    def wait(seconds: float | None = None) -> bool:
        waits.append(seconds or 0.0)
        if len(waits) == 12:
            device._closing.set()
        return device.closing

    monkeypatch.setattr(device._closing, "wait", wait)
    device.run()
    assert waits[:4] == [0.02, 0.04, 0.08, 0.16]
    assert waits[-1] == device_thread.LONGEST_WAIT_S


def test_a_device_that_was_steady_is_tried_quickly_again(
    captures: list[FakeCapture], monkeypatch: pytest.MonkeyPatch
) -> None:
    device = camera.Camera("http://camera", PictureQueue(FIT, 1.0), lambda *_: None)
    device._wait = 8.0
    device.up()
    device.lost("it flaps")
    assert device._wait == 8.0
    monkeypatch.setattr(device_thread, "STEADY_S", 0.0)
    device.up()
    device.lost("it was fine")
    assert device._wait == device_thread.FIRST_WAIT_S


def test_a_camera_that_never_answers(captures: list[FakeCapture], monkeypatch: pytest.MonkeyPatch) -> None:
    captures.append(FakeCapture(0, hang=True))
    monkeypatch.setattr("omnitide_cli.media.live.START_LIMIT_S", 0.3)
    began = time.monotonic()
    with pytest.raises(DeviceError, match="does not answer within"):
        open_live("http://camera", "none", fit=FIT)
    assert time.monotonic() - began < 2


def test_a_camera_that_hangs_in_mid_session_holds_up_nothing(captures: list[FakeCapture]) -> None:
    captures.append(FakeCapture(20, hang=True))
    with open_live("http://camera", "none", fit=FIT, unit_seconds=0.1, duration=0.5) as source:
        assert [unit.index for unit in source if unit is not None] == [0, 1, 2, 3, 4]
        began = time.monotonic()
    assert time.monotonic() - began < 2


def test_a_camera_with_no_picture_at_all(captures: list[FakeCapture]) -> None:
    with pytest.raises(DeviceError, match="delivers no picture") as caught:
        open_live("http://user:secret@camera", "none", fit=FIT)
    assert "secret" not in caught.value.message
    assert caught.value.exit_code == 5


def test_a_driver_that_fails_oddly_is_an_error_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(address: str, tell: object) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr(camera, "open_capture", fail)
    with pytest.raises(DeviceError, match="RuntimeError: odd"):
        open_live("http://camera", "none", fit=FIT)


@pytest.mark.parametrize(
    ("address", "message"),
    [("77", "there is no camera 77"), ("/dev/video77", "there is no camera"), ("nothing.mp4", "there is no camera")],
)
def test_a_camera_that_is_not_there(address: str, message: str) -> None:
    began = time.monotonic()
    with pytest.raises(DeviceError, match=message):
        open_live(address, "none", fit=FIT)
    assert time.monotonic() - began < 1


def test_a_folder_and_a_text_are_no_cameras(tmp_path: Path) -> None:
    text = tmp_path / "text.mp4"
    text.write_text("no video")
    for path, message in ((tmp_path, "folder"), (text, "delivers no picture")):
        with pytest.raises(DeviceError, match=message):
            open_live(str(path), "none", fit=FIT)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_driver_that_blocks_while_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A named pipe without a writer blocks where a broken driver does: in open(2)."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr("omnitide_cli.media.live.START_LIMIT_S", 0.5)
    try:
        with pytest.raises(DeviceError, match="does not answer"):
            open_live(str(pipe), "none", fit=FIT)
    finally:
        os.close(os.open(pipe, os.O_RDWR | os.O_NONBLOCK))  # lets the thread go


def test_a_server_that_accepts_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        began = time.monotonic()
        with pytest.raises(DeviceError, match="camera"):
            open_live(f"http://127.0.0.1:{server.getsockname()[1]}/x.mjpg", "none", fit=FIT)
        assert time.monotonic() - began < 5


def test_a_file_is_played_at_its_pace_and_ends_the_stream(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "a clip: 1.mp4", Video(flashes([1.3]), seconds=2.0, fps=20))
    with open_live(clip, "none", fit=FIT) as source:
        began = time.monotonic()
        found = [unit for unit in source if unit is not None]
        took = time.monotonic() - began
    assert 1.5 < took < 2.6
    assert found[-1].end == pytest.approx(2.0, abs=0.3)
    frames = [unit.frame.mean() for unit in found[:2] if unit.frame is not None]
    assert frames[0] < 50
    assert source.warnings == []


def test_a_camera_over_rtsp_that_hangs_up_is_called_again(tmp_path: Path) -> None:
    clip = Path(make_clip(tmp_path / "live.ts", Video(plain((250, 250, 250)), seconds=2.0))).read_bytes()
    found: list[float] = []
    with (
        rtsp_camera.camera(clip) as address,
        open_live(address, "none", fit=FIT, unit_seconds=0.2, duration=10) as source,
    ):
        for unit in source:
            if unit is not None and unit.frame is not None:
                found.append(float(unit.frame.mean()))
            if found and "camera-back" in [warning.code for warning in source.warnings]:
                break
    assert [warning.code for warning in source.warnings][:2] == ["camera-lost", "camera-back"]
    assert min(found) == pytest.approx(0.75 * 250, abs=5)  # a quarter of the canvas is border


# --- microphones


def test_without_portaudio_only_the_microphone_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "sounddevice":
                raise OSError("PortAudio library not found")

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    with pytest.raises(DeviceError, match="PortAudio library not found") as caught:
        open_live("none", "default", fit=FIT)
    assert "apt install libportaudio2" in caught.value.hint
    assert "--mic none" in caught.value.hint


class FakeSounddevice:
    """A sound card that plays a part: delivers blocks from a thread, as PortAudio does."""

    class PortAudioError(Exception):
        pass

    def __init__(self, *, rate: int = 16_000, channels: int = 1, inputs: int = 1) -> None:
        self.rate, self.channels, self.inputs = rate, channels, inputs
        self.streams: list[FakeStream] = []
        self.restarts = 0
        self.gone = False

    def query_devices(self, device: object = None, kind: str | None = None) -> Any:
        found = {
            "name": "Fake USB",
            "index": 0,
            "max_input_channels": self.channels,
            "default_samplerate": float(self.rate),
        }
        speaker = {**found, "name": "Speaker", "max_input_channels": 0}
        return found if kind else [speaker, *[found] * self.inputs]

    def check_input_settings(self, device: object, *, channels: int, dtype: str, samplerate: int) -> None:
        if (channels, samplerate) != (self.channels, self.rate):
            raise self.PortAudioError("not supported")

    def InputStream(self, **settings: Any) -> FakeStream:
        if self.gone:
            raise self.PortAudioError("Device unavailable")
        self.streams.append(FakeStream(**settings))
        return self.streams[-1]

    def _terminate(self) -> None:
        self.restarts += 1

    def _initialize(self) -> None:
        pass


class FakeStream:
    """Gives blocks at real pace until it is unplugged."""

    def __init__(self, *, channels: int, samplerate: int, blocksize: int, callback: Any, **_: object) -> None:
        self.settings = channels, samplerate, blocksize
        self.callback = callback
        self.active = True
        self.unplugged = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._play, daemon=True).start()

    def _play(self) -> None:
        channels, rate, size = self.settings
        status = type("Flags", (), {"input_overflow": False})()
        due = time.monotonic()
        while not self.unplugged.is_set():
            due += size / rate
            time.sleep(max(0.0, due - time.monotonic()))
            self.callback(np.full((size, channels), 0.25, np.float32), size, None, status)

    def abort(self) -> None:
        self.unplugged.set()

    def close(self) -> None:
        pass


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> FakeSounddevice:
    fake = FakeSounddevice()
    monkeypatch.setattr("omnitide_cli.media.microphone.load_sounddevice", lambda: fake)
    monkeypatch.setattr(device_thread, "FIRST_WAIT_S", 0.02)
    return fake


def loudness(source: LiveSource) -> list[float]:
    units = [unit for unit in source if unit is not None]
    return [0.0 if unit.audio is None else float(np.median(unit.audio)) for unit in units]


def test_a_card_of_another_rate_and_in_stereo_is_converted(card: FakeSounddevice) -> None:
    card.rate, card.channels = 48_000, 2
    with open_live("none", "fake", fit=FIT, unit_seconds=0.2, duration=0.6) as source:
        assert loudness(source) == [pytest.approx(0.25, abs=0.01)] * 3
    assert card.streams[0].settings == (2, 48_000, 960)


def test_a_microphone_that_falls_silent_is_opened_again(card: FakeSounddevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnitide_cli.media.microphone.SILENT_S", 0.2)
    with open_live("none", "default", fit=FIT) as source:
        card.streams[0].unplugged.set()
        card.gone = True
        until(lambda: [warning.code for warning in source.warnings] == ["microphone-lost"])
        until(lambda: card.restarts >= 2)
        card.gone = False
        until(lambda: [warning.code for warning in source.warnings] == ["microphone-lost", "microphone-back"])


def test_microphones_are_found_by_a_part_of_their_name(card: FakeSounddevice) -> None:
    with open_live("none", "usb", fit=FIT) as source:
        assert source.name == "microphone usb"
    with pytest.raises(DeviceError, match="no microphone studio") as caught:
        open_live("none", "studio", fit=FIT)
    assert "Fake USB" in caught.value.hint


def test_no_microphone_at_all(card: FakeSounddevice) -> None:
    card.inputs = 0
    with pytest.raises(DeviceError, match="no microphone was found"):
        open_live("none", "default", fit=FIT)


def test_a_microphone_that_is_busy(card: FakeSounddevice) -> None:
    card.gone = True
    with pytest.raises(DeviceError, match="can't be opened: Device unavailable"):
        open_live("none", "default", fit=FIT)

"""Sources that are still being made while they are read: cameras, live servers, pipes, growing files."""

from __future__ import annotations

import http.server
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers_media import Sound, Video, beeps, counting, flashes, make_clip
from rtsp_camera import camera

from omnitide_cli.errors import SourceError
from omnitide_cli.media import FrameFit, MediaUnit, container, open_source

FIT = FrameFit.square(16)
SECONDS = 8


@pytest.fixture
def clip(tmp_path: Path) -> bytes:
    """A flash and a beep at 1.4 s."""
    path = make_clip(tmp_path / "live.ts", Video(flashes([1.4]), SECONDS), Sound(beeps([1.4]), SECONDS))
    return Path(path).read_bytes()


def seen_and_heard(units: list[MediaUnit]) -> tuple[list[int], list[int]]:
    """The units with a flash, those with a beep."""
    flash = [u.index for u in units if u.frame is not None and u.frame.max() > 128]
    beep = [u.index for u in units if u.audio is not None and abs(u.audio).max() > 0.1]
    return flash, beep


def test_a_camera_on_the_network(clip: bytes) -> None:
    with camera(clip) as address, open_source(address, fit=FIT) as source:
        assert (source.info.video_codec, source.info.audio_codec) == ("h264", "aac")
        units = list(source)
    assert len(units) in (SECONDS, SECONDS + 1)  # AAC fills its last block up
    assert seen_and_heard(units) == ([1], [1])


def test_a_camera_that_shows_nothing_is_refused() -> None:
    with camera(b"") as address, pytest.raises(SourceError, match=r"can't be opened|has neither|could be decoded"):
        open_source(address, fit=FIT)


class Live(http.server.BaseHTTPRequestHandler):
    """A server that has the second half only later, or never."""

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, LiveServer)
        self.send_response(200)
        self.end_headers()
        half = len(server.clip) // 2
        self.wfile.write(server.clip[:half])
        server.goes_on.wait(20)
        if not server.stalls:
            self.wfile.write(server.clip[half:])

    def log_message(self, format: str, *args: object) -> None:
        pass


class LiveServer(http.server.ThreadingHTTPServer):
    """Waits in the middle of the clip until `goes_on` is set."""

    daemon_threads = True

    def __init__(self, clip: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Live)
        self.clip, self.goes_on, self.stalls = clip, threading.Event(), False

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@pytest.fixture
def server(clip: bytes) -> Iterator[LiveServer]:
    live = LiveServer(clip)
    threading.Thread(target=live.serve_forever, daemon=True).start()
    yield live
    live.goes_on.set()
    live.shutdown()
    live.server_close()


def test_a_live_server_is_watched_while_it_sends(server: LiveServer) -> None:
    with open_source(f"http://127.0.0.1:{server.server_port}/live.ts", fit=FIT) as source:
        units = iter(source)
        found = [next(units), next(units)]
        server.goes_on.set()  # the rest comes only after the first seconds were used
        found += units
    assert len(found) in (SECONDS, SECONDS + 1)
    assert seen_and_heard(found) == ([1], [1])


def test_a_server_that_stalls_ends_the_stream_with_a_warning(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "READ_TIMEOUT_S", 1.0)
    with open_source(f"http://127.0.0.1:{server.server_port}/live.ts", fit=FIT) as source:
        found = list(source)
        assert "source-interrupted" in [warning.code for warning in source.warnings]
    assert SECONDS // 2 - 1 <= len(found) <= SECONDS // 2 + 1


def test_a_pipe_is_watched_while_it_is_written(clip: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    goes_on = threading.Event()

    def write() -> None:
        with os.fdopen(writer, "wb") as end:
            end.write(clip[: len(clip) // 2])
            end.flush()
            goes_on.wait(20)
            end.write(clip[len(clip) // 2 :])

    writing = threading.Thread(target=write, daemon=True)
    writing.start()
    with os.fdopen(reader, "rb") as buffer:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=buffer, isatty=lambda: False))
        with open_source("-", fit=FIT) as source:
            units = iter(source)
            found = [next(units), next(units)]
            goes_on.set()
            found += units
    writing.join(5)
    assert len(found) in (SECONDS, SECONDS + 1)
    assert seen_and_heard(found) == ([1], [1])


@pytest.mark.parametrize("name", ["clip.ts", "clip.mkv"])
def test_a_file_that_grows_is_read_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    """What a recorder adds while the file is read is used; what it holds at the end of reading is the end."""
    whole = Path(make_clip(tmp_path / f"whole-{name}", Video(counting((256, 192)), 40), Sound(seconds=40))).read_bytes()
    path = tmp_path / name
    path.write_bytes(whole[: len(whole) // 2])
    with open_source(str(path), fit=FIT) as source:
        units = iter(source)
        found = [next(units)]
        path.write_bytes(whole[: len(whole) * 3 // 4])
        found += units
    assert 25 <= len(found) <= 35
    assert all(unit.frame is not None and unit.audio is not None for unit in found[:25])

"""Streams without times, playlists, cameras that speak UDP alone, codecs of today, and streams that are too fast."""

from __future__ import annotations

import functools
import http.server
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
import rtsp_camera
from helpers_media import Sound, Video, beeps, counting, flashes, make_clip, plain
from live_devices import Fixture, LoopbackCamera
from test_cases_pipes import written_into

from omnitide_cli.errors import DeviceError, SourceError
from omnitide_cli.media import FrameFit, container, open_live, open_source
from omnitide_cli.media.behind import Behind

FIT = FrameFit.square(16)


# --- no timestamps


def jpegs(count: int) -> list[bytes]:
    """Grey pictures that say which one they are."""
    pictures = (np.full((48, 64, 3), min(255, 10 + 5 * number), np.uint8) for number in range(count))
    return [cv2.imencode(".jpg", picture)[1].tobytes() for picture in pictures]


def test_a_live_stream_without_times_goes_by_arrival() -> None:
    """Five frames a second that claim to be twenty-five."""
    with LoopbackCamera(Fixture(plain((90, 90, 90)), lambda time: time), fps=5) as camera:
        began = time.monotonic()
        with open_source(camera.url, fit=FIT, duration=4) as source:
            found = list(source)
            took = time.monotonic() - began
            assert not source.warnings
    assert [unit.start for unit in found] == [0, 1, 2, 3]
    assert all(unit.frame is not None for unit in found)
    assert 3.5 < took < 8


@pytest.mark.parametrize("name", ["raw.mjpeg", "raw.h264"])
def test_a_file_without_times_says_which_rate_was_assumed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name.endswith("mjpeg"):
        path.write_bytes(b"".join(jpegs(50)))
    else:
        make_clip(path, Video(counting(), 2, fps=25))
    with open_source(str(path), fit=FIT) as source:
        assert len(list(source)) == 2
        (told,) = source.warnings
        assert told.code == "rate-assumed"
        assert "25 frames a second" in told.message
    with written_into(tmp_path / "pipe", path.read_bytes()) as pipe, open_source(pipe, fit=FIT) as source:
        assert len(list(source)) == 2
        assert "rate-assumed" in [warning.code for warning in source.warnings]


def test_a_single_picture_has_no_rate(tmp_path: Path) -> None:
    (tmp_path / "one.jpg").write_bytes(jpegs(1)[0])
    with open_source(str(tmp_path / "one.jpg"), fit=FIT) as source:
        assert len(list(source)) == 1
        assert not source.warnings


def test_broken_pictures_among_whole_ones(tmp_path: Path) -> None:
    pictures = jpegs(50)
    for number in (7, 20, 33):
        pictures[number] = pictures[number][: len(pictures[number]) // 2]
    (tmp_path / "raw.mjpeg").write_bytes(b"".join(pictures))
    with open_source(str(tmp_path / "raw.mjpeg"), fit=FIT) as source:
        assert len(list(source)) == 2


# --- playlists


class QuietServer(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, http.server.ThreadingHTTPServer]]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietServer, directory=str(folder)))
    server.daemon_threads = True
    server.handle_error = lambda request, client_address: None
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server
    finally:
        server.shutdown()
        server.server_close()


def playlist(folder: Path, *, suffix: str, ended: bool) -> None:
    """Six seconds in pieces of two, whose names end as the server likes."""
    make_clip(
        folder / "all.m3u8",
        Video(flashes([3.4]), 6, fps=10),
        Sound(beeps([3.4]), 6),
        options={"hls_time": "2", "hls_list_size": "0", "hls_segment_filename": str(folder / "s%d.ts")},
    )
    text = (folder / "all.m3u8").read_text()
    for segment in folder.glob("s*.ts"):
        segment.rename(segment.with_suffix(suffix))
    text = text.replace(".ts", suffix)
    (folder / "all.m3u8").write_text(text if ended else text.replace("#EXT-X-ENDLIST", ""))


@pytest.mark.parametrize("suffix", [".jpg", ".html", ".ts"])
def test_segments_may_be_called_as_the_server_likes(tmp_path: Path, suffix: str) -> None:
    playlist(tmp_path, suffix=suffix, ended=True)
    with served(tmp_path) as (address, _):
        for place in (f"{address}/all.m3u8", str(tmp_path / "all.m3u8")):
            with open_source(place, fit=FIT) as source:
                found = list(source)
                assert not source.warnings
            assert [u.index for u in found if u.frame is not None and u.frame.max() > 128] == [3]
        with open_live(f"{address}/all.m3u8", "none", fit=FIT, duration=0.5, unit_seconds=0.5) as live:
            assert [unit.frame is not None for unit in live if unit is not None] == [True]


@pytest.mark.parametrize("dies", [True, False])
def test_a_playlist_that_no_longer_grows_ends_with_a_warning(
    tmp_path: Path, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "PLAYLIST_TIMEOUT_S", 2.0)
    playlist(tmp_path, suffix=".ts", ended=False)
    with served(tmp_path) as (address, server), open_source(f"{address}/all.m3u8", fit=FIT) as source:
        units = iter(source)
        next(units)
        if dies:
            server.shutdown()
            server.server_close()
        began = time.monotonic()
        list(units)
        assert time.monotonic() - began < 40
        assert "source-interrupted" in [warning.code for warning in source.warnings]


# --- RTSP over UDP


class UdpViewer(rtsp_camera._Viewer):
    """A camera that sends its packets over UDP and refuses everything else."""

    def handle(self) -> None:
        port = 0
        while (request := self._request()) is not None:
            method, headers = request
            answer, body, status = {"CSeq": headers.get("cseq", "0"), "Session": "1"}, "", "200 OK"
            if method == "OPTIONS":
                answer["Public"] = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN"
            elif method == "DESCRIBE":
                body = rtsp_camera.SESSION.replace("\n", "\r\n")
                answer |= {"Content-Type": "application/sdp", "Content-Length": str(len(body))}
            elif method == "SETUP" and "TCP" in headers.get("transport", ""):
                status = "461 Unsupported Transport"
            elif method == "SETUP":
                port = int(headers["transport"].partition("client_port=")[2].partition("-")[0])
                answer["Transport"] = headers["transport"] + ";server_port=6970-6971"
            lines = "".join(f"{name}: {value}\r\n" for name, value in answer.items())
            self.wfile.write(f"RTSP/1.0 {status}\r\n{lines}\r\n{body}".encode())
            if method == "PLAY" and port:
                threading.Thread(target=self._send, args=(port,), daemon=True).start()

    def _send(self, port: int) -> None:
        clip = getattr(self.server, "clip")  # noqa: B009
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for number, begin in enumerate(range(0, len(clip), rtsp_camera.PACKETS)):
                head = struct.pack(">BBHII", 0x80, 33, number & 0xFFFF, number * 900, 1)
                sender.sendto(head + clip[begin : begin + rtsp_camera.PACKETS], ("127.0.0.1", port))
                time.sleep(0.002)


@contextmanager
def udp_camera(clip: bytes) -> Iterator[str]:
    server: Any = socketserver.ThreadingTCPServer(("127.0.0.1", 0), UdpViewer)
    server.daemon_threads, server.clip = True, clip
    server.handle_error = lambda request, client_address: None
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"rtsp://127.0.0.1:{server.server_address[1]}/camera"
    finally:
        server.shutdown()
        server.server_close()


def test_a_camera_that_speaks_udp_alone_is_watched(tmp_path: Path) -> None:
    clip = Path(make_clip(tmp_path / "live.ts", Video(counting(), 20, fps=10))).read_bytes()
    with udp_camera(clip) as address:
        with open_source(address, fit=FIT, duration=2) as source:
            assert [unit.frame is not None for unit in source] == [True, True]
        with open_live(address, "none", fit=FIT, duration=0.4, unit_seconds=0.4) as live:
            assert [unit.frame is not None for unit in live if unit is not None] == [True]


def test_a_camera_that_speaks_udp_alone_and_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "OPEN_TIMEOUT_S", 1.0)
    monkeypatch.setattr(container, "READ_TIMEOUT_S", 1.0)
    with (
        udp_camera(b"") as address,
        pytest.raises(SourceError, match="RTSP over UDP, and nothing arrived") as caught,
    ):
        open_source(address, fit=FIT)
    assert "firewall" in caught.value.hint


# --- codecs


def coded(path: Path, codec: str, seconds: float = 2.0) -> str:
    return make_clip(path, Video(plain((250, 250, 250), (64, 64)), seconds, fps=10, codec=codec))


def test_av1_in_front_of_a_live_camera(tmp_path: Path) -> None:
    for name in ("av1.mkv", "av1.mp4"):
        clip = coded(tmp_path / name, "libsvtav1")
        with open_live(clip, "none", fit=FIT, duration=0.6, unit_seconds=0.3) as live:
            frames = [unit.frame for unit in live if unit is not None]
        assert all(frame is not None and frame.mean() > 200 for frame in frames)


def moving_webp(path: Path) -> str:
    with av.open(str(path), "w", format="webp") as file:
        stream: Any = file.add_stream("libwebp_anim", rate=5)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for grey in range(10):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 20 * grey, np.uint8), "rgb24")
            file.mux(stream.encode(frame.reformat(format="yuv420p")))
        file.mux(stream.encode(None))
    return str(path)


def test_a_webp_that_moves_says_what_can_t_be_decoded(tmp_path: Path) -> None:
    clip = moving_webp(tmp_path / "moving.webp")
    with pytest.raises(SourceError, match="animated WebP, which libav can't decode") as caught:
        open_source(clip, fit=FIT)
    assert "GIF or MP4" in caught.value.hint
    with pytest.raises(DeviceError, match="animated WebP, which libav can't decode"):
        open_live(clip, "none", fit=FIT)


def test_a_page_of_a_video_site_names_the_tool_for_it(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<html><body>Watch this!</body></html>" * 50)
    with served(tmp_path) as (address, _), pytest.raises(SourceError) as caught:
        open_source(f"{address}/page.html", fit=FIT)
    assert "yt-dlp -o - URL | omnitide watch -" in caught.value.hint
    assert container.VIDEO_SITES.match("https://www.youtube.com/watch?v=1")
    assert not container.VIDEO_SITES.match("https://example.com/youtube.com")


# --- too slow


def test_a_reader_slower_than_the_stream_is_told_how_far_behind_it_is() -> None:
    told: list[str] = []
    now = 100.0
    behind = Behind(lambda code, message, hint: told.append(f"{message} {hint}"), "use live", lambda: now)
    for second in range(1, 13):
        now += 2.0  # a model that takes two seconds for one
        assert now - behind.complete_at(second) == pytest.approx(second - 1)
    assert len(told) == 1
    assert "use live" in told[0]


def test_a_server_that_sends_a_recording_leaves_nobody_behind() -> None:
    now = 100.0
    behind = Behind(lambda *_: pytest.fail("it is not behind"), "", lambda: now)
    for second in range(1, 30):
        now += 0.3
        assert behind.complete_at(second) == pytest.approx(now)


def test_units_of_a_live_address_say_when_they_were_over() -> None:
    with (
        LoopbackCamera(Fixture(plain((90, 90, 90)), lambda time: time), fps=10) as camera,
        open_source(camera.url, fit=FIT, duration=4) as source,
    ):
        units = iter(source)
        first = next(units)
        time.sleep(1.5)
        second = next(units)
    assert first.complete_at is not None
    assert second.complete_at is not None
    assert time.monotonic() - second.complete_at > 0.4

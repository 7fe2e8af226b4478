"""A camera and a microphone made of this machine alone: MJPEG over HTTP, and a null sink of a private PulseAudio."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from ctypes.util import find_library
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import cv2
import numpy as np
from helpers_media import Picture, Wave

FPS = 25
RATE = 96_000
CHUNK = 480  # samples: 5 ms
PIPE_BYTES = 4096  # the smallest pipe there is: 5 ms of stereo floats at RATE


class Fixture:
    """What camera and microphone are shown: functions of the seconds since `begin` on time.monotonic()'s clock."""

    def __init__(self, picture: Picture, wave: Wave) -> None:
        self.picture, self.wave = picture, wave
        self.begin = time.monotonic()


class LoopbackCamera:
    """Serves a fixture as MJPEG to whoever asks; can be unplugged and plugged in again, or hang."""

    def __init__(self, fixture: Fixture, fps: float = FPS) -> None:
        self.fixture, self.fps = fixture, fps
        self.hangs = False
        self._server: ThreadingHTTPServer | None = None
        self._plugged = threading.Event()
        self._port = 0
        self.plug_in()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/camera.mjpg"

    def plug_in(self) -> None:
        camera = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                camera._serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._server.daemon_threads = True
        self._port = self._server.server_port
        self._plugged.set()
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def unplug(self) -> None:
        self._plugged.clear()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.unplug()

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        request.end_headers()
        number = 0
        began = time.monotonic()
        try:
            while self._plugged.is_set():
                due = began + number / self.fps
                time.sleep(max(0.0, due - time.monotonic()))
                number += 1
                if self.hangs:
                    continue
                picture = cv2.cvtColor(self.fixture.picture(time.monotonic() - self.fixture.begin), cv2.COLOR_RGB2BGR)
                jpeg = cv2.imencode(".jpg", picture)[1].tobytes()
                head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(jpeg)}\r\n\r\n"
                request.wfile.write(head.encode() + jpeg + b"\r\n")
        except OSError:
            return


def missing_for_sound() -> str | None:
    """What this machine lacks for a loopback microphone, in words; None if nothing."""
    if lacking := [program for program in ("pulseaudio", "pactl", "pacat") if not shutil.which(program)]:
        return f"no {lacking[0]}: apt install pulseaudio pulseaudio-utils"
    if not find_library("portaudio"):
        return "no PortAudio: apt install libportaudio2"
    plugins = Path("/usr/lib").glob("**/alsa-lib/libasound_module_pcm_pulse.so")
    return None if next(plugins, None) else "no PulseAudio plugin for ALSA: apt install libasound2-plugins"


class LoopbackMicrophone:
    """A PulseAudio server of its own, in a folder of its own, and a fixture that plays into its null sink."""

    def __init__(self, fixture: Fixture) -> None:
        self.fixture = fixture
        self._folder = Path(tempfile.mkdtemp(prefix="omnitide-pulse-"))
        socket = self._folder / "native"
        (self._folder / ".asoundrc").write_text("pcm.!default { type pulse }\nctl.!default { type pulse }\n")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PULSE_")},
            "HOME": str(self._folder),
            "XDG_RUNTIME_DIR": str(self._folder),
            "XDG_CONFIG_HOME": str(self._folder),
            "PULSE_SERVER": f"unix:{socket}",
        }
        self._server = subprocess.Popen(
            [
                *("pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"),
                *("-L", f"module-native-protocol-unix socket={socket} auth-anonymous=1"),
            ],
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._await(socket)
        self._sink = ""
        self._speaker: subprocess.Popen[bytes] | None = None
        self.plug_in()

    def plug_in(self) -> None:
        self._sink = self._control(
            "load-module", "module-null-sink", "sink_name=fixture", f"rate={RATE}", "format=float32le"
        )
        self._speaker = subprocess.Popen(
            [
                "pacat",
                "--playback",
                "--raw",
                "--format=float32le",
                f"--rate={RATE}",
                "--channels=2",
                "--latency-msec=10",
            ],
            env=self.environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pipesize=PIPE_BYTES,
        )
        threading.Thread(target=self._play, args=(self._speaker,), daemon=True).start()

    def unplug(self) -> None:
        self._control("unload-module", self._sink)
        self._stop(self._speaker)

    def kill(self) -> None:
        """The whole sound server is gone."""
        self._stop(self._server)
        self._stop(self._speaker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _play(self, speaker: subprocess.Popen[bytes]) -> None:
        """The sink takes samples at its own pace; each chunk is what the fixture sounds like at its moment."""
        assert speaker.stdin
        at = time.monotonic()
        try:
            while True:
                at = max(at, time.monotonic())
                times = at - self.fixture.begin + np.arange(CHUNK) / RATE
                at += CHUNK / RATE
                speaker.stdin.write(np.repeat(self.fixture.wave(times).astype(np.float32), 2).tobytes())
        except (OSError, ValueError):
            return

    def _control(self, *words: str) -> str:
        done = subprocess.run(["pactl", *words], env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def _await(self, socket: Path) -> None:
        for _ in range(100):
            if socket.exists() or self._server.poll() is not None:
                break
            time.sleep(0.05)
        assert socket.exists(), "PulseAudio did not start"

    @staticmethod
    def _stop(process: subprocess.Popen[bytes] | None) -> None:
        if process is not None:
            process.kill()
            process.wait()
            if process.stdin:
                process.stdin.close()

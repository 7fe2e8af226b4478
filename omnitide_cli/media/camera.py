"""A camera: a number, a device, a network address, or a file that is played at its own pace."""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import cv2

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import DeviceError
from omnitide_cli.media.container import URL
from omnitide_cli.media.device_thread import Link, Tell
from omnitide_cli.media.live_pictures import PictureQueue

OPEN_TIMEOUT_MS = 4000
READ_TIMEOUT_MS = 5000
LIVE_OPTIONS = "rtsp_transport;tcp|flags;low_delay"


class Capture(Protocol):
    """What of cv2.VideoCapture is used."""

    def grab(self) -> bool: ...
    def retrieve(self) -> tuple[bool, Any]: ...
    def get(self, propId: int, /) -> float: ...
    def release(self) -> None: ...


class Camera(Link):
    """Grabs every frame, so that none is old, and converts those that the queue wants.

    Frames bear the time at which they arrived: what cameras say about their own clocks can't be relied upon.
    """

    def __init__(self, address: str, pictures: PictureQueue, tell: Tell) -> None:
        super().__init__("camera", display_name(address), tell)
        self._address = address
        self._pictures = pictures
        self.ended_at: float | None = None
        """Second of the clock at which the file that was played ended."""

    def work(self) -> None:
        refuse_missing(self._address)
        capture = open_capture(self._address)
        try:
            if not capture.grab():
                raise DeviceError(
                    f"the camera {self.device} can't be opened or delivers no picture", _hint(self._address)
                )
            played = _is_recording(self._address, capture)
            began = time.monotonic()
            while not self.closing:
                at = time.monotonic()
                if played:
                    at = max(at, began + capture.get(cv2.CAP_PROP_POS_MSEC) / 1000)
                    self._closing.wait(at - time.monotonic())
                if not self.connected or self._pictures.wants(at):
                    self._take(capture, at)
                if not capture.grab():
                    break
            if played and not self.closing:
                self.ended, self.ended_at = True, time.monotonic()
        finally:
            capture.release()

    def _take(self, capture: Capture, at: float) -> None:
        found, frame = capture.retrieve()
        if not found:
            return
        if not self.connected:
            self.up()
        if self._pictures.wants(at):
            self._pictures.put(at, frame)


def open_capture(address: str) -> Capture:
    """Open a camera; one that isn't there gives no frames. It may block for as long as its driver likes."""
    _silence()
    if address.isdigit():
        return cv2.VideoCapture(int(address))
    if is_device(address):
        return cv2.VideoCapture(address, cv2.CAP_V4L2)
    limits = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, OPEN_TIMEOUT_MS, cv2.CAP_PROP_READ_TIMEOUT_MSEC, READ_TIMEOUT_MS]
    if URL.match(address):
        # One thread: frame threads would hold back as many pictures.
        return cv2.VideoCapture(address, cv2.CAP_FFMPEG, [*limits, cv2.CAP_PROP_N_THREADS, 1])
    # From the root on, lest libav read "12:30.mp4" as a protocol named "12".
    return cv2.VideoCapture(str(Path(address).absolute()), cv2.CAP_FFMPEG, limits)


def refuse_missing(address: str) -> None:
    """Say at once what the system knows without touching the device. Raises DeviceError."""
    if URL.match(address):
        return
    number = address.isdigit()
    if number and not sys.platform.startswith("linux"):
        return
    path = Path(f"/dev/video{address}" if number else address)
    if not path.exists():
        raise DeviceError(
            f"there is no camera {display_name(address)}" + (f" ({path})" if number else ""), _others() + _hint(address)
        )
    if path.is_dir():
        raise DeviceError(f"the camera {address} is a folder", _hint(address))
    if not os.access(path, os.R_OK):
        raise DeviceError(
            f"the camera {path} can't be read: no permission",
            "Add yourself to its group: sudo usermod -aG video $USER, then log in again.",
        )


def is_device(address: str) -> bool:
    """Whether the address is a device of the system and no file."""
    try:
        return stat.S_ISCHR(Path(address).stat().st_mode)
    except (OSError, ValueError):
        return False


def _is_recording(address: str, capture: Capture) -> bool:
    """Files are played at their own pace, on a server as well; streams tell no number of frames."""
    if address.isdigit() or is_device(address):
        return False
    return not URL.match(address) or capture.get(cv2.CAP_PROP_FRAME_COUNT) > 0


def _others() -> str:
    found = sorted(str(path) for path in Path("/dev").glob("video*"))
    return f"Found: {', '.join(found)}. " if found else ""


def _hint(address: str) -> str:
    check = "Check the URL, the network and the login" if URL.match(address) else "Check that it is plugged in"
    return f"{check}; --camera takes a number, a device, a URL, a file, or none."


def _silence() -> None:
    """OpenCV and FFmpeg would write to stderr, over the dashboard. Both read their settings when first used."""
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    os.environ.setdefault("OPENCV_FFMPEG_CAPTURE_OPTIONS", LIVE_OPTIONS)
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)

"""A camera: a number, a device, a network address, or a file that is played at its own pace."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import DeviceError
from omnitide_cli.media.capture import Capture, DeviceCapture, StreamCapture
from omnitide_cli.media.container import local_path
from omnitide_cli.media.device_thread import DeviceThread, Tell
from omnitide_cli.media.live_pictures import PictureQueue
from omnitide_cli.paths import is_folder, is_there

LATE_S = 2.0
"""A recording that is so late, because its frames take too long or the process stood still, is not hurried."""


class Camera(DeviceThread):
    """Grabs every frame, so that none is old, and converts those that the queue wants.

    Frames bear the time at which they arrived: what cameras say about their own clocks can't be relied upon.
    """

    def __init__(self, address: str, pictures: PictureQueue, tell: Tell) -> None:
        super().__init__("camera", display_name(address), tell)
        self._address = address
        self._pictures = pictures
        self._told: set[str] = set()
        self.ended_at: float | None = None
        """Second of the clock at which the file that was played ended."""

    def work(self) -> None:
        refuse_missing(self._address)
        capture = open_capture(self._address, self.tell_once)
        try:
            if not capture.grab():
                raise DeviceError(
                    f"the camera {self.device} can't be opened or delivers no picture", _hint(self._address)
                )
            began = time.monotonic()
            while not self.closing:
                at = time.monotonic()
                if capture.position is not None:
                    at = max(at, began + capture.position)
                    began = max(began, at - capture.position - LATE_S)
                    self._closing.wait(at - time.monotonic())
                if not self.connected or self._pictures.wants(at):
                    self._take(capture, at)
                if not capture.grab():
                    break
            if capture.position is not None and not self.closing:
                self.ended, self.ended_at = True, time.monotonic()
        finally:
            capture.release()

    def tell_once(self, code: str, message: str, hint: str) -> None:
        """A warning of the stream's own; the camera may be opened again and again."""
        if code not in self._told:
            self._told.add(code)
            self._tell(code, message, hint)

    def _take(self, capture: Capture, at: float) -> None:
        canvas = capture.canvas(self._pictures.fit)
        if canvas is None:
            return
        if not self.connected:
            self.up()
        if self._pictures.wants(at):
            self._pictures.put(at, canvas)


def open_capture(address: str, tell: Tell) -> Capture:
    """Open a camera; it may block for as long as its driver likes. A device that isn't there gives no frames.

    Raises DeviceError.
    """
    if address.isdigit() or is_device(address):
        return DeviceCapture(address)
    return StreamCapture(address, tell)


def refuse_missing(address: str) -> None:
    """Say at once what the system knows without touching the device. Raises DeviceError."""
    path = local_path(address)
    if path is None and address != "-":
        return
    number = address.isdigit()
    if number and not sys.platform.startswith("linux"):
        return
    path = Path(f"/dev/video{address}") if number else path or Path(address)
    if not is_there(path):
        raise DeviceError(
            f"there is no camera {display_name(address)}" + (f" ({path})" if number else ""), _others() + _hint(address)
        )
    if is_folder(path):
        raise DeviceError(f"the camera {address} is a folder", _hint(address))
    if not os.access(path, os.R_OK):
        group = "Add yourself to its group: sudo usermod -aG video $USER, then log in again."
        is_device = path.is_relative_to("/dev")
        raise DeviceError(
            f"the camera {path} can't be read: no permission",
            group if is_device else "Change its permissions, or copy it.",
        )


def is_device(address: str) -> bool:
    """Whether the address is a device of the system and no file or pipe."""
    path = local_path(address)
    try:
        return path is not None and path.is_char_device()
    except (OSError, ValueError):
        return False


def _others() -> str:
    found = sorted(str(path) for path in Path("/dev").glob("video*"))
    return f"Found: {', '.join(found)}. " if found else ""


def _hint(address: str) -> str:
    check = "Check the URL, the network and the login" if local_path(address) is None else "Check that it is plugged in"
    return f"{check}; --camera takes a number, a device, an address or a file, or none."

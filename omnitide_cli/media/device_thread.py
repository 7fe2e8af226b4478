"""A device that is opened again when it is lost: the thread behind a camera and a microphone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from omnitide_cli.errors import DeviceError

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 8.0
STEADY_S = 10.0
"""What was up for so long is worth a quick try again; a device that flaps is not."""

Tell = Callable[[str, str, str], None]
"""Takes code, message and hint of a warning; called from the thread of a device."""


class DeviceThread(threading.Thread):
    """Opens a device, lets it run until it is lost, waits and opens it again, each time twice as long.

    Drivers may block for ever in a call that nothing ends. So nobody waits for this thread without a limit, and it
    doesn't keep the process alive.
    """

    def __init__(self, kind: str, name: str, tell: Tell) -> None:
        super().__init__(name=kind, daemon=True)
        self.kind = kind
        self.device = name
        self.connected = False
        self.ended = False
        """The device has come to its end for good: a file was played."""
        self.losses = 0
        self._tell = tell
        self._settled = threading.Event()  # the first attempt has worked or failed
        self._first_error: BaseException | None = None
        self._closing = threading.Event()
        self._wait = FIRST_WAIT_S
        self._up_since = 0.0

    def work(self) -> None:
        """Open the device, call `up` when the first data have come, and return or raise DeviceError when it is lost."""
        raise NotImplementedError

    def wait_ready(self, timeout: float) -> None:
        """Wait for the first data. Raises DeviceError if there are none within `timeout` seconds."""
        if not self._settled.wait(timeout):
            raise DeviceError(
                f"the {self.kind} {self.device} does not answer within {timeout:.0f} s",
                f"Check that it is switched on and not in use elsewhere, or go without it: --{self.flag} none.",
            )
        if self._first_error is not None:
            raise self._first_error

    @property
    def flag(self) -> str:
        """The option that names such a device."""
        return "mic" if self.kind == "microphone" else self.kind

    @property
    def closing(self) -> bool:
        """Whether nobody wants its data any more."""
        return self._closing.is_set()

    def up(self) -> None:
        """The device works."""
        self.connected = True
        self._up_since = time.monotonic()
        if self._settled.is_set() and self.losses:
            self._tell(f"{self.kind}-back", f"the {self.kind} {self.device} is back", "")
        self._settled.set()

    def lost(self, reason: str) -> None:
        """The device doesn't work any more; said once until it is up again."""
        if self.connected:
            self.connected = False
            self.losses += 1
            if time.monotonic() - self._up_since >= STEADY_S:
                self._wait = FIRST_WAIT_S
            self._tell(
                f"{self.kind}-lost",
                f"the {self.kind} {self.device} disconnected: {reason}",
                "OmniTide keeps trying to reconnect; the session continues.",
            )

    def close(self, timeout: float = 0.5) -> None:
        """Stop; a device that hangs is left alone after `timeout` seconds."""
        self._closing.set()
        if self.is_alive():
            self.join(timeout)

    def run(self) -> None:
        while not self.closing:
            reason = "it stopped sending data"
            try:
                self.work()
            except DeviceError as error:
                reason = error.message
                self._fail_first(error)
            except Exception as error:  # whatever a driver does must not end the session
                reason = f"{type(error).__name__}: {error}"
                self._fail_first(DeviceError(f"the {self.kind} {self.device} failed: {reason}", "Try another device."))
            if self.closing or self.ended:
                self.connected = False
                return
            self.lost(reason)
            self._fail_first(DeviceError(f"the {self.kind} {self.device} sends no data", "Try another device."))
            self._closing.wait(self._wait)
            self._wait = min(2 * self._wait, LONGEST_WAIT_S)

    def _fail_first(self, error: DeviceError) -> None:
        if not self._settled.is_set():
            self._first_error = error
            self._settled.set()
            self._closing.set()

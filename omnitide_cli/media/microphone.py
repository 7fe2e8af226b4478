"""A microphone, by the name that the system gives it or as its default."""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import DeviceError
from omnitide_cli.media.device_thread import DeviceThread, Tell
from omnitide_cli.media.live_sound import SoundQueue

BLOCK_S = 0.02
BUFFER_S = 0.2
"""What the driver may hold: a busy machine can keep us from taking blocks for so long before sound is lost."""
SILENT_S = 1.5
"""A device that gives no block for so long is lost; silence is blocks of zeros."""

STOPPED_S = 1.0
"""A wait of a tenth of a second that took so long: the process itself was stopped, not the device."""

STARTING_S = 4.0
"""The same for its first block: sound servers may take their time."""

WITHOUT = "To go without sound, use --mic none."


class Microphone(DeviceThread):
    """Mono sound into a queue, at its rate; converted if the device offers nothing like it."""

    def __init__(self, name: str, sound: SoundQueue, tell: Tell) -> None:
        super().__init__("microphone", name, tell)
        self._name = name
        self._sound = sound
        self._opened = False
        self._heard_at = 0.0
        self._first_block = threading.Event()
        self._resampler: av.AudioResampler | None = None
        self._rate = sound.form.rate

    def work(self) -> None:
        sounddevice = load_sounddevice()
        if self._opened:
            # PortAudio looks for devices when it starts, never again.
            sounddevice._terminate()
            sounddevice._initialize()
        self._opened = True
        stream = self._open(sounddevice)
        self._sound.restart()
        self._first_block.clear()
        self._heard_at = time.monotonic()
        try:
            stream.start()
            while not self.closing and stream.active:
                if time.monotonic() - self._heard_at > (SILENT_S if self.connected else STARTING_S):
                    break
                if not self.connected and self._first_block.is_set():
                    self.up()
                waits_from = time.monotonic()
                (self._closing if self.connected else self._first_block).wait(0.1)
                if time.monotonic() - waits_from > STOPPED_S:  # the process was stopped, the device was not
                    self._heard_at = time.monotonic()
        except sounddevice.PortAudioError as error:
            raise DeviceError(f"the microphone {self.device} failed: {error}", _hint(sounddevice)) from error
        finally:
            if not self.closing:
                self.lost("it stopped sending sound")  # now: closing a dead device may take its time
            with suppress(sounddevice.PortAudioError):
                stream.abort()
                stream.close()

    def close(self, timeout: float = 0.5) -> None:
        """Stop; a device that hangs is left alone after `timeout` seconds, and when the process ends, too."""
        super().close(timeout)
        if self.is_alive() and "sounddevice" in sys.modules:
            atexit.unregister(sys.modules["sounddevice"]._exit_handler)  # it would wait for the device

    def _open(self, sounddevice: Any) -> Any:
        try:
            device = find_device(sounddevice, self._name)
            known = sounddevice.query_devices(device, "input")
            wanted = self._sound.form.rate
            channels, self._rate = _settings(sounddevice, device, known, wanted)
            self._resampler = None if self._rate == wanted else av.AudioResampler("flt", "mono", wanted)
            return sounddevice.InputStream(
                device=device,
                channels=channels,
                samplerate=self._rate,
                blocksize=round(BLOCK_S * self._rate),
                dtype="float32",
                latency=BUFFER_S,
                callback=self._take,
            )
        except (sounddevice.PortAudioError, ValueError) as error:
            raise DeviceError(f"the microphone {self.device} can't be opened: {error}", _hint(sounddevice)) from error

    def _take(self, block: NDArray[np.float32], frames: int, times: Any, status: Any) -> None:
        """Called in a thread of PortAudio's."""
        self._heard_at = time.monotonic()
        samples = np.nan_to_num(block.mean(axis=1) if block.shape[1] > 1 else block[:, 0].copy())
        self._sound.push(self._resampled(samples), self._heard_at, broken=bool(status.input_overflow))
        self._first_block.set()

    def _resampled(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        if self._resampler is None:
            return samples
        frame = av.AudioFrame.from_ndarray(samples[None], "flt", "mono")
        frame.sample_rate = self._rate
        parts = [part.to_ndarray().reshape(-1).astype(np.float32) for part in self._resampler.resample(frame)]
        return np.concatenate(parts) if parts else samples[:0]


def load_sounddevice() -> Any:
    """The module, imported when a microphone is wanted. Raises DeviceError where PortAudio is missing."""
    _silence()
    try:
        import sounddevice
    except OSError as error:
        raise DeviceError(
            f"microphones can't be used: {error}",
            f"Install PortAudio (Debian and Ubuntu: apt install libportaudio2, Fedora: dnf install portaudio,"
            f" macOS: brew install portaudio); {WITHOUT}",
        ) from error
    return sounddevice


def find_device(sounddevice: Any, name: str) -> int | str | None:
    """What sounddevice calls a device: its default, its number, or the one whose name holds `name`."""
    inputs = [device for device in sounddevice.query_devices() if device["max_input_channels"] > 0]
    if not inputs:
        raise DeviceError("no microphone was found", f"Plug one in, or start the sound server. {WITHOUT}")
    if name == "default":
        return None
    wanted = name.casefold()
    exact = [device for device in inputs if device["name"].casefold() == wanted]
    found = exact or [device for device in inputs if wanted in device["name"].casefold()]
    if not found:
        raise DeviceError(f"there is no microphone {name}", _hint(sounddevice))
    return found[0]["index"]


def _settings(sounddevice: Any, device: int | str | None, known: Any, wanted: int) -> tuple[int, int]:
    """Channels and rate that the device takes; best those that need no conversion to the `wanted` rate."""
    own_rate, most = round(known["default_samplerate"]), known["max_input_channels"]
    for channels, rate in ((1, wanted), (1, own_rate), (most, own_rate)):
        with suppress(sounddevice.PortAudioError):
            sounddevice.check_input_settings(device, channels=channels, dtype="float32", samplerate=rate)
            return channels, rate
    return most, own_rate


def _hint(sounddevice: Any) -> str:
    names = [device["name"] for device in sounddevice.query_devices() if device["max_input_channels"] > 0]
    return f"There are: {', '.join(names)}. {WITHOUT}" if names else WITHOUT


def _silence() -> None:
    """Make C code's stderr lead nowhere; Python's own is not touched.

    ALSA and PortAudio tell there what they look for and don't find, over the dashboard, and offer nothing against it.
    Only glibc lets the stream be replaced.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.fopen.restype = ctypes.c_void_p
        ctypes.c_void_p.in_dll(libc, "stderr").value = libc.fopen(os.devnull.encode(), b"w")

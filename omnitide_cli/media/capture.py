"""The pictures of a camera one by one: of a device through OpenCV, of an address, a file or a pipe through libav."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import av
import cv2
import numpy as np
from av.codec.context import Flags as CodecFlags
from av.error import FFmpegError
from numpy.typing import NDArray

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import DeviceError, SourceError
from omnitide_cli.media.clock import LONGEST_PAUSE_S, Timed, timed
from omnitide_cli.media.container import local_path, open_container, undecodable
from omnitide_cli.media.demux import Demuxer, Lull
from omnitide_cli.media.device_thread import Tell
from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.picture import upright_picture
from omnitide_cli.media.streams import picture_stream

OPEN_TIMEOUT_S = 4.0
READ_TIMEOUT_S = 5.0
PLAYLIST_TIMEOUT_S = 20.0
DECODER_THREADS = 2


class Capture(Protocol):
    """A camera that is open."""

    def grab(self) -> bool:
        """Go on to the next picture, converting nothing; False at the end. Raises DeviceError where it broke off."""
        ...

    def canvas(self, fit: FrameFit) -> NDArray[np.uint8] | None:
        """The picture that was grabbed, [H, W, 3] RGB on the canvas; None if it can't be had."""
        ...

    @property
    def position(self) -> float | None:
        """Of what is played at its own pace: second of the picture since the first one. None: live."""
        ...

    def release(self) -> None: ...


class DeviceCapture:
    """A camera of this machine, by its number or its device file."""

    def __init__(self, address: str) -> None:
        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)  # it would write over the dashboard
        number = address.isdigit()
        self._capture = cv2.VideoCapture(int(address)) if number else cv2.VideoCapture(address, cv2.CAP_V4L2)
        self.position: float | None = None

    def grab(self) -> bool:
        return self._capture.grab()

    def canvas(self, fit: FrameFit) -> NDArray[np.uint8] | None:
        found, frame = self._capture.retrieve()
        return fit.fit(np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), np.uint8)) if found else None

    def release(self) -> None:
        self._capture.release()


class StreamCapture:
    """What libav reads. Recordings and pipes are played at their own pace; of the rest frames are taken as they come,
    since what cameras say about their own clocks can't be relied upon."""

    def __init__(self, address: str, tell: Tell) -> None:
        """Raises DeviceError."""
        self._name = display_name(address)
        self._tell = tell
        self._broke_off: str | None = None
        try:
            read_s = PLAYLIST_TIMEOUT_S if ".m3u" in address.lower() else READ_TIMEOUT_S
            self._container = open_container(address, (OPEN_TIMEOUT_S, read_s))
        except SourceError as error:
            raise DeviceError(f"the camera delivers no picture: {error.message}", error.hint) from error
        stream = picture_stream(self._container)
        if stream is None:
            self._container.close()
            raise DeviceError(f"the camera {self._name} has only sound, no picture", "Name another one.")
        self._is_played = local_path(address) is not None or bool(self._container.duration)
        if self._is_played:
            stream.thread_type, stream.thread_count = "AUTO", DECODER_THREADS
        else:  # frame threads, and pictures that wait to be sorted, would come late
            stream.thread_type, stream.thread_count = "SLICE", DECODER_THREADS
            stream.codec_context.flags |= CodecFlags.low_delay
        demuxer = Demuxer(self._container, [stream], self._note, longest_pause_s=LONGEST_PAUSE_S)
        rate = stream.average_rate or stream.guessed_rate
        frames: Iterator[object] = demuxer.frames(stream)
        if self._is_played:
            frames = timed(demuxer.frames(stream), 1 / rate if rate else None, self._note)
        self._moments = (moment for moment in frames if not isinstance(moment, Lull))
        self._frame: av.VideoFrame | None = None
        self._first: float | None = None
        self.position: float | None = None

    def grab(self) -> bool:
        moment = next(self._moments, None)
        if moment is None:
            if self._frame is None and self._broke_off is None:
                raise DeviceError(undecodable(self._container, self._name).message, "Name another camera or file.")
            if self._broke_off is not None and not self._is_played:
                raise DeviceError(self._broke_off)
            return False
        if isinstance(moment, Timed):
            begin = float(moment.begin)
            self._first = begin if self._first is None else self._first
            self.position, moment = begin - self._first, moment.frame
        assert isinstance(moment, av.VideoFrame)
        self._frame = moment
        return True

    def canvas(self, fit: FrameFit) -> NDArray[np.uint8] | None:
        try:
            return upright_picture(self._frame, fit) if self._frame is not None else None
        except (FFmpegError, MemoryError):
            return None

    def release(self) -> None:
        self._container.close()

    def _note(self, code: str, message: str, hint: str) -> None:
        """What a stream's clock or damage does is no news where frames count as they come."""
        if code == "source-interrupted":
            self._broke_off = message
        elif self._is_played:
            self._tell(code, message, hint)

"""Packets of one container, handed to the tracks that decode them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from av.audio.frame import AudioFrame
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.error import EOFError as EndOfFile
from av.error import FFmpegError
from av.frame import Frame
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from omnitide_cli.media.arrival import ArrivalReader
from omnitide_cli.media.container import reason
from omnitide_cli.media.continuity import Continuity
from omnitide_cli.media.picture import PixelShape
from omnitide_cli.media.silence import is_silent
from omnitide_cli.media.streams import is_moving

DAMAGE_HINT = "Copy or record it again if you need that part."
LULL_S = 10
LULL_BYTES = 64 << 20
LISTEN_S = 5
"""How far is read ahead to find a sound track that isn't silent."""

MICROSECOND = Fraction(1, 1_000_000)


@dataclass(frozen=True, slots=True)
class Lull:
    """Stands in the place of a frame: the stream has nothing before `time` (seconds, as its timestamps)."""

    time: Fraction


class Demuxer:
    """Reads a container once for several streams.

    What one track does not want yet waits, compressed, for the other. If a stream is silent while the other goes on
    for `lull_s` seconds or LULL_BYTES bytes, its reader gets a Lull instead of waiting: a camera's microphone may stay
    off for hours. A demuxer with a single stream never needs one.
    """

    def __init__(
        self,
        container: InputContainer,
        streams: Sequence[VideoStream | AudioStream],
        warn: Callable[[str, str, str], None],
        *,
        longest_pause_s: float,
        is_live: bool = False,
        lull_s: float = LULL_S,
        reader: ArrivalReader | None = None,
    ) -> None:
        """For `longest_pause_s` and `is_live` see Continuity. With a `reader`, frames bear the time at which they
        came, in seconds of time.monotonic()."""
        self.container = container
        self._warn = warn
        self._lull_s = lull_s
        self._reader = reader
        self._waiting: dict[int, deque[Packet]] = {stream.index: deque() for stream in streams}
        if reader is not None:
            self._packets = iter(reader)
        else:
            others = [*(s for s in container.streams.video if is_moving(s)), *container.streams.audio]
            packets = container.demux(*others)
            steady = Continuity(packets, self._waiting.keys(), longest_pause_s, is_live=is_live, tell=warn)
            self._packets = iter(steady)
        self._bytes = dict.fromkeys(self._waiting, 0)
        self._reached: dict[int, Fraction] = {}
        self._first: Fraction | None = None
        self.damaged = 0

    def first_heard(self, streams: Sequence[AudioStream]) -> AudioStream:
        """The first of the streams in which something is heard within LISTEN_S seconds, else the first; the others are
        read no more. Before any frame is taken."""
        heard: set[int] = set()
        while streams[0].index not in heard and not self._has_reached(streams) and (packet := self._read()) is not None:
            is_sound = bool(packet.size) and packet.stream.index in {stream.index for stream in streams}
            if is_sound and any(not is_silent(_samples(frame)) for frame in self._decoded(packet.decode)):
                heard.add(packet.stream.index)
        chosen = next((stream for stream in streams if stream.index in heard), streams[0])
        for stream in streams:
            stream.codec_context.flush_buffers()
            if stream is not chosen:
                del self._waiting[stream.index], self._bytes[stream.index]
                self._reached.pop(stream.index, None)
        return chosen

    def _has_reached(self, streams: Sequence[AudioStream]) -> bool:
        reached = max(self._reached.values(), default=self._first)
        enough = reached is not None and self._first is not None and reached - self._first > LISTEN_S
        return enough or sum(self._bytes.values()) > LULL_BYTES

    def frames(self, stream: VideoStream | AudioStream) -> Iterator[Frame | Lull]:
        """The decoded frames of one of the streams, in the order of their presentation."""
        shape = PixelShape(stream) if isinstance(stream, VideoStream) else None
        for frame in self._all_frames(stream):
            if shape is not None and isinstance(frame, VideoFrame):
                shape.note(frame)
            reader = self._reader
            if reader is not None and reader.notes_times and reader.arrived_at and isinstance(frame, Frame):
                frame.pts, frame.time_base = round(reader.arrived_at / MICROSECOND), MICROSECOND
            yield frame

    def _all_frames(self, stream: VideoStream | AudioStream) -> Iterator[Frame | Lull]:
        for packet in self._packets_of(stream.index):
            if isinstance(packet, Lull):
                yield packet
            else:
                yield from self._decoded(packet.decode)
        # At an orderly end the last packet has flushed the decoder already and this finds nothing.
        yield from self._decoded(lambda: stream.codec_context.decode(None))

    def _decoded(self, decode: Callable[[], Sequence[object]]) -> Iterator[Frame]:
        try:
            frames = decode()
        except EndOfFile:
            return
        except (FFmpegError, ValueError):
            self.count_damage()
            return
        for frame in frames:
            if isinstance(frame, Frame):
                if frame.is_corrupt:
                    self.count_damage()
                yield frame

    def _packets_of(self, index: int) -> Iterator[Packet | Lull]:
        mine = self._waiting[index]
        while True:
            while mine:
                packet = mine.popleft()
                self._bytes[index] -= packet.size
                yield packet
            packet = self._read()
            if packet is None:
                return
            if (lull := self._lull(index)) is not None:
                yield lull

    def _read(self) -> Packet | None:
        """Take one packet from the container into its queue; None at the end."""
        try:
            packet = next(self._packets, None)
        except (FFmpegError, OSError) as error:
            self._warn(
                "source-interrupted",
                f"reading stopped early: {reason(error)}",
                "Everything before that point was used.",
            )
            return None
        if packet is None:
            return None
        index = packet.stream.index  # packet.stream_index is 0 in the packets that flush a decoder
        if index not in self._waiting:
            return packet
        if packet.dts is not None:
            self._reached[index] = packet.dts * packet.time_base
            if self._first is None:
                self._first = self._reached[index]
        self._waiting[index].append(packet)
        self._bytes[index] += packet.size
        return packet

    def _lull(self, index: int) -> Lull | None:
        ahead = max((time for other, time in self._reached.items() if other != index), default=None)
        if ahead is None or self._waiting[index]:
            return None
        if sum(self._bytes.values()) > LULL_BYTES:
            return Lull(ahead)
        silent_since = self._reached.get(index, self._first)
        if silent_since is None or ahead - silent_since <= self._lull_s:
            return None
        return Lull(ahead - LULL_S)

    def count_damage(self) -> None:
        """Something could not be decoded, or not be converted, as it should; the first time the user is told."""
        self.damaged += 1
        if self.damaged == 1:
            self._warn("source-damaged", "a part of the source is damaged and was skipped", DAMAGE_HINT)


def _samples(frame: Frame) -> np.ndarray:
    return frame.to_ndarray() if isinstance(frame, AudioFrame) else np.zeros(0)

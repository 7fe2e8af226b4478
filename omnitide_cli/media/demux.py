"""Packets of one container, handed to the tracks that decode them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from av.audio.stream import AudioStream
from av.container import InputContainer
from av.error import EOFError as EndOfFile
from av.error import FFmpegError
from av.frame import Frame
from av.packet import Packet
from av.video.stream import VideoStream

from omnitide_cli.media.container import reason

DAMAGE_HINT = "Copy or record it again if you need that part."
LULL_S = 10
LULL_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Lull:
    """Stands in the place of a frame: the stream has nothing before `time` (seconds, as its timestamps)."""

    time: Fraction


class Demuxer:
    """Reads a container once for several streams.

    What one track does not want yet waits, compressed, for the other. If a stream is silent while the other goes on
    for LULL_S seconds or LULL_BYTES bytes, its reader gets a Lull instead of waiting: a camera's microphone may stay
    off for hours. A demuxer with a single stream never needs one.
    """

    def __init__(
        self,
        container: InputContainer,
        streams: Sequence[VideoStream | AudioStream],
        warn: Callable[[str, str, str], None],
    ) -> None:
        self.container = container
        self._warn = warn
        self._packets = container.demux(*streams)
        self._waiting: dict[int, deque[Packet]] = {stream.index: deque() for stream in streams}
        self._bytes = dict.fromkeys(self._waiting, 0)
        self._reached: dict[int, Fraction] = {}
        self._first: Fraction | None = None
        self.damaged = 0

    def frames(self, stream: VideoStream | AudioStream) -> Iterator[Frame | Lull]:
        """The decoded frames of one of the streams, in the order of their presentation."""
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
        return Lull(ahead - LULL_S) if silent_since is not None and ahead - silent_since > LULL_S else None

    def count_damage(self) -> None:
        """Something could not be decoded, or not be converted, as it should; the first time the user is told."""
        self.damaged += 1
        if self.damaged == 1:
            self._warn("source-damaged", "part of the source is damaged and was skipped", DAMAGE_HINT)

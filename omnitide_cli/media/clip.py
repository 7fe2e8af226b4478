"""A few seconds of a file as a file of their own: packets are copied, nothing is encoded anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import av
from av.container import InputContainer
from av.error import FFmpegError
from av.packet import Packet
from av.stream import Stream

from omnitide_cli.errors import SourceError
from omnitide_cli.media.container import open_container

CONTAINERS = (".mp4", ".mkv")
"""What plays everywhere, and what takes every codec."""


def copy_clip(source: Path, start: float, end: float, target: Path) -> Path:
    """Copy `start` to `end` seconds of a file, from the key frame before on, to `target` with the ending that its
    codecs need; the file that was written. Raises SourceError where that can't be."""
    problem: Exception | None = None
    for ending in CONTAINERS:
        path = target.with_name(f"{target.name}{ending}")
        part = target.with_name(f".{target.name}.part{ending}")
        try:
            _copy(source, start, end, part)
            part.replace(path)
            return path
        except (FFmpegError, OSError, ValueError) as error:
            problem = error
        finally:
            with suppress(OSError):
                part.unlink()
    raise SourceError(f"no clip of {source.name} could be written: {problem}", "the pictures are there all the same")


def _copy(source: Path, start: float, end: float, target: Path) -> None:
    with open_container(str(source)) as given, av.open(str(target), "w") as written:
        streams = [each[0] for each in (given.streams.video, given.streams.audio) if each]
        copies = {each.index: written.add_stream_from_template(each) for each in streams}
        zero = (given.start_time or 0) / av.time_base
        given.seek(int((zero + start) * av.time_base), backward=True)
        packets = list(_packets(given, streams, zero, start, end))
        if not any(at + float((each.duration or 0) * _base(each)) > start for at, each in packets):
            raise ValueError("there is nothing at that time")
        origin = min(float(each.dts * _base(each)) for _, each in packets if each.dts is not None)
        for _, packet in packets:
            shift = round(origin / _base(packet))
            packet.pts, packet.dts = (packet.pts or 0) - shift, (packet.dts or 0) - shift
            packet.stream = copies[packet.stream.index]
            written.mux(packet)


def _packets(
    given: InputContainer, streams: Sequence[Stream], zero: float, start: float, end: float
) -> Iterator[tuple[float, Packet]]:
    """Packets with their times, from the last point before `start` from which the first stream can be decoded."""
    found: list[tuple[float, Packet]] = []
    over: set[int] = set()
    for packet in given.demux(*streams):
        if packet.dts is None or packet.pts is None:
            continue
        at = float(packet.pts * _base(packet)) - zero
        is_first = packet.stream.index == streams[0].index
        if at >= end:
            over.add(packet.stream.index)
            if len(over) == len(streams):
                break
            continue
        if is_first and packet.is_keyframe and at <= start:
            found.clear()
        if found or is_first:  # sound before the first picture would be out of step with it
            found.append((at, packet))
    yield from found


def _base(packet: Packet) -> Fraction:
    return packet.time_base or Fraction(1, av.time_base)

"""A few seconds of a file as a file of their own: packets are copied, nothing is encoded anew."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import av
from av.error import FFmpegError

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
        origin: float | None = None
        over: set[int] = set()
        for packet in given.demux(streams):
            if packet.dts is None or packet.pts is None or packet.time_base is None:
                continue
            at = float(packet.pts * packet.time_base) - zero
            if at >= end:
                over.add(packet.stream.index)
                if len(over) == len(streams):
                    break
                continue
            if origin is None:
                if packet.stream.index != streams[0].index:
                    continue  # sound before the first picture would be out of step with it
                origin = float(packet.dts * packet.time_base)
            shift = round(origin / packet.time_base)
            packet.pts, packet.dts = packet.pts - shift, packet.dts - shift
            if packet.dts < 0:
                continue
            packet.stream = copies[packet.stream.index]
            written.mux(packet)
        if origin is None:
            raise ValueError("there is nothing at that time")

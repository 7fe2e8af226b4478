"""Where a jump lands in files without an index, in which the same time may come twice."""

from __future__ import annotations

from collections.abc import Iterator

import av
from av.container import InputContainer
from av.packet import Packet

from omnitide_cli.media.container import open_container

SEARCHED = ("mpeg", "flac")
"""Formats in which libav searches for a time by halves, and may find it in the second of two joined recordings."""


def leads_astray(path: str, to: float) -> bool:
    """Whether what comes first at second `to` of a file's own time lies before the place at which libav lands.

    Packets up to there are read and not decoded: as fast as the disk. Raises FFmpegError.
    """
    with open_container(path) as jumped:
        jumped.seek(round(to * av.time_base))
        landed = next((packet.pos for packet in _placed(jumped)), None)
    if landed is None:
        return True
    with open_container(path) as read:
        for packet in _placed(read):
            if packet.pos is not None and packet.pos >= landed:
                return False
            if packet.pts is not None and packet.pts * packet.time_base > to:
                return True
    return True


def _placed(container: InputContainer) -> Iterator[Packet]:
    """The packets of its first track that know their place in the file."""
    return (packet for packet in container.demux(container.streams[0]) if packet.pos is not None)

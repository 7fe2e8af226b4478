"""Whether an HLS stream has ended, or its server no longer adds to it."""

from __future__ import annotations

import re
from contextlib import suppress
from urllib.parse import urljoin

import av
from av.error import FFmpegError

LIMIT_S = 3.0
MOST_BYTES = 4 << 20

_VARIANT = re.compile(r"^#EXT-X-STREAM-INF[^\n]*\n+([^#\n]+)", re.MULTILINE)


def has_ended(address: str) -> bool:
    """Whether the playlist, or the first one that it lists, bears the mark of its end."""
    text = _text_of(address)
    if variant := _VARIANT.search(text):
        text = _text_of(urljoin(address, variant[1].strip()))
    return "#EXT-X-ENDLIST" in text


def _text_of(address: str) -> str:
    """What stands at an address, read as libav reads it: with its logins, proxies and certificates."""
    parts: list[bytes] = []
    with suppress(FFmpegError, OSError), av.open(address, format="data", timeout=LIMIT_S) as container:
        for packet in container.demux():
            parts.append(bytes(packet))
            if sum(map(len, parts)) > MOST_BYTES:
                break
    return b"".join(parts).decode("utf-8", "replace").replace("\r\n", "\n")

"""Models in several files, as llama.cpp's gguf-split writes them: NAME-00001-of-00003.gguf and so on."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from omnitide_cli.errors import ModelError

HEAD = 1 << 16
"""Bytes in which a later part's description lies; it has no vocabulary."""

_NAME = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.gguf")
_UINT16 = struct.pack("<I", 2)  # GGUF's number for the type


def parts_of(path: Path) -> list[Path]:
    """All files of a model, of which the first is given: [path] for a model in one file.

    Raises ModelError when another part is given, when one is missing, and for a part that was renamed.
    """
    matched = _NAME.fullmatch(path.name)
    if matched is None:
        _refuse_renamed(path)
        return [path]
    number, count = int(matched["part"]), int(matched["parts"])
    paths = [path.with_name(f"{matched['stem']}-{part:05}-of-{count:05}.gguf") for part in range(1, count + 1)]
    if number != 1 and paths:
        raise ModelError(f"{path} is part {number} of a model in {count} files", f"name the first part: {paths[0]}")
    missing = [part.name for part in paths if not part.exists()]
    if missing:
        raise ModelError(
            f"{path} is a model in {count} files, and {', '.join(missing[:3])}{' …' if len(missing) > 3 else ''} "
            f"{'is' if len(missing) == 1 else 'are'} missing",
            f"put all parts into {path.parent.absolute()}",
        )
    return paths or [path]


def _refuse_renamed(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(HEAD)
    number, count = (_uint16(head, key) for key in (b"split.no", b"split.count"))
    if number is None or count is None or count < 2:
        return
    raise ModelError(
        f"{path} is part {number + 1} of a model in {count} files, under another name",
        f"give all parts their names back: NAME-{1:05}-of-{count:05}.gguf and so on",
    )


def _uint16(head: bytes, key: bytes) -> int | None:
    """A value of a GGUF file's description; None where it has no such key."""
    at = head.find(key + _UINT16)
    start = at + len(key) + len(_UINT16)
    return struct.unpack_from("<H", head, start)[0] if at >= 0 and len(head) >= start + 2 else None

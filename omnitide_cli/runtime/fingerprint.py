"""Whether a file of weights is the one that it was, without reading gigabytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

from omnitide_cli.runtime.parts import parts_of

EDGE = 1 << 20  # bytes of the head, where a GGUF file describes itself, and of the tail
SAMPLE = 1 << 16
SAMPLES = 16  # between the two: fine-tunes of one model differ in their weights alone


def fingerprint(path: Path) -> str:
    """Size and a hash of head, tail and samples between them. In several files: the first's + a hash of the others'.

    Raises ModelError when not all of its files are there.
    """
    first, *others = (_fingerprint(part) for part in parts_of(path))
    return f"{first}+{hashlib.sha256(','.join(others).encode()).hexdigest()}" if others else first


def is_same(now: str, saved: str) -> bool:
    """Sessions saved by earlier versions know of the first of several files alone."""
    return saved in (now, now.partition("+")[0])


def _fingerprint(path: Path) -> str:
    size = path.stat().st_size
    places = [(0, EDGE), (max(0, size - EDGE), EDGE)]
    places += [(size * i // (SAMPLES + 1), SAMPLE) for i in range(1, SAMPLES + 1)]
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for place, length in places:
            file.seek(place)
            digest.update(file.read(length))
    return f"{size}:{digest.hexdigest()}"

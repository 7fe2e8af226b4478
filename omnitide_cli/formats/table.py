"""Columns of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def columns(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Each line's cells under those of the first line, which is the heading; the first column to the left."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        cells = (
            text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(line, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()

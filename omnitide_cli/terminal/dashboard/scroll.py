"""How far something is scrolled. Drawing says how much of it there is: only then is it known how it wraps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Scroll:
    """Lines that are scrolled away; written by keys and, as far as it was too many, by drawing."""

    lines: int = 0
    page: int = 1
    """Lines that were shown last."""

    def by(self, lines: int) -> None:
        """So many further."""
        self.lines = max(self.lines + lines, 0)

    def by_page(self, pages: int) -> None:
        """A page further; one line stays, so that the eye finds its place."""
        self.by(pages * max(self.page - 1, 1))

    def drawn(self, total: int, room: int) -> None:
        """There are `total` lines and so much room."""
        self.page = max(room, 1)
        self.lines = min(self.lines, max(total - room, 0))

"""Models that think aloud before they answer: their thoughts are told from the answer while both are being spoken."""

from __future__ import annotations

import re

NAMES = ("think", "thinking", "thought", "reasoning")
OPEN = re.compile(rf"<({'|'.join(NAMES)})>", re.IGNORECASE)
CLOSE = re.compile(rf"</({'|'.join(NAMES)})>", re.IGNORECASE)
LONGEST = len("</reasoning>")


class Thoughts:
    """Takes an answer piece by piece, wherever the pieces end, and gives back what is no thought.

    A thought that is never closed lasts to the end. One whose beginning stood in the prompt has a closing mark alone:
    what came before it has been shown, but `answer` leaves it out.
    """

    def __init__(self, *, shown: bool = False) -> None:
        """`shown`: thoughts are part of the answer; only how long they take is of interest."""
        self.is_thinking = False
        self._shows = shown
        self.tokens = 0
        """Pieces that were (a part of) thoughts and their marks."""
        self._uncertain = 0
        self._held = ""
        self._said: list[str] = []
        self._has_said = False

    def take(self, piece: str, *, final: bool = False) -> str:
        """The part of the answer that is certain by now; `final`: nothing more comes."""
        was_thinking = self.is_thinking
        shown = self._sorted_out(piece, final)
        if was_thinking or self.is_thinking:
            self.tokens += self._uncertain + (not final)
            self._uncertain = 0
        else:
            self._uncertain = self._uncertain + 1 if self._held else 0
        return shown

    def _sorted_out(self, piece: str, final: bool) -> str:
        self._held += piece
        shown = ""
        while True:
            mark = (CLOSE if self.is_thinking else OPEN).search(self._held)
            stray = None if self.is_thinking else CLOSE.search(self._held)
            if stray and (mark is None or stray.start() < mark.start()):
                if self._shows:
                    shown += self._held[: stray.end()]
                else:
                    self._said.clear()
                    shown, self._has_said = "", False
                self._held = self._held[stray.end() :]
                continue
            if mark is None:
                break
            if self._shows:
                shown += self._held[: mark.end()]
            elif not self.is_thinking:
                shown += self._held[: mark.start()]
            self._held = self._held[mark.end() :]
            self.is_thinking = not self.is_thinking
        keep = 0 if final else self._beginning_of_a_mark()
        certain, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        shown += certain if self._shows or not self.is_thinking else ""
        if not self._has_said:
            shown = shown.lstrip()
        self._has_said = self._has_said or bool(shown)
        self._said.append(shown)
        return shown

    @property
    def answer(self) -> str:
        """The answer so far, without thoughts."""
        return "".join(self._said).strip()

    def _beginning_of_a_mark(self) -> int:
        """Characters at the end that may be the beginning of a mark."""
        at = self._held.rfind("<", max(0, len(self._held) - LONGEST))
        if at < 0:
            return 0
        rest = self._held[at:].lower()
        marks = [f"<{slash}{name}>" for slash in ("", "/") for name in NAMES]
        return len(rest) if any(mark.startswith(rest) for mark in marks) else 0

"""A line that is being typed: what every key does to it. Plain values, no terminal.

Why not prompt_toolkit: it wants the screen and an event loop for itself, so that the dashboard would have to be drawn
through it, a second rendering of every frame, for the twenty keys that follow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

ZERO_WIDTH_JOINER = "\u200d"
LONGEST = 4000


@dataclass(frozen=True, slots=True)
class Line:
    """Text with a cursor before character `cursor`, and the lines typed earlier, oldest first."""

    text: str = ""
    cursor: int = 0
    earlier: tuple[str, ...] = ()
    at: int = 0
    """Which of the earlier lines is shown; their number: the new one."""
    draft: str = ""
    """The new line while an earlier one is shown."""

    def insert(self, text: str) -> Line:
        """With text typed or pasted at the cursor; line breaks and tabs become spaces."""
        clean = "".join(" " if c in "\r\n\t" else c for c in text.replace("\r\n", "\n") if c.isprintable() or c in _OK)
        clean = clean[: LONGEST - len(self.text)]
        whole = self.text[: self.cursor] + clean + self.text[self.cursor :]
        return replace(self, text=whole, cursor=self.cursor + len(clean))

    def changed(self, text: str) -> Line:
        """With another text, the cursor at its end; the same one changes nothing."""
        return self if text == self.text else replace(self, text=text, cursor=len(text))

    def press(self, key: str) -> Line:
        """After a key with a name of its own; unknown ones change nothing."""
        edit = _KEYS.get(key)
        return edit(self) if edit else self

    def entered(self) -> Line:
        """The empty line after Enter; what was typed can be called back."""
        typed = self.text.strip()
        earlier = self.earlier if not typed or self.earlier[-1:] == (typed,) else (*self.earlier, typed)
        return Line(earlier=earlier, at=len(earlier))

    def _moved(self, cursor: int) -> Line:
        return replace(self, cursor=cursor)

    def _cut(self, begin: int, end: int) -> Line:
        return replace(self, text=self.text[:begin] + self.text[end:], cursor=begin)

    def _recalled(self, at: int) -> Line:
        if not 0 <= at <= len(self.earlier) or at == self.at:
            return self
        draft = self.text if self.at == len(self.earlier) else self.draft
        text = draft if at == len(self.earlier) else self.earlier[at]
        return replace(self, text=text, cursor=len(text), at=at, draft=draft)


_OK = "\r\n\t " + ZERO_WIDTH_JOINER + "\u200b\ufe0f\ufe0e"


def before(text: str, cursor: int) -> int:
    """Where the character left of the cursor begins, as people count: an accent or a joined emoji is part of it."""
    at = cursor - 1
    while at > 0 and (_joins(text[at]) or text[at - 1] == ZERO_WIDTH_JOINER):
        at -= 1
    return max(at, 0)


def after(text: str, cursor: int) -> int:
    """Where the character right of the cursor ends."""
    at = min(cursor + 1, len(text))
    while at < len(text) and (_joins(text[at]) or text[at - 1] == ZERO_WIDTH_JOINER):
        at += 1
    return at


def _joins(character: str) -> bool:
    from rich.cells import get_character_cell_size

    is_skin = "\U0001f3fb" <= character <= "\U0001f3ff"
    return is_skin or (character != " " and get_character_cell_size(character) == 0)


def _word_before(line: Line) -> int:
    at = line.cursor
    while at > 0 and line.text[at - 1] == " ":
        at -= 1
    while at > 0 and line.text[at - 1] != " ":
        at -= 1
    return at


def _word_after(line: Line) -> int:
    at = line.cursor
    while at < len(line.text) and line.text[at] == " ":
        at += 1
    while at < len(line.text) and line.text[at] != " ":
        at += 1
    return at


_KEYS = {
    "left": lambda line: line._moved(before(line.text, line.cursor)),
    "right": lambda line: line._moved(after(line.text, line.cursor)),
    "home": lambda line: line._moved(0),
    "end": lambda line: line._moved(len(line.text)),
    "word-left": lambda line: line._moved(_word_before(line)),
    "word-right": lambda line: line._moved(_word_after(line)),
    "backspace": lambda line: line._cut(before(line.text, line.cursor), line.cursor),
    "delete": lambda line: line._cut(line.cursor, after(line.text, line.cursor)),
    "cut-word": lambda line: line._cut(_word_before(line), line.cursor),
    "cut-before": lambda line: line._cut(0, line.cursor),
    "cut-after": lambda line: line._cut(line.cursor, len(line.text)),
    "up": lambda line: line._recalled(line.at - 1),
    "down": lambda line: line._recalled(line.at + 1),
}

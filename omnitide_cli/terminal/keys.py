"""Bytes from a terminal as keys: text, pasted text, and keys that have a name."""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple


class Key(NamedTuple):
    """A named key (`text` is empty), or text that was typed (name "text") or pasted ("paste")."""

    name: str
    text: str = ""


PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
MOST_PASTED = 1 << 16

_CONTROL = {
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x01": "home",
    "\x02": "left",
    "\x04": "end-of-input",
    "\x05": "end",
    "\x06": "right",
    "\x08": "backspace",
    "\x0b": "cut-after",
    "\x0c": "redraw",
    "\x0e": "down",
    "\x10": "up",
    "\x15": "cut-before",
    "\x17": "cut-word",
    "\x7f": "backspace",
}
_FINAL = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end"}
_NUMBERED = {"1": "home", "3": "delete", "4": "end", "5": "page-up", "6": "page-down", "7": "home", "8": "end"}
_META = {"b": "word-left", "f": "word-right", "\x7f": "cut-word", "\x08": "cut-word"}
_SEQUENCE = re.compile(r"\x1b(?:\[(?P<csi>[0-9;?<=>]*)(?P<final>[@-~])|O(?P<ss3>[A-Za-z])|(?P<meta>[^\[O\x1b]))")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?<=>]*|O)?$")


class KeyReader:
    """Takes bytes as they come, split wherever they like; gives the keys that are whole."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._rest = ""
        self._pasting = False

    def feed(self, data: bytes) -> list[Key]:
        """Keys that these bytes complete."""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        keys: list[Key] = []
        while text:
            text = self._pasted(text, keys) if self._pasting else self._typed(text, keys)
        return keys

    def flush(self) -> list[Key]:
        """What is left when nothing more comes for a moment: a lone Esc is a key."""
        if self._rest == "\x1b" and not self._pasting:
            self._rest = ""
            return [Key("escape")]
        return []

    def _pasted(self, text: str, keys: list[Key]) -> str:
        pasted, end, rest = text.partition(PASTE_END)
        if not end and len(text) < MOST_PASTED:
            self._rest = text  # the end may come in two pieces
            return ""
        self._pasting = False
        keys.append(Key("paste", pasted))
        return rest

    def _typed(self, text: str, keys: list[Key]) -> str:
        if text[0] == "\x1b":
            return self._escaped(text, keys)
        if text[0] in _CONTROL:
            keys.append(Key(_CONTROL[text[0]]))
            return text[1:]
        end = next((i for i, c in enumerate(text) if c == "\x1b" or c in _CONTROL), len(text))
        keys.append(Key("text", text[:end]))
        return text[end:]

    def _escaped(self, text: str, keys: list[Key]) -> str:
        if text.startswith(PASTE_BEGIN):
            self._pasting = True
            return text[len(PASTE_BEGIN) :]
        found = _SEQUENCE.match(text)
        if not found:
            if _UNFINISHED.match(text):
                self._rest = text
                return ""
            keys.append(Key("escape"))
            return text[1:]
        name = _name(found)
        if name:
            keys.append(Key(name))
        return text[found.end() :]


def _name(found: re.Match[str]) -> str:
    if found["meta"]:
        return _META.get(found["meta"], "")
    if found["ss3"]:
        return _FINAL.get(found["ss3"], "")
    number, _, modifier = found["csi"].partition(";")
    name = _NUMBERED.get(number, "") if found["final"] == "~" else _FINAL.get(found["final"], "")
    return f"word-{name}" if modifier and name in ("left", "right") else name

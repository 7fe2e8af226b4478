"""Subtitles as WebVTT and SubRip have them: cues, their times, and files of them that already exist."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

LONGEST_S = 8.0
SHORTEST_S = 1.0
LEAD_S = 3.0
"""How long before the end of the media a cue begins that would begin at it."""

STAMP = r"(?:(\d+):)?(\d\d):(\d\d)[.,](\d{3})"
TIMING = re.compile(rf"^{STAMP} +--> +{STAMP}", re.MULTILINE)
BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


@dataclass(frozen=True, slots=True)
class Cue:
    """A block of lines with its times, or (`start` None) a block of another kind. `offset`: its characters' place."""

    text: str
    offset: int = 0
    start: float | None = None
    end: float = 0.0
    end_at: int = 0
    """Where within `text` the second time stands."""

    @property
    def name(self) -> str:
        """The line before its times, if there is one."""
        above = self.text.partition("-->")[0].rpartition("\n")[0]
        return above.rpartition("\n")[2]

    @property
    def words(self) -> str:
        """What is shown."""
        return self.text.partition("-->")[2].partition("\n")[2]


def parse(text: str) -> list[Cue]:
    """The blocks of a file, in their order."""
    blocks: list[Cue] = []
    begin = 0
    for gap in [*((found.start(), found.end()) for found in BLANK.finditer(text)), (len(text), len(text))]:
        block = text[begin : gap[0]].strip("\n")
        if block:
            offset = text.index(block, begin)
            blocks.append(_cue(block, offset))
        begin = gap[1]
    return blocks


def _cue(block: str, offset: int) -> Cue:
    timing = TIMING.search(block)
    if timing is None:
        return Cue(block, offset)
    parts = [int(part or 0) for part in timing.groups()]
    start, end = (hours * 3600 + minutes * 60 + seconds + ms / 1000 for hours, minutes, seconds, ms in _fours(parts))
    return Cue(block, offset, start, end, timing.start(5) if timing[5] else timing.start(6))


def _fours(parts: list[int]) -> list[tuple[int, int, int, int]]:
    return [(parts[at], parts[at + 1], parts[at + 2], parts[at + 3]) for at in (0, 4)]


def in_order(blocks: list[Cue]) -> bool:
    """Whether no cue begins before the one above it, as players want it."""
    starts = [block.start for block in blocks if block.start is not None]
    return starts == sorted(starts)


def ordered(blocks: list[Cue], suffix: str) -> str:
    """The same cues in the order of their times, numbered anew; none reaches into the next but for its shortest."""
    head = [block for block in blocks if block.start is None]
    cues = sorted((block for block in blocks if block.start is not None), key=lambda cue: cue.start or 0.0)
    merged: list[Cue] = []
    for cue in cues:
        if merged and merged[-1].start == cue.start:
            merged[-1] = replace(merged[-1], text=f"{merged[-1].text}\n{cue.words}", end=max(merged[-1].end, cue.end))
        else:
            merged.append(cue)
    parts = [block.text for block in head]
    for number, cue in enumerate(merged, 1):
        start = cue.start or 0.0
        following = merged[number].start if number < len(merged) else None
        end = cue.end if following is None else min(cue.end, max(following, start + SHORTEST_S))
        parts.append(block(suffix, number, start, end, cue.words, cue.name))
    return "\n\n".join(parts) + ("\n" if parts else "")


def block(suffix: str, number: int, start: float, end: float, words: str, name: str = "") -> str:
    """A cue's lines, without an empty one around them. `name`: what WebVTT calls it, which no player shows; SubRip has
    numbers in its place."""
    name = f"{number}\n" if suffix == ".srt" else f"{name}\n" if name else ""
    return f"{name}{stamp(start, suffix)} --> {stamp(end, suffix)}\n{words}"


def end_of(start: float, following: float) -> float:
    """How long a cue is shown when another begins at `following`."""
    return min(max(following, start + SHORTEST_S), start + LONGEST_S)


def start_before(end_of_media: float, previous: float | None) -> float:
    """Where a cue begins that belongs to the end of the media, so that people see it."""
    start = max(end_of_media - LEAD_S, 0.0)
    if previous is not None:
        start = max(start, min(previous + SHORTEST_S, (previous + end_of_media) / 2))
    return start


def words(question: str, text: str, suffix: str) -> str:
    """Question and answer as a cue's lines: an empty one would end it, so there is none."""
    shown = f"{_line(question)}\n{_line(text)}".rstrip()
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") if suffix == ".vtt" else shown


def _line(text: str) -> str:
    return " ".join(text.split())


def stamp(seconds: float, suffix: str) -> str:
    """A moment as the format writes it: 00:00:04.500, with a comma in SubRip."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    point = "," if suffix == ".srt" else "."
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{point}{milliseconds:03}"

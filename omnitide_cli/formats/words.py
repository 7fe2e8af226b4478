"""Numbers, moments and errors in words."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from omnitide_cli.times import clock

CONTROL_CODES = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def moment(seconds: float, wall: str | None) -> str:
    """Media time, and the time of day where there is one: 0:08, 12:30 14:03:22."""
    return f"{clock(seconds)} {wall[11:19]}" if wall else clock(seconds)


def stretch(start: float, end: float) -> str:
    """A stretch of media time: 12:31–12:33, or 40:10 for one second or less."""
    return clock(start) if end - start <= 1.0 + 1e-6 else f"{clock(start)}–{clock(end)}"


def evidence(stretches: Iterable[tuple[float, float]]) -> str:
    """What an answer rests on beside what is in view: from 12:31–12:33, 40:10; "" for nothing."""
    found = [stretch(start, end) for start, end in stretches]
    return f"from {', '.join(found)}" if found else ""


def size(count: int) -> str:
    """Bytes in powers of ten: 512 B, 1.2 MB."""
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"


def counted(count: int, noun: str) -> str:
    """1 unit, 2 units."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def one_line(text: str) -> str:
    """Without line breaks and doubled spaces."""
    return " ".join(text.split())


def printable(text: str) -> str:
    """Without control codes: neither a model nor a file name may drive the terminal."""
    return text.translate(CONTROL_CODES)


def with_hint(message: str, hint: str) -> str:
    """What happened and what to do, in one line."""
    parts = [printable(one_line(part)) for part in (message, hint[:1].upper() + hint[1:]) if part.strip()]
    return " ".join(part if part[-1] in ".?!" else f"{part}." for part in parts)


def saved(path: str, at: float) -> str:
    """That a session is in a file, and how to resume it."""
    return printable(f"saved {path} ({clock(at)}); --resume {shlex.quote(path)} continues from there")


def error_code(error: BaseException) -> str:
    """A stable short word for a kind of error: ModelError is model-error."""
    name = type(error).__name__
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")

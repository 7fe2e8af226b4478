"""Values that people give to options and settings: times as they are written, and what is said of a wrong one."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import typer

TIME = "TIME"
"""The metavar of a time: seconds, m:ss or h:mm:ss."""
NO_TIME = "no time in seconds, m:ss or h:mm:ss"
_CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d{1,2}(?:\.\d+)?)")
_SIXTY = 60
MOST_MEANT = 3
_NOT_ONE_OF = re.compile(r"'(.*)' is not one of ('.*')([^']*?)\.?$")  # as Typer says it
_QUOTED = re.compile(r"'([^']*)'")


def seconds_of(text: str | float) -> float:
    """Seconds of 90, 1.5, 1:30, 1:02:03.5. Raises ValueError."""
    if isinstance(text, bool):
        raise ValueError(NO_TIME)
    found = _CLOCK.fullmatch(text.strip()) if isinstance(text, str) else None
    if found:
        hours, minutes, seconds = int(found[1] or 0), int(found[2]), float(found[3])
        if seconds >= _SIXTY or (found[1] and minutes >= _SIXTY):
            raise ValueError(NO_TIME)
        return 3600 * hours + 60 * minutes + seconds
    try:
        seconds = float(text)
    except (TypeError, ValueError):
        seconds = math.nan
    if not math.isfinite(seconds):
        raise ValueError(NO_TIME)
    return seconds


def seconds(*, least: float = 0.0, most: float = math.inf) -> Callable[[Any], float]:
    """A parser of an option's times between two bounds."""

    def parse(text: Any) -> float:
        value = seconds_of(text)
        if value < least:
            raise ValueError(f"a time below {least:g} s")
        if value > most:
            raise ValueError(f"a time above {most:g} s")
        return value

    return parse


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """The known names that may have been meant: those that begin so, else the one that looks most like it."""
    by_lower = {each.lower(): each for each in known}
    wanted = name.strip().lower()
    begun = [each for lower, each in by_lower.items() if len(wanted) > 1 and lower.startswith(wanted)]
    if 0 < len(begun) <= MOST_MEANT:
        return begun
    return [by_lower[near] for near in difflib.get_close_matches(wanted, by_lower, n=1)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """ "did you mean fifo?", or "" where nothing is near."""
    near = nearest(name, known)
    return f"did you mean {' or '.join(near)}?" if near else ""


def explained(error: typer.BadParameter) -> tuple[str, str]:
    """What is wrong with a value, in words of our own, and what was probably meant ("" if nothing is near)."""
    problem = _pydantic_problem(error) or {"type": "", "msg": error.message}
    kind, limits = problem["type"], problem.get("ctx", {})
    choices = _NOT_ONE_OF.search(str(limits.get("error", error.message)))
    if choices:
        known = _QUOTED.findall(choices[2])
        return f"not one of {', '.join(known)}{choices[3]}", did_you_mean(choices[1], known)
    return _REASONS.get(kind, _said)(limits) or problem["msg"], ""


_REASONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "int_parsing": lambda _: "not a whole number",
    "int_from_float": lambda _: "not a whole number",
    "int_type": lambda _: "not a whole number",
    "float_parsing": lambda _: "not a number",
    "float_type": lambda _: "not a number",
    "bool_parsing": lambda _: "neither true nor false",
    "bool_type": lambda _: "neither true nor false",
    "greater_than_equal": lambda limits: f"below {limits['ge']:g}",
    "less_than_equal": lambda limits: f"above {limits['le']:g}",
}


def _said(limits: dict[str, Any]) -> str:
    """What a parser of ours says."""
    return str(limits.get("error", ""))


def wrong_value(error: typer.BadParameter) -> str:
    """What was given, or ""."""
    problem = _pydantic_problem(error)
    if problem is not None:
        return str(problem["input"])
    choices = _NOT_ONE_OF.search(error.message)
    return choices[1] if choices else ""


def _pydantic_problem(error: typer.BadParameter) -> dict[str, Any] | None:
    """Typer checks values with pydantic, whose messages are for programmers."""
    problems: Any = getattr(error.__cause__, "errors", None)
    found = problems() if callable(problems) else None
    return found[0] if isinstance(found, list) and found else None

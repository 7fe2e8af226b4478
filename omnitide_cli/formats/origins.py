"""What is said below an answer of where it comes from, or of how far back anything could have come from."""

from __future__ import annotations

import re

from omnitide_cli.formats.words import evidence
from omnitide_cli.runtime.events import Answer
from omnitide_cli.times import clock

PAST = re.compile(
    r"\b(ago|earlier|before|previous(ly)?|at first|(at|in|from) the (very )?(start|beginning|outset)|"
    r"first (minutes?|seconds?|hours?|half|part)|(\d{1,2}:)?\d{1,2}:\d\d)\b",
    re.IGNORECASE,
)
"""English questions about the past that say so; of others nobody but the model knows. JSON tells it of every answer."""
TIME = re.compile(r"\b(?:(\d{1,2}):)?(\d{1,2}):(\d\d)\b")
SHORTLY_S = 2.0


def origin(answer: Answer) -> str:
    """from 12:31–12:33, 40:10; or for a question about the past that nothing came back for, that history reaches back
    to 3:20; else ""."""
    if answer.recalled:
        return evidence((each.start, each.end) for each in answer.recalled)
    reaches = answer.history_from
    if reaches is None or reaches <= SHORTLY_S or not PAST.search(answer.question):
        return ""
    times = [int(h or 0) * 3600 + int(m) * 60 + int(s) for h, m, s in TIME.findall(answer.question)]
    if times and min(times) < int(reaches):
        return f"{clock(min(times))} is no longer kept: history reaches back to {clock(reaches)}"
    return f"nothing earlier was recalled: history reaches back to {clock(reaches)}"

"""Alerts in words, for terminals, transcripts and the summary."""

from __future__ import annotations

from omnitide_cli.formats.words import counted, one_line
from omnitide_cli.runtime.events import Alert, AlertEnded, RuleTotals


def alert_title(event: Alert | AlertEnded) -> str:
    """What it is called: door, or the question itself."""
    return one_line(event.rule)


def alert_words(event: Alert) -> str:
    """door: A man rings the bell. (97 %)"""
    title = alert_title(event)
    text = f" {one_line(event.text)}" if event.text.strip() else ""
    return f"{title}{'' if title.endswith(('?', '!', '.')) else ':'}{text} ({percent(event.probability)})"


def over_words(event: AlertEnded) -> str:
    """door: over after 12 s"""
    return f"{alert_title(event)}: over after {event.at - event.since:.4g} s"


def totals_words(totals: RuleTotals) -> str:
    """door: 2 alerts in 310 checks; what speaks against the rule, if anything does."""
    title = one_line(totals.rule)
    verdict = {
        "always": "; it says yes to nearly everything: ask for something rarer",
        "never": f"; it never said yes: at most {percent(totals.highest)}",
        "neither": "; the model answers it with neither yes nor no: word it differently",
    }.get(totals.verdict, "")
    return f"{title}: {counted(totals.fired, 'alert')} in {counted(totals.asked, 'check')}{verdict}"


def percent(probability: float) -> str:
    """Never rounded up to certainty."""
    return f"{min(round(100 * probability), 99) if probability < 1 else 100} %"

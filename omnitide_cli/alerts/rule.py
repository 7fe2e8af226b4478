"""One rule: what is waited for, and how certain it must be. From flags, files and Python alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from omnitide_cli.alerts.command import check_command
from omnitide_cli.catalog.values import did_you_mean, seconds_of
from omnitide_cli.errors import UsageError

Senses = Literal["both", "sight", "sound"]
DEFAULT_EVERY_S = 2.0
DEFAULT_THRESHOLD = 0.95
"""Chosen for the shipped model on validation streams (`omnitide bench alerts --split validation`)."""
WHAT_HAPPENS = "What is happening?"
MOST_RULES = 64
LONGEST_S = 86_400.0
LONGEST_NAME = 60
_NAMED = re.compile(rf"\s*([^\s=?]{{1,{LONGEST_NAME}}})\s*=(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """A yes-or-no question, and when its yes is an alert. Raises UsageError for settings that can't be."""

    question: str
    """What is asked: "Is somebody at the door?"."""
    name: str = ""
    """What it is called; the question itself unless given."""
    also: str = ""
    """A second question that must be yes at the same time, for models that understand one thing a question."""
    senses: Senses = "both"
    """What it is about: `sight`, `sound` or `both`. It is checked less often where the other one alone changes."""
    threshold: float = DEFAULT_THRESHOLD
    """Probability of a yes against a no from which on it counts, between 0 and 1; below half of it, it is over."""
    hold: int = 1
    """So many yeses in a row make an alert; once the first has come, every second is asked."""
    every: float = DEFAULT_EVERY_S
    """Seconds between two askings of a scene that changes little."""
    cooldown: float = 30.0
    """Seconds after an alert in which the rule gives no other."""
    command: str | None = None
    """What is run at an alert, in place of `--on-alert`."""
    describe: str = WHAT_HAPPENS
    """What the model is asked for the alert's text; "" asks nothing."""

    def __post_init__(self) -> None:
        problem = self._problem()
        if problem:
            raise UsageError(f"alert rule '{self.name or self.question}': {problem[0]}", problem[1])
        if not self.name:
            object.__setattr__(self, "name", " ".join(self.question.split())[:LONGEST_NAME])
        if self.command is not None:
            check_command(self.command, f"alert rule '{self.name}': command")

    def _problem(self) -> tuple[str, str] | None:
        texts = {"question": self.question, "name": self.name, "also": self.also, "describe": self.describe}
        for key, text in texts.items():
            if not isinstance(text, str):
                return f"{key} is not a text", "put it in quotes"
        numbers = {"threshold": self.threshold, "every": self.every, "cooldown": self.cooldown}
        for key, number in numbers.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                return f"{key} is not a number", "write it without quotes"
        if self.senses not in get_args(Senses):
            return f"senses {self.senses!r} is none", f"choose from {', '.join(get_args(Senses))}"
        if not self.question.strip():
            return "the question is empty", 'ask what can be answered with yes or no: "Is somebody at the door?"'
        if not 0 < self.threshold < 1:
            return f"threshold {self.threshold:g} is not between 0 and 1", "0.5 is as likely as not"
        if isinstance(self.hold, bool) or not isinstance(self.hold, int) or not 1 <= self.hold <= 1000:
            return f"hold {self.hold!r} is not a whole number from 1 to 1000", "1 alerts at the first yes"
        if not 0.1 <= self.every <= LONGEST_S:
            return f"every {self.every:g} is not between 0.1 and {LONGEST_S:g} seconds", "2 is a good start"
        if not 0 <= self.cooldown <= LONGEST_S:
            return f"cooldown {self.cooldown:g} is not between 0 and {LONGEST_S:g} seconds", "30 is a good start"
        if self.command is not None and not isinstance(self.command, str):
            return "command is not a text", "put it in quotes, as it would be typed"
        return None


def parse_rule(text: str, **settings: Any) -> Rule:
    """`NAME=TEXT` or `TEXT`; a name has no spaces. Raises UsageError."""
    found = _NAMED.fullmatch(text)
    name, question = (found[1], found[2]) if found else ("", text)
    if not question.strip():
        raise UsageError(f"--alert '{text}': the question is empty", 'write --alert "door=Is somebody at the door?"')
    return Rule(question.strip(), name, **settings)


def rules_of(table: dict[str, Any], where: str, **defaults: Any) -> list[Rule]:
    """The rules of a file: a table each, by its name; what stands above them holds for all. Raises UsageError."""
    known = [each.name for each in fields(Rule) if each.name != "name"]
    shared = {key: value for key, value in table.items() if not isinstance(value, dict)}
    given = {name: value for name, value in table.items() if isinstance(value, dict)}
    for place, keys in (("", shared), *((f"[{name}] ", value) for name, value in given.items())):
        for key in keys:
            if key not in known or (not place and key == "question"):
                hint = did_you_mean(key, known) or f"a rule has {', '.join(known)}"
                raise UsageError(f"{where}: {place}there is no setting '{key}'", hint)
    if not given:
        raise UsageError(
            f"{where}: there is no rule in it", 'write [door] and below it question = "Is somebody there?"'
        )
    found = []
    for name, settings in given.items():
        if "question" not in settings:
            raise UsageError(f"{where}: [{name}] has no question", 'add question = "…?"')
        try:
            found.append(Rule(name=name, **_timed({**defaults, **shared, **settings})))
        except UsageError as error:
            raise UsageError(f"{where}: {error.message}", error.hint) from error
    return found


def _timed(settings: dict[str, Any]) -> dict[str, Any]:
    """Times may be written as everywhere else: "1:30"."""
    for key in ("every", "cooldown"):
        if isinstance(settings.get(key), str):
            try:
                settings[key] = seconds_of(settings[key])
            except ValueError as error:
                raise UsageError(f"{key} = '{settings[key]}' is {error}", "write seconds, or m:ss") from error
    return settings


def checked(rules: Iterable[Rule]) -> Sequence[Rule]:
    """All rules of a session. Raises UsageError for a name that stands twice, and for very many."""
    found: dict[str, Rule] = {}
    for rule in rules:
        if rule.name in found:
            raise UsageError(f"two alert rules are called '{rule.name}'", "give each a name: --alert NAME=TEXT")
        found[rule.name] = rule
    if len(found) > MOST_RULES:
        raise UsageError(f"{len(found)} alert rules are too many", f"give at most {MOST_RULES}")
    return tuple(found.values())


def with_command(rule: Rule, command: str | None) -> Rule:
    """The rule with the command of all rules, unless it has its own; an empty one runs nothing."""
    return rule if rule.command is not None or command is None else replace(rule, command=command)

"""The turns of a conversation as a model's own chat template writes them (jinja2), found with words that nobody writes.

A template gets a system text, a question, an answer and a question; what it writes between them is what a prompt of
OmniTide has there. Some templates refuse a system role, some want texts as lists of parts: both are tried.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

SYSTEM, QUESTION, ANSWER, NEXT = "SYSTEMWORDS", "FIRSTQUESTION", "FIRSTANSWER", "NEXTQUESTION"


class NoTurns(Exception):
    """A template from which no turns can be found; why."""


@dataclass(frozen=True, slots=True)
class Turns:
    """What stands around the system text, questions and answers."""

    system_prefix: str
    system_suffix: str
    question_suffix: str
    response_suffix: str


PLAIN = Turns(system_prefix="", system_suffix="\n\n", question_suffix="\n\nAnswer:", response_suffix="\n\n")
"""For models without a chat template."""


def turns_of(template: str, *, bos: str = "", eos: str = "") -> Turns:
    """What a chat template writes between the texts; `bos` and `eos` are the names of those tokens. Raises NoTurns."""
    from jinja2 import TemplateError

    try:
        compiled = _environment().from_string(template)
    except TemplateError as error:
        raise NoTurns(f"it can't be read: {error}") from error
    why = "it writes nothing"
    for as_parts in (False, True):
        for with_system in (True, False):
            try:
                return _cut(_Rendering(compiled, as_parts, bos, eos), with_system=with_system)
            except NoTurns as error:
                why = str(error)
            except Exception as error:  # templates raise what they like
                why = str(error) or type(error).__name__
    raise NoTurns(why)


@dataclass(frozen=True, slots=True)
class _Rendering:
    template: Any
    as_parts: bool
    bos: str
    eos: str

    def of(self, messages: Sequence[tuple[str, str]]) -> str:
        return self.template.render(
            messages=[{"role": role, "content": self._content(text)} for role, text in messages],
            add_generation_prompt=True,
            enable_thinking=False,
            bos_token=self.bos,
            eos_token=self.eos,
        )

    def _content(self, text: str) -> str | list[dict[str, str]]:
        return [{"type": "text", "text": text}] if self.as_parts else text


def _cut(rendering: _Rendering, *, with_system: bool) -> Turns:
    system = [("system", SYSTEM)] if with_system else []
    first = [*system, ("user", QUESTION)]
    talk = rendering.of([*first, ("assistant", ANSWER), ("user", NEXT)])
    asked = rendering.of(first)
    texts = ([SYSTEM] if with_system else []) + [QUESTION, ANSWER, NEXT]
    if any(talk.count(text) != 1 for text in texts) or asked.count(QUESTION) != 1:
        raise NoTurns("it loses or repeats what is said")
    between = list(_between(talk, texts))
    begin = talk[: talk.index(texts[0])]
    return Turns(
        system_prefix=begin,
        system_suffix=between[0] if with_system else "\n\n",  # the system text opens the first question
        question_suffix=asked.partition(QUESTION)[2],  # with what keeps a model from thinking aloud
        response_suffix=between[-1],
    )


def _between(talk: str, texts: Sequence[str]) -> Iterator[str]:
    ends = [talk.index(text) + len(text) for text in texts]
    for end, text in zip(ends, texts[1:], strict=False):
        if talk.index(text) < end:
            raise NoTurns("it changes the order of what is said")
        yield talk[end : talk.index(text)]


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    """Templates come with files from anywhere, so nothing in them may touch this machine."""
    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}` marks for training what the assistant has said; it changes nothing."""

        tags = {"generation"}  # noqa: RUF012 - Jinja2 declares it so

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
    )
    environment.filters["tojson"] = _to_json
    environment.globals.update(raise_exception=_refuse, strftime_now=_today)
    return environment


def _to_json(value: Any, indent: int | None = None, **_: object) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)


def _refuse(message: object) -> None:
    raise NoTurns(f"it says: {message}")


def _today(form: str) -> str:
    return datetime.datetime.now().astimezone().strftime(form)

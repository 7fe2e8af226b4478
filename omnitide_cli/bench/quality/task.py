"""Exams: streams with questions that are due right after some of their seconds, and what counts as a right answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.scene import any_scene, simple_scene
from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.stream import any_stream
from omnitide_cli.media import FrameFit, MediaUnit, open_source

QUESTIONS_A_STREAM = 10


class Question(Protocol):
    """What is asked and true, which kind of question it is, by which sense ("") and how old (None): if that is said."""

    @property
    def kind(self) -> str: ...
    @property
    def sense(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def answer(self) -> str: ...
    @property
    def age(self) -> int | None: ...


class TimedQuestion(Question, Protocol):
    """A question that is asked at `at` media seconds."""

    @property
    def at(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Task:
    """A stream of media; `due` has for each unit the questions to ask right after it."""

    name: str
    units: Sequence[MediaUnit]
    due: Sequence[Sequence[Question]]
    is_right: Callable[[str, str], bool]
    """Of what was said and what is true."""


def exact(said: str, true: str) -> bool:
    """To the letter."""
    return said == true


def world_tasks(split: Split, seed: int, units: int, limit: int, *, simple: bool = False) -> Iterator[Task]:
    """Streams of `units` seconds of the generated world, seed after seed, until `limit` questions are together.

    `simple`: of the part of it without printed signs and groups of shapes.
    """
    draw = simple_scene if simple else any_scene
    while limit > 0:
        stream = any_stream(split, seed, units, min(QUESTIONS_A_STREAM, limit), draw=draw)
        yield Task(f"{split.name} {seed}", list(units_of(stream)), stream.due(), exact)
        limit -= len(stream.asked)
        seed += 1


T = TypeVar("T", bound=TimedQuestion)


def watched(video: str, fit: FrameFit, questions: Sequence[T], *, hears: bool) -> tuple[list[MediaUnit], list[list[T]]]:
    """Units up to the last question, and what to ask after each: what comes after the end, after the last one."""
    units: list[MediaUnit] = []
    due: list[list[T]] = []
    left = list(questions)
    with open_source(video, fit=fit, audio=hears) as media:
        for unit in media:
            units.append(unit)
            due.append([question for question in left if question.at <= unit.end])
            left = [question for question in left if question.at > unit.end]
            if not left:
                return units, due
    if due:
        due[-1] += left
    return units, due

"""Exams: streams with questions that are due right after some of their seconds, and what counts as a right answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.scene import any_scene, simple_scene
from omnitide_cli.bench.world.split import Split
from omnitide_cli.bench.world.stream import any_stream
from omnitide_cli.media.unit import MediaUnit

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

"""`omnitide bench quality` with the shipped model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from omnitide_cli.bench.quality.encodings import SharedModel
from omnitide_cli.bench.quality.measure import fill
from omnitide_cli.bench.quality.results import results
from omnitide_cli.bench.quality.task import Task, world_tasks
from omnitide_cli.bench.world.split import TEST
from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, Event, UnitIngested
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

OPTIONS = EngineOptions(threads=2, unit_tokens=48, max_answer_tokens=48, high_watermark=500, low_watermark=300)


@pytest.fixture(scope="module")
def task() -> Task:
    """Twenty seconds with ten questions."""
    return next(world_tasks(TEST, seed=0, units=20, limit=10))


def told(engine: Engine, task: Task) -> list[object]:
    """Tokens after each unit, and the answers, of a whole task."""
    engine.start(task.name)
    found: list[object] = []
    for unit, due in zip(task.units, task.due, strict=True):
        events: list[Event] = [*engine.ingest(unit)]
        for question in due:
            events += engine.ask(question.text, unit.end)
        found += [event.tokens for event in events if isinstance(event, UnitIngested)]
        found += [event.text for event in events if isinstance(event, Answer)]
    engine.session.check()
    return found


@pytest.mark.parametrize("policy", ["full", "omnipick"])
def test_shared_encodings_change_nothing(manifest: Manifest, demo_files: ModelFiles, task: Task, policy: str) -> None:
    options = replace(OPTIONS, policy=policy)
    with Engine.open(demo_files, manifest.prompt, options) as engine:
        own = told(engine, task)
    with SharedModel(demo_files, manifest.prompt, options) as model:
        encodings = model.encode(task.units, options, lambda count: False)
        first = told(model.engine(options, encodings), task)
        again = told(model.engine(options, encodings), task)
    assert own == first == again
    assert encodings.seconds > 0


def test_policies_sit_the_same_exam(manifest: Manifest, demo_files: ModelFiles, task: Task) -> None:
    found = results(OPTIONS, ["full", "omnipick", "fifo"], [(500, 300)])
    with SharedModel(demo_files, manifest.prompt, OPTIONS) as model:
        fill(found, model, [task], lambda: False, lambda text: None)
    asked = [(question.kind, question.sense) for due in task.due for question in due]
    for each in found:
        assert [(mark.kind, mark.sense) for mark in each.marks] == asked
    full, omnipick, fifo = ({row.kind: row for row in each.rows()} for each in found)
    assert full["all"].n == omnipick["all"].n == fifo["all"].n == 10
    assert max(found[0].history) > 500
    assert max(found[1].history) <= 500
    assert max(found[2].history) <= 500
    assert full["all"].history_tokens > omnipick["all"].history_tokens
    assert all(row.stream_loop_s > 0 and row.physical_span >= row.history_tokens for row in full.values())

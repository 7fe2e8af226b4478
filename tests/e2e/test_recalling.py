"""Recall through the engine: what was cut comes back for a question, is told of, and leaves with the next second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.bench.world.needle import NeedleStream, needle_stream
from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.split import VALIDATION
from omnitide_cli.catalog.manifest import Manifest, Recalling
from omnitide_cli.media import MediaUnit
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, AnswerDelta, Recalled
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.runtime.saved import (
    Saved,
    SavedEngine,
    SavedMedia,
    SavedModel,
    SavedOptions,
    SavedQuestions,
    SavedTotals,
)
from omnitide_cli.runtime.session_file import ARCHIVE, SessionFile
from omnitide_cli.session.configuration import engine_options, with_recall

UNITS = 46
HISTORY = {"high_watermark": 400, "low_watermark": 260, "recall_tokens": 200, "max_answer_tokens": 24, "threads": 1}


@pytest.fixture(scope="module")
def needles() -> NeedleStream:
    return needle_stream(VALIDATION, 0, UNITS)


@pytest.fixture(scope="module")
def units(needles: NeedleStream) -> list[MediaUnit]:
    return list(units_of(needles.stream))


@pytest.fixture(scope="module")
def chosen(manifest: Manifest) -> EngineOptions:
    return with_recall(manifest, engine_options(manifest, HISTORY))


@pytest.fixture(scope="module")
def watched(
    manifest: Manifest, demo_files: ModelFiles, chosen: EngineOptions, units: list[MediaUnit]
) -> Iterator[Engine]:
    with Engine.open(demo_files, manifest.prompt, chosen) as engine:
        engine.start("test")
        for unit in units[:-1]:
            engine.ingest(unit)
        yield engine


def test_what_was_cut_is_found_and_told_of(watched: Engine, needles: NeedleStream, units: list[MediaUnit]) -> None:
    recall = watched.recall
    assert recall is not None
    state = watched.session.save()
    for needle in needles.needles:
        tokens = watched.model.tokenize(needle.question.text, special=False)
        found = sorted(recall.search(tokens), key=lambda each: -each.score)
        if needle.unit in (round(each.start_s) for each in found):
            assert needle.unit in [round(each.start_s) for each in found[:8]]
        events, back = [], []
        for event in watched.ask(needle.question.text, UNITS - 1.0):
            events.append(event)
            if isinstance(event, AnswerDelta) and not back:
                back = [unit for unit in watched.session.units() if unit.recalled]
                watched.session.check()
        told = [event for event in events if isinstance(event, Recalled)]
        answer = next(event for event in events if isinstance(event, Answer))
        assert isinstance(events[0], Recalled)
        assert told[0].verdict in ("recalled", "not-clear")
        assert told[0].searched == len(found)
        assert answer.recalled == told[0].moments
        assert bool(answer.recalled) == (told[0].verdict == "recalled")
        assert sum(unit.tokens for unit in back) == told[0].tokens <= 200
    watched.session.restore(state)
    watched.ingest(units[-1])
    assert not any(unit.recalled for unit in watched.session.units())
    watched.session.check()


def test_an_interrupted_question_recalls_nothing(watched: Engine) -> None:
    before = watched.session.save()
    asked = watched.ask("What do you see?", float(UNITS))
    watched.interrupt()
    answer = asked.result
    assert answer is None or answer.stop == "interrupted"
    watched.session.check()
    watched.session.restore(before)


def test_without_layers_nothing_is_archived(manifest: Manifest, demo_files: ModelFiles) -> None:
    with Engine.open(demo_files, manifest.prompt, EngineOptions(threads=1)) as engine:
        assert engine.recall is None
        engine.start("test")
        assert not [event for event in engine.ask("What do you see?", 0.0) if isinstance(event, Recalled)]


def test_recall_is_on_where_it_has_been_measured(manifest: Manifest) -> None:
    def budget(of: Manifest = manifest, **wanted: Any) -> int:
        return with_recall(of, engine_options(of, wanted)).recall_budget

    assert budget(recall_tokens=200) == 200
    assert budget() == 200
    assert budget(recall_tokens=0) == 0
    unmeasured = replace(manifest, recall=Recalling())
    assert budget(unmeasured) == 0
    assert budget(unmeasured, recall_tokens=100) == 100
    assert budget(recall_tokens=200, archive_memory=0) == budget(recall_tokens=200, policy="full") == 0


def test_the_archive_leaves_no_file(watched: Engine, chosen: EngineOptions) -> None:
    folder = chosen.archive_folder
    assert isinstance(folder, Path)
    assert not [path for path in folder.glob("rows-*")]


@pytest.fixture(scope="module")
def saved() -> Saved:
    totals: dict[str, Any] = {field.name: 0 for field in fields(SavedTotals)}
    options = SavedOptions("omnipick", "auto", "compact", 400, 260, None, "f16", "auto", 24, 0.0, 0)
    media = SavedMedia("test", "test", 1, 1.0, None, True, True, 0.0, None, 1, 0.0, 0.0, 0, 0)
    engine = SavedEngine(1, 1, SavedTotals(**totals))
    return Saved("0", SavedModel("demo", "1:a", None, ""), options, media, SavedQuestions(), engine)


def test_an_engine_that_takes_a_saved_session_up_recalls_the_same(
    watched: Engine,
    manifest: Manifest,
    demo_files: ModelFiles,
    chosen: EngineOptions,
    needles: NeedleStream,
    saved: Saved,
) -> None:
    question = needles.needles[0].question.text
    _, state = watched.save()
    file = SessionFile(saved, state, watched.save_sections())
    expected = [*watched.ask(question, float(UNITS))]
    with Engine.open(demo_files, manifest.prompt, chosen) as resumed:
        resumed.start("test", file)
        found = [*resumed.ask(question, float(UNITS))]
    for each, other in zip(expected, found, strict=False):
        if isinstance(each, Recalled):
            assert isinstance(other, Recalled)
            assert (other.verdict, other.moments, other.searched) == (each.verdict, each.moments, each.searched)
            assert other.searched > 0
    texts = [[event.text for event in events if isinstance(event, Answer)] for events in (expected, found)]
    assert texts[0] == texts[1]
    with Engine.open(demo_files, manifest.prompt, replace(chosen, recall_tokens=0)) as without:
        without.start("test", file)
        assert without.recall is None
        assert bytes(without.save_sections()[ARCHIVE]) == bytes(file.sections[ARCHIVE])
    watched.session.restore(state)

"""The native session's rules: what is refused, what a failure leaves behind, room in the middle of an answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_stream import Running, Stream

from omnitide_cli.errors import ModelError, RuntimeFailure, UsageError
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

SMALL = EngineOptions(high_watermark=200, low_watermark=120, recent_units=1)


@pytest.mark.parametrize(("arch", "words"), [("gemma2", "sliding-window"), ("mamba", "recurrent")])
def test_memories_that_can_not_be_managed_are_named(models: dict[str, Path], arch: str, words: str) -> None:
    with pytest.raises(ModelError, match=words) as refused:
        Running.open(models[arch], SMALL, 512)
    assert refused.value.hint


@pytest.mark.parametrize("arch", ["gemma2", "mamba", "qwen2vl"])
def test_policy_full_runs_on_the_stock_memory(models: dict[str, Path], arch: str) -> None:
    model = Model(ModelFiles("test", models[arch], None), SMALL)
    options = EngineOptions(policy="full")
    model.open_context(options, 512)
    session = NativeSession(model.context_address, 0, options, threads=2, stock_memory=True)
    running = Running(model, session)
    assert np.isfinite(running.probe()).all()
    running.close()


def test_recurrent_state_that_can_not_go_back_is_said_to_be_lost(models: dict[str, Path]) -> None:
    options = EngineOptions(policy="full")
    model = Model(ModelFiles("test", models["mamba"], None), options)
    model.open_context(options, 512)
    running = Running(model, NativeSession(model.context_address, 0, options, threads=2, stock_memory=True))
    running.probe()
    running.session.interrupt()
    with pytest.raises(Interrupted):
        running.probe()
    running.session.interrupt(False)
    with pytest.raises(RuntimeFailure, match="no longer agree"):
        running.probe()
    running.close()


def test_a_context_can_be_used_again_after_its_session(models: dict[str, Path]) -> None:
    model = Model(ModelFiles("test", models["qwen2vl"], None), SMALL)
    model.open_context(SMALL, 512)
    first = NativeSession(model.context_address, 0, SMALL, threads=2)
    first.close()
    with pytest.raises(ModelError):  # its memory is the decorator now, which is not taken over twice
        NativeSession(model.context_address, 0, SMALL, threads=2)
    model.close()


@pytest.mark.parametrize("arch", ["qwen2vl", "llama"])
def test_the_history_stays_bounded(models: dict[str, Path], arch: str) -> None:
    running = Running.open(models[arch], SMALL, 384)
    stream = Stream(running, seed=3)
    stream.system()
    largest = 0
    for _ in range(60):
        before = running.session.snapshot().history_tokens
        stream.media()
        largest = max(largest, running.session.snapshot().history_tokens - before)
        assert running.session.snapshot().history_tokens <= SMALL.high_watermark + largest
        running.session.maintain()
        assert running.session.snapshot().history_tokens <= SMALL.high_watermark
        running.session.check()
    running.close()


@pytest.mark.parametrize("arch", ["qwen2vl", "llama"])
def test_an_answer_across_the_border_makes_room_in_its_middle(models: dict[str, Path], arch: str) -> None:
    options = EngineOptions(high_watermark=255, low_watermark=120, recent_units=1)
    running = Running.open(models[arch], options, 256)
    stream = Stream(running, seed=4)
    stream.system()
    while running.session.snapshot().history_tokens < 215:
        stream.media()
    running.probe()
    running.session.generate_begin(1.0)
    for _ in range(150):
        running.session.generate_next()
    running.session.generate_end([1, 2, 3])
    running.session.check()
    snapshot = running.session.snapshot()
    assert snapshot.history_tokens <= 256
    assert running.session.units()[-1].kind == "response"
    assert running.session.units()[0].kind == "system"
    running.close()


def test_full_says_when_the_cache_is_full_and_stays_usable(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], EngineOptions(policy="full"), 256)
    stream = Stream(running, seed=5)
    stream.system()

    def fill() -> None:
        for _ in range(20):
            stream.media()

    with pytest.raises(RuntimeFailure, match="cache is full"):
        fill()
    running.session.check()
    before = running.session.snapshot().history_tokens
    assert np.isfinite(running.probe()).all()
    assert running.session.snapshot().history_tokens == before + 8
    running.close()


def test_an_interrupted_unit_is_taken_back(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], SMALL, 512)
    stream = Stream(running, seed=6)
    stream.system()
    stream.media()
    before = running.session.tokens()
    running.session.interrupt()
    with pytest.raises(Interrupted):
        stream.media()
    running.session.interrupt(False)
    np.testing.assert_array_equal(running.session.tokens(), before)
    running.session.check()
    stream.media()
    running.session.check()
    running.close()


@pytest.mark.parametrize("layout", ["native", "class-packing", "eager"])
def test_a_unit_that_was_taken_back_leaves_no_hole(models: dict[str, Path], layout: str) -> None:
    cells = []
    for fails in (False, True):
        running = Running.open(models["qwen2"], replace(SMALL, layout=layout), 512)
        stream = Stream(running, seed=6)
        stream.system()
        if fails:
            running.session.interrupt()
            with pytest.raises(Interrupted):
                stream.add("media", [stream.text("boundary", 90)])
            running.session.interrupt(False)
        stream.add("media", [stream.text("boundary", 20)])
        running.session.check()
        cells.append(running.session.tokens()[:, 0].tolist())
        running.close()
    assert cells[0] == cells[1]


def test_units_larger_than_a_batch_are_split(models: dict[str, Path]) -> None:
    options = EngineOptions(high_watermark=3000, low_watermark=2600)
    running = Running.open(models["qwen2vl"], options, 3072)
    stream = Stream(running, seed=7)
    stream.add("media", [stream.rows("image", 50 * 48, 50), stream.text("boundary", 1)])
    running.session.check()
    assert running.session.snapshot().next_position == 51
    running.close()


def test_calls_out_of_order_are_refused_and_harm_nothing(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], SMALL, 512)
    session = running.session
    with pytest.raises(UsageError, match="no unit has been begun"):
        session.add_tokens("text", [1])
    with pytest.raises(UsageError, match="empty"):
        session.commit()
    with pytest.raises(UsageError, match="no question has been asked"):
        session.generate_begin(0)
    session.begin("media")
    with pytest.raises(UsageError, match="already"):
        session.begin("media")
    with pytest.raises(UsageError, match="outside the vocabulary"):
        session.add_tokens("text", [10**6])
    with pytest.raises(ModelError, match="no vision encoder"):
        session.add_image(np.zeros((28, 28, 3), np.uint8))
    session.abandon()
    assert session.snapshot().history_tokens == 0
    running.close()


def test_sixty_questions_in_one_small_session(models: dict[str, Path]) -> None:
    """Case 2: no slot failure, no empty reply after a few dozen turns."""
    running = Running.open(models["llama"], SMALL, 384)
    stream = Stream(running, seed=8)
    stream.system()
    for _ in range(60):
        stream.media()
        running.probe()
        running.session.generate_begin(0.0)
        spoken = sum(running.session.generate_next() is not None for _ in range(20))
        running.session.generate_end([1, 2])
        assert spoken == 20
        running.session.maintain()
        running.session.check()
        snapshot = running.session.snapshot()
        assert snapshot.n_cells - snapshot.free_cells == snapshot.history_tokens
    running.close()

"""The native session's rules: what is refused, what a failure leaves behind, room in the middle of an answer."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_stream import PROBE, Running, Stream
from tiny_models import write_attention_model

from omnitide_cli.errors import ModelError, RuntimeFailure, UsageError
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted, llama
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

SMALL = EngineOptions(high_watermark=200, low_watermark=120, recent_units=1)


def test_memories_that_can_not_be_managed_are_named(models: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match="recurrent state") as refused:
        Running.open(models["mamba"], SMALL, 512)
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
    model.open_context(options, 8192)
    running = Running(model, NativeSession(model.context_address, 0, options, threads=2, stock_memory=True))
    running.probe()
    running.session.interrupt()
    with pytest.raises(Interrupted):  # before anything was computed: nothing is lost
        running.probe()
    running.session.interrupt(False)
    running.probe()

    running.session.begin("question")
    running.session.add_tokens("text", PROBE * 750)  # three batches
    timer = threading.Timer(0.02, running.session.interrupt)
    timer.start()
    with pytest.raises(Interrupted):
        running.session.commit()
    timer.join()
    running.session.interrupt(False)
    with pytest.raises(RuntimeFailure, match="no longer agree"):
        running.probe()
    running.close()


@pytest.mark.parametrize("stock_memory", [False, True])
def test_a_context_can_be_used_again_after_its_session(models: dict[str, Path], *, stock_memory: bool) -> None:
    options = replace(SMALL, policy="full")
    model = Model(ModelFiles("test", models["qwen2vl"], None), options)
    model.open_context(options, 512)
    logits = []
    for stock in (False, stock_memory, False):
        running = Running(model, NativeSession(model.context_address, 0, options, threads=2, stock_memory=stock))
        logits.append(running.probe())
        running.session.close()
        assert llama.llama_memory_seq_pos_max(memory_of(model), 0) == (len(PROBE) - 1 if stock else -1)
        llama.llama_memory_clear(memory_of(model), False)
    np.testing.assert_array_equal(logits[0], logits[1])
    np.testing.assert_array_equal(logits[0], logits[2])
    assert not llama.llama_memory_can_shift(memory_of(model))  # M-RoPE's, as llama.cpp has it
    model.close()


def test_a_refused_session_leaves_the_context_to_another(models: dict[str, Path]) -> None:
    """h2o needs attention without flash attention."""
    options = EngineOptions(flash_attn="on", cache_type="f16")
    model = Model(ModelFiles("test", models["qwen2"], None), options)
    model.open_context(options, 512)
    with pytest.raises(ModelError, match="needs attention weights"):
        NativeSession(model.context_address, 0, EngineOptions(policy="h2o"), threads=2)
    running = Running(model, NativeSession(model.context_address, 0, options, threads=2))
    running.probe()
    running.close()


def memory_of(model: Model) -> Any:
    context: Any = llama.llama_context_p_ctypes(model.context_address)
    return llama.llama_get_memory(context)


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


# --- answers


def drawn(running: Running, count: int = 12) -> list[bytes | None]:
    """What an answer to the same question begins with."""
    running.probe()
    running.session.generate_begin(0.0)
    pieces = [running.session.generate_next() for _ in range(count)]
    running.session.generate_end([])
    return pieces


def test_each_answer_draws_its_own_numbers_and_a_resumed_one_the_same(tmp_path: Path) -> None:
    """So hot that numbers alone decide."""
    path = write_attention_model(tmp_path / "model.gguf", "qwen2", words=[f"word{i}" for i in range(255)])
    options = replace(SMALL, policy="full", temperature=1e6)
    running, other = (Running.open(path, options, 512) for _ in range(2))
    first = drawn(running)
    state = running.session.save()
    second = drawn(running)
    assert first != second
    other.session.restore(state)
    assert drawn(other) == second
    running.close()
    other.close()


def test_a_piece_may_be_of_any_length(tmp_path: Path) -> None:
    words = ["ab" * 150 + str(i) for i in range(255)]
    path = write_attention_model(tmp_path / "model.gguf", "qwen2", words=words)
    running = Running.open(path, replace(SMALL, policy="full", temperature=1e6), 512)
    pieces = {piece.decode() for piece in drawn(running, 40) if piece and len(piece) > 64}
    assert pieces
    assert pieces <= set(words)
    running.close()


# --- parts that are wrong


def test_what_fails_while_a_part_is_added_takes_the_unit_back(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2"], SMALL, 256)
    session = running.session
    session.begin("media")
    session.add_tokens("boundary", [1, 2])
    with pytest.raises(ModelError, match="vision"):
        session.add_image(np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(UsageError, match="no unit"):
        session.add_tokens("boundary", [3])
    session.begin("media")
    session.add_tokens("boundary", [1])
    assert session.commit().total_tokens == 1
    running.close()


def test_rows_of_another_width_or_order_are_refused(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], SMALL, 256)
    session, rows = running.session, np.zeros((4, running.model.n_embd), np.float32)
    session.begin("media")
    with pytest.raises(UsageError, match="rows of 8 numbers, the model takes 256"):
        session.add_rows("audio", rows[:, :8])
    with pytest.raises(ValueError, match="n_embd"):
        session.add_rows("audio", rows[0])
    with pytest.raises(UsageError, match="continue nothing"):
        session.add_rows("image", rows, width=2, continues=True)
    session.add_rows("image", rows, width=2)
    for wrong in ({"width": 4, "first": 4}, {"width": 2, "first": 3}, {"width": 2, "first": 2**31}):
        with pytest.raises(UsageError):
            session.add_rows("image", rows, continues=True, **wrong)
    session.add_rows("image", rows, width=2, first=6, continues=True)
    session.commit()
    session.check()
    session.restore(session.save())
    running.close()


@pytest.mark.parametrize("stock_memory", [False, True])
@pytest.mark.parametrize("flash_attn", ["on", "off"])
def test_flash_attention_is_told_as_it_runs(models: dict[str, Path], flash_attn: str, *, stock_memory: bool) -> None:
    options = EngineOptions(policy="full", flash_attn=flash_attn)
    model = Model(ModelFiles("test", models["qwen2"], None), options)
    model.open_context(options, 256)
    session = NativeSession(model.context_address, 0, options, threads=2, stock_memory=stock_memory)
    assert bool(session.snapshot().flash_attention) == (flash_attn == "on")
    session.close()
    model.close()

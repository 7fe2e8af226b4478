"""Every family: what is taken back, saved and recalled leaves no trace."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_streams import (
    EACH_CACHE,
    HYBRID,
    N_CTX,
    TURNINGS,
    WRITERS,
    Recorded,
    options,
    pressed,
    turned,
    worst_key,
)
from random_stream import PROBE, Running, Stream
from test_exactness import errors_in_steps

from omnitide_cli.errors import ModelError, SessionFileError
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.native import llama as typed_llama
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import ModelFiles
from omnitide_cli.runtime.recall import Recall, RecallSettings

llama: Any = typed_llama  # its declarations ask for a check of every pointer


def as_bytes(running: Running) -> bytes:
    """Ledger, every cached row, original keys, and recurrent states."""
    return running.session.save().tobytes()


@pytest.mark.parametrize("name", WRITERS)
def test_rehearsed_and_interrupted_units_leave_no_trace(written: Callable[[str], Path], name: str) -> None:
    running, stream = pressed(written(name), options(), 16)
    before = as_bytes(running)
    for n in (3, 25):
        running.session.begin("question")
        running.session.add_tokens("text", list(range(7, 7 + n)))
        rehearsed = running.session.peek_logits(running.model.n_vocab)
    assert as_bytes(running) == before
    interrupted = 0
    for delay in (0.0, 0.002, 0.004, 0.008):
        running.session.begin("media")
        running.session.add_rows("audio", stream.random.standard_normal((90, running.model.n_embd)).astype(np.float32))
        timer = threading.Timer(delay, running.session.interrupt)
        timer.start()
        try:
            running.session.commit()
        except Interrupted:
            interrupted += 1
            timer.join()
            running.session.interrupt(False)
            running.session.check()
            assert as_bytes(running) == before
            continue
        timer.join()
        running.session.interrupt(False)
        running.session.restore(np.frombuffer(before, np.uint8))
    assert interrupted > 0
    running.session.begin("question")
    running.session.add_tokens("text", list(range(7, 32)))
    np.testing.assert_array_equal(running.session.peek_logits(running.model.n_vocab), rehearsed)
    running.close()


@pytest.mark.parametrize("name", HYBRID)
def test_the_first_unit_can_be_taken_back(written: Callable[[str], Path], name: str) -> None:
    logits = []
    for rehearse in (False, True):
        running = Running.open(written(name), options(), N_CTX)
        if rehearse:
            running.session.begin("question")
            running.session.add_tokens("text", [5, 6, 7])
            running.session.peek_logits(running.model.n_vocab)
            running.session.check()
        logits.append(running.probe())
        running.close()
    np.testing.assert_array_equal(logits[0], logits[1])


@pytest.mark.parametrize(("name", "cache"), EACH_CACHE)
def test_a_session_goes_on_elsewhere_bit_by_bit(
    written: Callable[[str], Path], name: str, cache: tuple[str, str]
) -> None:
    chosen = options(cache_type=cache[0], flash_attn=cache[1])
    running, stream = pressed(written(name), chosen, 16)
    other = Running.open(written(name), chosen, N_CTX, page_size=16)
    other.session.restore(running.session.save())
    other.session.check()
    assert as_bytes(other) == as_bytes(running)
    again = Stream(other, units=dict(stream.units))
    again.random = copy.deepcopy(stream.random)
    plain = Stream(running, units=dict(stream.units))
    plain.random = copy.deepcopy(stream.random)
    assert plain.run(10) == again.run(10) > 0
    assert as_bytes(other) == as_bytes(running)
    np.testing.assert_array_equal(other.probe(), running.probe())
    running.close()
    other.close()


@pytest.mark.parametrize("name", WRITERS)
def test_damaged_states_are_refused_and_change_nothing(written: Callable[[str], Path], name: str) -> None:
    """No byte is trusted: whatever a state says, it is refused, or makes a session that runs."""
    running, stream = pressed(written(name), options(), 16)
    state = running.session.save()
    random = np.random.default_rng(0)
    refused = 0
    for attempt in range(60):
        damaged = state.copy()
        if attempt % 3 == 0:
            damaged = damaged[: int(random.integers(0, len(state)))]
        else:
            head = random.integers(0, 4096) if attempt % 3 == 1 else -int(random.integers(1, 64))
            damaged[head] ^= np.uint8(1) << np.uint8(random.integers(0, 8))
        try:
            running.session.restore(damaged)
        except SessionFileError:
            refused += 1
            assert attempt % 9 or as_bytes(running) == state.tobytes()
        else:
            running.session.restore(state)
    assert refused > 15
    running.session.check()
    stream.media()
    running.close()


@pytest.mark.parametrize("name", HYBRID)
def test_a_recurrent_state_of_another_shape_is_refused(written: Callable[[str], Path], name: str) -> None:
    running, _ = pressed(written(name), options(), 16)
    state = running.session.save()
    for cut in (1, 4, 1000):
        with pytest.raises(SessionFileError):
            running.session.restore(state[:-cut])
    longer = np.concatenate([state, np.zeros(4, np.uint8)])
    with pytest.raises(SessionFileError, match="longer"):
        running.session.restore(longer)
    running.session.restore(state)
    running.close()


@pytest.mark.parametrize(("name", "other"), [("gemma3", "gemma4"), ("qwen3.5", "lfm2-vl"), ("gemma3", "gemma2")])
def test_another_models_session_is_refused(written: Callable[[str], Path], name: str, other: str) -> None:
    running, _ = pressed(written(name), options(), 16)
    elsewhere = Running.open(written(other), options(), N_CTX)
    before = as_bytes(elsewhere)
    with pytest.raises(SessionFileError):
        elsewhere.session.restore(running.session.save())
    assert as_bytes(elsewhere) == before
    running.close()
    elsewhere.close()


@pytest.mark.parametrize("name", WRITERS)
def test_recalled_units_come_back_and_leave_without_a_trace(written: Callable[[str], Path], name: str) -> None:
    running = Running.open(written(name), options(), 768, page_size=16)
    layers = running.session.layers()
    recall = Recall(running.session, RecallSettings(layers=(layers[0],), tokens=200, threshold=0.0, memory=1 << 26))
    stream = Recorded(running, seed=1)
    stream.system()
    assert stream.run(24) >= 2
    recall.for_question(PROBE, reserved=64)
    recall.dismiss()  # from here on every key that has shifted was put aside
    before = as_bytes(running)
    done = recall.for_question(PROBE, reserved=64)
    assert done.verdict == "recalled"
    assert done.tokens > 20
    running.session.check()
    back = [unit for unit in running.session.units() if unit.recalled]
    assert [unit.id for unit in back] == [found.unit for found in done.units]
    worst, _ = worst_key(name, stream, "f16")
    assert worst <= 1.0
    recall.dismiss()
    running.session.check()
    assert as_bytes(running) == before
    assert np.isfinite(running.probe()).all()
    running.close()


def answering(path: Path, seed: int) -> tuple[Running, Recorded, Recall] | None:
    """In the middle of an answer that grew on after a retention; None where it ended before."""
    running = Running.open(path, options(text_budget=0), N_CTX, page_size=16)
    session = running.session
    recall = Recall(session, RecallSettings(layers=(session.layers()[0],), tokens=400, threshold=0.0, memory=1 << 26))
    stream = Recorded(running, seed=seed)
    stream.system()
    stream.run(9)
    while session.snapshot().history_tokens < N_CTX - 120:  # nothing is cut before the answer needs the room
        stream.media()
    running.probe()
    session.generate_begin(0.0)
    forced = 0
    while session.generate_next() is not None:
        newest = session.tokens()[-1:]
        keys, names = stream.cached(newest)
        stream.computed[names[0]] = (int(newest[0, 1]), [each[0] for each in keys])
        forced += sum(done.retained for done in session.take_forced())
        if forced and session.units()[-1].tokens > 60:
            return running, stream, recall
    running.close()
    return None


@pytest.mark.parametrize("name", ["pixtral", "qwen3-vl"])
def test_an_answer_that_a_retention_shifted_while_it_grew_comes_back_at_its_places(
    written: Callable[[str], Path], name: str
) -> None:
    running, stream, recall = next(filter(None, (answering(written(name), seed) for seed in range(1, 30))))
    session = running.session
    layer = session.layers()[0]
    session.generate_end([3])
    answer = session.units()[-1].id
    stream.run(20)
    assert answer not in [unit.id for unit in session.units()]
    assert recall.put_back([answer]) > 60
    assert [unit.kind for unit in session.units() if unit.recalled] == ["response"]
    tokens = session.tokens()
    keys, names = stream.cached(tokens)
    known = [i for i, each in enumerate(names) if each in stream.computed]
    by = np.array([int(tokens[i, 1]) - stream.computed[names[i]][0] for i in known])
    expected = turned(np.array([stream.computed[names[i]][1][0] for i in known]), by, TURNINGS[name][layer])
    errors = errors_in_steps(keys[0][known], expected.astype(np.float32), "f16")
    at = [i for i, unit in enumerate(session.units()) if unit.recalled]
    first = sum(unit.tokens for unit in session.units()[: at[0]])
    among = [k for k, i in enumerate(known) if first <= i < first + session.units()[at[0]].tokens]
    assert len(among) > 60, "tokens of the answer are among those that are compared"
    assert len(set(by[among])) > 1, "they were computed before and behind the retention"
    assert errors.max() <= 1.0
    running.close()


# --- what is refused


def test_a_smaller_cache_for_the_window_is_refused_by_name(written: Callable[[str], Path]) -> None:
    settings = options()
    model = Model(ModelFiles("test", written("gemma3"), None), settings)
    params: Any = llama.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = 4096, 64, 64, 1
    params.swa_full = False
    model._context = llama.llama_init_from_model(model._model, params)
    with pytest.raises(ModelError, match="swa_full"):
        NativeSession(model.context_address, 0, settings, threads=2)
    model.close()


def test_a_windowed_hybrid_with_a_quantised_cache_is_refused(written: Callable[[str], Path]) -> None:
    """llama.cpp means to keep its keys turned by a Hadamard matrix, but its graph doesn't turn them."""
    with pytest.raises(ModelError, match="can't be shifted"):
        Running.open(written("lfm2-window"), options(cache_type="q8_0", flash_attn="on"), N_CTX)


def test_a_hybrid_answers(written: Callable[[str], Path]) -> None:
    """Tokens of an answer go in one by one, without a copy of the state before each."""
    answers = []
    for name in ("qwen3.5", "lfm2-vl"):
        running, _ = pressed(written(name), options(), 16)
        running.probe()
        running.session.generate_begin(0.0)
        for _ in range(6):
            running.session.generate_next()
        running.session.generate_end([3])
        running.session.check()
        answers.append(running.session.tokens()[-7:])
        running.close()
    assert all(len(answer) == 7 for answer in answers)

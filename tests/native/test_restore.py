"""A session that was saved and restored goes on as the uninterrupted one does, bit by bit.

What is no session is refused and changes nothing.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_stream import Running, Stream
from tiny_models import write_phi3
from tiny_models.phi3 import ORIGINAL_CONTEXT

from omnitide_cli.errors import ModelError, RuntimeFailure, SessionFileError, UsageError
from omnitide_cli.runtime.history import History
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native_session import LAYOUTS, NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

N_CTX = 512
HISTORY: dict[str, Any] = {"high_watermark": 380, "low_watermark": 240, "recent_units": 2, "text_budget": 40}
CACHES = [("f16", "on"), ("f16", "off"), ("q8_0", "on")]
POLICIES = ["omnipick", "fifo", "token", "streaming-llm"]


def options(**other: object) -> EngineOptions:
    return EngineOptions(**{**HISTORY, **other})  # pyright: ignore[reportArgumentType]


def pressed(path: Path, settings: EngineOptions) -> tuple[Running, Stream]:
    """A session whose history was cut, shifted and moved."""
    running = Running.open(path, settings, N_CTX)
    stream = Stream(running, seed=1)
    stream.system()
    assert stream.run(18) >= 2
    return running, stream


def resumed(path: Path, settings: EngineOptions, stream: Stream, n_ctx: int = N_CTX) -> tuple[Running, Stream]:
    """Another session that goes on where the stream's stands."""
    running = Running.open(path, settings, n_ctx)
    running.session.restore(stream.running.session.save())
    again = Stream(running, seed=0, units=dict(stream.units))
    again.random = copy.deepcopy(stream.random)
    return running, again


def assert_alike(found: Running, expected: Running) -> None:
    np.testing.assert_array_equal(found.session.tokens(), expected.session.tokens())
    np.testing.assert_array_equal(found.session.cells(), expected.session.cells())
    assert found.session.units() == expected.session.units()
    cells = expected.session.tokens()[:, 0].tolist()
    for layer in (0, 2):
        np.testing.assert_array_equal(found.session.keys(layer, cells), expected.session.keys(layer, cells))
    found.session.check()


def check_resumes(path: Path, settings: EngineOptions) -> None:
    running, stream = pressed(path, settings)
    other, again = resumed(path, settings, stream)
    assert_alike(other, running)
    assert stream.run(10) == again.run(10) > 0
    assert_alike(other, running)
    np.testing.assert_array_equal(other.probe(), running.probe())
    running.close()
    other.close()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("cache_type", "flash_attn"), CACHES)
@pytest.mark.parametrize("arch", ["qwen2vl", "llama"])
def test_every_policy_resumes(
    models: dict[str, Path], arch: str, cache_type: str, flash_attn: str, policy: str
) -> None:
    check_resumes(models[arch], options(policy=policy, cache_type=cache_type, flash_attn=flash_attn))


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("positions", ["compact", "sparse"])
@pytest.mark.parametrize("arch", ["qwen2vl", "llama"])
def test_every_layout_resumes(models: dict[str, Path], arch: str, positions: str, layout: str) -> None:
    check_resumes(models[arch], options(layout=layout, positions=positions))


def test_flash_attention_watermarks_and_policy_may_change(models: dict[str, Path]) -> None:
    path = models["qwen2vl"]
    running, stream = pressed(path, options(flash_attn="on"))
    changed = options(flash_attn="off", policy="fifo", layout="class-packing", high_watermark=200, low_watermark=100)
    other, again = resumed(path, changed, stream, n_ctx=768)
    np.testing.assert_array_equal(other.session.tokens(), running.session.tokens())
    assert np.abs(other.probe() - running.probe()).max() < 0.02  # summation order alone
    assert again.run(10) > 0
    assert other.session.snapshot().history_tokens <= 200
    other.session.check()
    running.close()
    other.close()


def test_a_session_can_be_restored_over_another(models: dict[str, Path]) -> None:
    running, stream = pressed(models["qwen2vl"], options())
    state = running.session.save()
    expected = running.probe()
    assert stream.run(10) > 0
    running.session.restore(state)
    running.session.check()
    np.testing.assert_array_equal(running.session.save(), state)
    np.testing.assert_array_equal(running.probe(), expected)
    running.close()


def test_nothing_is_saved_in_the_middle_of_a_unit_or_an_answer(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], options(), N_CTX)
    session = running.session
    session.begin("question")
    with pytest.raises(UsageError, match="unfinished"):
        session.save()
    session.abandon()
    running.probe()
    state = session.save()
    session.generate_begin(0.0)
    with pytest.raises(UsageError, match="unfinished"):
        session.restore(state)
    session.generate_end([])
    session.restore(state)
    with pytest.raises(UsageError, match="no question has been asked"):  # logits are not saved
        session.generate_begin(0.0)
    running.close()


@pytest.mark.parametrize(
    ("arch", "changes", "n_ctx", "reason"),
    [
        ("llama", {}, N_CTX, "positions"),
        ("qwen2vl", {"cache_type": "q8_0"}, N_CTX, "type of cache"),
        ("qwen2vl", {"high_watermark": 150, "low_watermark": 100}, 256, "cells"),
    ],
)
def test_what_does_not_fit_is_refused(
    models: dict[str, Path], arch: str, changes: dict[str, Any], n_ctx: int, reason: str
) -> None:
    running, stream = pressed(models["qwen2vl"], options())
    while running.session.snapshot().history_tokens <= 256:
        stream.media()
    state = running.session.save()
    running.close()
    other = Running.open(models[arch], options(**changes), n_ctx)
    Stream(other, seed=3).media()
    before = other.session.save()
    with pytest.raises(SessionFileError, match=reason):
        other.session.restore(state)
    np.testing.assert_array_equal(other.session.save(), before)
    assert np.isfinite(other.probe()).all()
    other.close()


def test_llama_cpps_own_memory_is_not_saved(models: dict[str, Path]) -> None:
    settings = EngineOptions(policy="full")
    model = Model(ModelFiles("test", models["mamba"], None), settings)
    model.open_context(settings, N_CTX)
    running = Running(model, NativeSession(model.context_address, 0, settings, threads=2, stock_memory=True))
    with pytest.raises(ModelError, match="own memory"):
        running.session.save()
    running.close()


def test_mutated_states_are_refused_or_make_a_session_that_runs(models: dict[str, Path]) -> None:
    """No byte is trusted: whatever a state says, restoring it neither crashes nor leaves a session that does."""
    running, stream = pressed(models["qwen2vl"], options())
    state = running.session.save()
    random = np.random.default_rng(0)
    ledger_bytes = 4096  # where the structure is; the rest are rows, any of which is a row
    refused = 0
    for attempt in range(1000):
        damaged = state.copy()
        where = random.integers(0, min(len(state), ledger_bytes), int(random.integers(1, 4)))
        if attempt % 4 == 0:
            damaged = damaged[: int(random.integers(0, len(state)))]
        elif attempt % 4 == 1:
            damaged[where] = random.integers(0, 256, len(where), dtype=np.uint8)
        elif attempt % 4 == 2:
            damaged[where] ^= np.uint8(1) << random.integers(0, 8, len(where), dtype=np.uint8)
        else:
            start = int(where[0]) // 2 * 2
            damaged[start : start + 4] = random.choice([0, 255, 127, 128])
        try:
            running.session.restore(damaged)
        except SessionFileError:
            refused += 1
            continue
        try:
            stream.media()
            running.session.maintain()
        except RuntimeFailure:  # positions that llama.cpp won't go on from
            pass
    assert refused > 500
    running.session.restore(state)
    running.session.check()
    running.close()


def test_a_session_of_other_rotary_frequencies_is_refused(tmp_path: Path) -> None:
    """longrope chooses its factors by the context's size."""
    path = write_phi3(tmp_path / "phi3.gguf")
    small = Running.open(path, options(), ORIGINAL_CONTEXT)
    small.probe()
    state = small.session.save()
    same, larger = (Running.open(path, options(), n_ctx) for n_ctx in (ORIGINAL_CONTEXT // 2, 2 * ORIGINAL_CONTEXT))
    same.session.restore(state)
    with pytest.raises(SessionFileError, match=f"saved with {ORIGINAL_CONTEXT} cells"):
        larger.session.restore(state)
    assert larger.session.snapshot().history_tokens == 0
    for running in (small, same, larger):
        running.close()


def test_rows_that_say_nothing_of_frequencies_are_taken(models: dict[str, Path]) -> None:
    """As earlier versions saved them."""
    running = Running.open(models["qwen2"], options(), N_CTX)
    running.probe()
    with History(options(), N_CTX, mrope=False) as history:
        history.restore_session(running.session.save())
        start = len(history.save())
    state = running.session.save().tobytes()
    stored = int.from_bytes(state[start : start + 4], "little")
    assert stored & 4
    older = state[:start] + (stored & ~4).to_bytes(4, "little") + state[start + 4 + 8 + 4 :]
    before = running.session.tokens().tolist()
    running.session.restore(np.frombuffer(older, np.uint8))
    assert running.session.tokens().tolist() == before
    running.close()

"""Questions that are never asked: what is foreseen is what would have been said, and no trace of it stays."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from memory_streams import EACH_CACHE, HYBRID, N_CTX, options, pressed
from random_stream import PROBE, Running, Stream

from omnitide_cli.errors import CacheFull, UsageError
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.options import EngineOptions

PLAIN = ["qwen2", "qwen2vl"]
SMALL = EngineOptions(high_watermark=300, low_watermark=200, unit_tokens=45)


def as_bytes(running: Running) -> bytes:
    """Ledger, every cached row, original keys, and recurrent states."""
    return running.session.save().tobytes()


def rehearse(running: Running, tokens: list[int], most: int = 0) -> tuple[np.ndarray, str]:
    running.session.begin("question")
    running.session.add_tokens("text", tokens)
    return running.session.foresee(running.model.n_vocab, most)


def check_without_a_trace(running: Running) -> None:
    """Several rules of one second, with and without an answer; then the same question for real."""
    before = as_bytes(running)
    for n in (1, 9, 30):
        rehearse(running, list(range(7, 7 + n)), most=n // 2)
    foreseen, _ = rehearse(running, PROBE)
    again, _ = rehearse(running, PROBE, most=12)
    running.session.check()
    assert as_bytes(running) == before
    np.testing.assert_array_equal(foreseen, again)
    np.testing.assert_array_equal(running.probe(), foreseen)


@pytest.mark.parametrize(("name", "cache"), EACH_CACHE)
def test_no_trace_in_windows_and_recurrent_layers(
    written: Callable[[str], Path], name: str, cache: tuple[str, str]
) -> None:
    running, _ = pressed(written(name), options(cache_type=cache[0], flash_attn=cache[1]), 16)
    check_without_a_trace(running)
    running.close()


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize(("cache_type", "flash_attn"), [("f16", "off"), ("f16", "on"), ("q8_0", "on")])
def test_no_trace_with_plain_and_m_rope(models: dict[str, Path], name: str, cache_type: str, flash_attn: str) -> None:
    chosen = replace(SMALL, cache_type=cache_type, flash_attn=flash_attn)  # pyright: ignore[reportArgumentType]
    running = Running.open(models[name], chosen, 512)
    stream = Stream(running, seed=5)
    stream.system()
    assert stream.run(16) > 0
    check_without_a_trace(running)
    running.close()


@pytest.mark.parametrize("policy", ["h2o", "omnipick"])
def test_a_session_goes_on_as_one_that_was_never_asked(models: dict[str, Path], policy: str) -> None:
    """Attention that a policy counts, cells, and every later row: bit by bit, over retentions."""
    states = []
    for asks in (False, True):
        chosen = replace(SMALL, policy=policy, flash_attn="off")
        running = Running.open(models["qwen2vl"], chosen, 512)
        stream = Stream(running, seed=9)
        stream.system()
        for number in range(20):
            stream.media()
            running.session.maintain()
            if asks:
                rehearse(running, PROBE, most=number % 3)
                rehearse(running, PROBE[:3])
        states.append((as_bytes(running), running.session.scores().tobytes(), running.probe().tobytes()))
        running.close()
    assert states[0] == states[1]


@pytest.mark.parametrize("name", ["gemma3", *HYBRID])
def test_the_foreseen_answer_is_the_one_that_is_given(written: Callable[[str], Path], name: str) -> None:
    running, _ = pressed(written(name), options(), 16)
    _, foreseen = rehearse(running, PROBE, most=8)
    running.probe()
    running.session.generate_begin(0.0)
    pieces = []
    for _ in range(8):
        if (piece := running.session.generate_next()) is None:
            break
        pieces.append(piece)
    running.session.generate_end([3])
    assert b"".join(pieces).decode("utf-8", "replace") == foreseen
    running.close()


def test_what_has_no_room_is_refused_and_evicts_nothing(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], SMALL, 512)
    stream = Stream(running, seed=5)
    stream.system()
    while running.session.snapshot().free_cells > 100:
        stream.media()
    before = as_bytes(running)
    with pytest.raises(CacheFull, match="has no room"):
        rehearse(running, list(range(120)))
    free = running.session.snapshot().free_cells
    rehearse(running, list(range(free - 3)), most=40)  # its answer is as long as there is room
    assert as_bytes(running) == before
    assert not list(running.session.take_forced())
    running.close()


def test_an_interruption_takes_it_back(written: Callable[[str], Path]) -> None:
    running, _ = pressed(written("qwen3.5"), options(), 16)
    before, interrupted = as_bytes(running), 0
    for delay in (0.0, 0.002, 0.005, 0.01):
        timer = threading.Timer(delay, running.session.interrupt)
        timer.start()
        try:
            rehearse(running, list(range(7, 60)), most=64)
        except Interrupted:
            interrupted += 1
        timer.join()
        running.session.interrupt(False)
        assert as_bytes(running) == before
    assert interrupted > 0
    running.close()


def test_nothing_can_be_answered_behind_it(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], SMALL, N_CTX)
    Stream(running, seed=5).system()
    rehearse(running, PROBE)
    with pytest.raises(UsageError, match="no question has been asked"):
        running.session.generate_begin(0.0)
    running.close()

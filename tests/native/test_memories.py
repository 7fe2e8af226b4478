"""Every family: plain caches, a window in some layers, hybrids with a recurrent state. All are managed exactly.

Whatever a cached key went through, it is the one that the model computed, turned to the place that it has now. A
hybrid's recurrent layers remember what was deleted: nothing but stock llama.cpp after the same removals is like it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from memory_streams import (
    CACHES,
    EACH_CACHE,
    MROPE,
    N_CTX,
    PLAIN,
    POLICIES,
    TURNINGS,
    WINDOWED,
    WRITERS,
    caches_of,
    logits_tolerance,
    options,
    pressed,
    worst_key,
)
from random_stream import PROBE, Part, Running, Stream
from stock_context import StockContext
from test_exactness import errors_in_steps

from omnitide_cli.runtime.native import llama as typed_llama
from omnitide_cli.runtime.native_session import LAYOUTS

llama: Any = typed_llama  # its declarations ask for a check of every pointer

# --- keys


CASES = [
    (
        name,
        policy,
        list(LAYOUTS)[(i + j) % len(LAYOUTS)],
        caches_of(name)[0 if policy == "h2o" else (i + j) % len(caches_of(name))],
    )
    for i, name in enumerate(WRITERS)
    for j, policy in enumerate(POLICIES)
]
ONE_CACHE = [(name, caches_of(name)[i % len(caches_of(name))]) for i, name in enumerate(WRITERS)]
REST = [case for case in EACH_CACHE if case not in ONE_CACHE]
CACHES_TRIED = [case for case in EACH_CACHE if case in ONE_CACHE or case[0] not in PLAIN]
"""Plain memories have tests of their own (test_exactness): here each has one cache, and the others in long tests."""


@pytest.mark.parametrize(("name", "policy", "layout", "cache"), CASES)
def test_every_cached_key_is_the_one_computed_turned_to_its_place(
    written: Callable[[str], Path], name: str, policy: str, layout: str, cache: tuple[str, str]
) -> None:
    chosen = options(policy=policy, layout=layout, cache_type=cache[0], flash_attn=cache[1])
    running, stream = pressed(written(name), chosen, 44)
    assert running.session.layers() == list(TURNINGS[name])
    worst, shifted = worst_key(name, stream, cache[0])
    print(name, policy, layout, cache, f"worst {worst:.2f} steps, {shifted} shifted")
    assert shifted > 20
    assert worst <= 1.0
    running.close()


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("name", WINDOWED)
def test_keys_of_the_first_layer_are_those_of_a_fresh_run(
    written: Callable[[str], Path], name: str, cache: tuple[str, str]
) -> None:
    chosen = options(cache_type=cache[0], flash_attn=cache[1])
    running, stream = pressed(written(name), chosen, 44)
    fresh = Running.open(written(name), options(policy="full", cache_type=cache[0], flash_attn=cache[1]), N_CTX)
    stream.replay(fresh)
    tokens, again = running.session.tokens(), fresh.session.tokens()
    np.testing.assert_array_equal(tokens[:, 1:], again[:, 1:])
    found, expected = running.session.keys(0, tokens[:, 0].tolist()), fresh.session.keys(0, again[:, 0].tolist())
    fresh.close()
    running.close()
    errors = errors_in_steps(found, expected, cache[0])
    if cache[0] == "f16":
        assert errors.max() <= 1.0
    else:
        assert np.sqrt((errors**2).mean(axis=1)).max() < 1.0


# --- logits


@pytest.mark.parametrize(("name", "cache"), CACHES_TRIED)
@pytest.mark.parametrize("positions", ["sparse", "compact"])
def test_logits_are_stocks_after_the_same_removals(
    written: Callable[[str], Path], name: str, positions: str, cache: tuple[str, str]
) -> None:
    assert_logits_are_stocks(written, name, positions, cache)


@pytest.mark.long
@pytest.mark.parametrize(("name", "cache"), [case for case in EACH_CACHE if case not in CACHES_TRIED])
@pytest.mark.parametrize("positions", ["sparse", "compact"])
def test_logits_are_stocks_with_other_caches(
    written: Callable[[str], Path], name: str, positions: str, cache: tuple[str, str]
) -> None:
    assert_logits_are_stocks(written, name, positions, cache)


def assert_logits_are_stocks(written: Callable[[str], Path], name: str, positions: str, cache: tuple[str, str]) -> None:
    if positions == "compact" and (name in MROPE or name == "lfm2-window"):
        pytest.skip("llama.cpp shifts no keys of M-RoPE, and aborts at a cache without layers")
    if cache[0] == "q8_0" and positions == "compact":
        pytest.skip("llama.cpp's shift rounds a quantised key anew each time, ours once")
    chosen = options(policy="fifo", positions=positions, cache_type=cache[0], flash_attn=cache[1])
    running = Running.open(written(name), chosen, N_CTX, page_size=16)
    stock = StockContext(running.model, chosen, 768)
    stream = Stream(running, seed=1)
    fed: set[int] = set()
    retentions = 0
    stream.system()
    for step in range(26):
        if step:
            stream.media()
        for unit in running.session.units():
            if unit.id in fed:
                continue
            fed.add(unit.id)
            first = 0
            places = running.session.tokens()[-unit.tokens :, 1:]  # one unit a step
            for part in stream.units[unit.id]:
                stock.decode(part, places[first : first + len(part)])
                first += len(part)
        before = {u.id: u for u in running.session.units()}
        where = running.session.tokens()[:, 1]
        done = running.session.maintain()
        if not done.retained:
            continue
        retentions += 1
        kept = {u.id for u in running.session.units()}
        at = 0
        starts: dict[int, tuple[int, int]] = {}
        for unit in before.values():
            own = where[at : at + unit.tokens]
            at += unit.tokens
            starts[unit.id] = (int(own[0]), int(own[-1]) + 1)
        for unit_id, (begin, end) in starts.items():
            if unit_id not in kept:
                stock.remove(begin, end)
        if positions == "compact":
            after = running.session.tokens()[:, 1]
            at = 0
            for unit in running.session.units():
                begin, end = starts[unit.id]
                if (by := int(after[at]) - begin) != 0:
                    stock.shift(begin, end, by)
                at += unit.tokens
    assert retentions >= 3
    found = running.probe()
    places = running.session.tokens()[-len(PROBE) :, 1:]
    stock.decode(Part("text", tuple(PROBE)), places)
    expected = stock.logits()
    stock.close()
    running.close()
    off = float(np.abs(found - expected).max() / np.abs(expected).max())
    print(name, positions, cache, f"{off:.1e}", retentions)
    assert np.abs(expected).max() > 1.0
    assert off < logits_tolerance(name, cache[0])


@pytest.mark.parametrize(("name", "cache"), ONE_CACHE)
def test_layouts_agree(written: Callable[[str], Path], name: str, cache: tuple[str, str]) -> None:
    assert_layouts_agree(name, written(name), cache)


@pytest.mark.long
@pytest.mark.parametrize(("name", "cache"), REST)
def test_layouts_agree_with_other_caches(written: Callable[[str], Path], name: str, cache: tuple[str, str]) -> None:
    assert_layouts_agree(name, written(name), cache)


def assert_layouts_agree(name: str, path: Path, cache: tuple[str, str]) -> None:
    logits, moved = {}, {}
    for layout in LAYOUTS:
        chosen = options(layout=layout, cache_type=cache[0], flash_attn=cache[1])
        running = Running.open(path, chosen, N_CTX, page_size=16)
        stream = Stream(running, seed=1)
        stream.system()
        assert stream.run(16) >= 2
        logits[layout], moved[layout] = running.probe(), stream.rows_moved
        running.close()
    native = logits["native"]
    spread = {layout: float(np.abs(found - native).max() / np.abs(native).max()) for layout, found in logits.items()}
    assert max(spread.values()) < logits_tolerance(name, cache[0]), spread
    assert moved["native"] == 0
    assert min(moved[layout] for layout in ("eager", "class-packing", "ordered-suffix")) > 0

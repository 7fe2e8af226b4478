"""Models with a window in some layers, and hybrids with a recurrent state: managed as exactly as plain ones.

Whatever a cached key went through, it is the one that the model computed, turned to the place that it has now. A
hybrid's recurrent layers remember what was deleted: nothing but stock llama.cpp after the same removals is like it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_stream import PROBE, Part, Running, Stream
from stock_context import StockContext
from test_exactness import LOGITS_TOLERANCE, errors_in_steps
from tiny_models import (
    HEAD_DIM,
    write_attention_model,
    write_gemma3,
    write_gemma4,
    write_lfm2,
    write_qwen35,
)

from omnitide_cli.errors import ModelError, SessionFileError
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.native import llama as typed_llama
from omnitide_cli.runtime.native_session import LAYOUTS, NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.runtime.recall import Recall, RecallSettings

llama: Any = typed_llama  # its declarations ask for a check of every pointer

N_CTX = 512
HISTORY: dict[str, Any] = {"high_watermark": 380, "low_watermark": 240, "recent_units": 2, "text_budget": 40}
CACHES = [("f16", "off"), ("f16", "on"), ("q8_0", "on")]
POLICIES = ["omnipick", "fifo", "token", "streaming-llm", "h2o"]
WRITERS: dict[str, Callable[[Path], Path]] = {
    "gemma2": lambda path: write_attention_model(path, "gemma2"),
    "gemma3": write_gemma3,
    "gemma4": write_gemma4,
    "qwen35": write_qwen35,
    "lfm2": write_lfm2,
    "lfm2-window": lambda path: write_lfm2(path, window=64),
}
WINDOWED = ["gemma2", "gemma3", "gemma4"]
HYBRID = ["qwen35", "lfm2", "lfm2-window"]
MROPE = ["qwen35"]


@dataclass(frozen=True)
class Turning:
    """How a layer turns its keys: dimensions of a head, how many turn, by which base; how many of those move."""

    head: int = HEAD_DIM
    n_rot: int = HEAD_DIM
    base: float = 1e6
    n_moving: int = HEAD_DIM


TURNINGS: dict[str, dict[int, Turning]] = {
    "gemma2": {layer: Turning() for layer in range(3)},
    "gemma3": {layer: Turning(base=1e6 if layer == 5 else 1e4) for layer in range(8)},
    "gemma4": {
        **{layer: Turning(base=1e4) for layer in range(3)},
        3: Turning(head=2 * HEAD_DIM, n_rot=2 * HEAD_DIM, n_moving=HEAD_DIM // 2),
    },
    "qwen35": {layer: Turning(n_rot=HEAD_DIM // 2) for layer in (3, 7)},
    "lfm2": {layer: Turning() for layer in (2, 5)},
    "lfm2-window": {layer: Turning(base=1e4) for layer in (2, 5)},
}


def turned(keys: NDArray[np.float32], by: NDArray[np.int64], turning: Turning) -> NDArray[np.float64]:
    """Rows of keys, each turned by so many positions, in double precision."""
    heads = keys.reshape(len(keys), -1, turning.head).astype(np.float64)
    half = turning.n_rot // 2
    frequencies = turning.base ** (-np.arange(half) / half)
    frequencies[turning.n_moving // 2 :] = 0
    angles = by[:, None] * frequencies
    cosine, sine = np.cos(angles)[:, None], np.sin(angles)[:, None]
    one, other = heads[..., :half].copy(), heads[..., half : turning.n_rot].copy()
    heads[..., :half] = one * cosine - other * sine
    heads[..., half : turning.n_rot] = one * sine + other * cosine
    return heads.reshape(len(keys), -1)


@dataclass
class Recorded(Stream):
    """Remembers each token's keys as they were computed.

    A token is known by its values in the last layer: they are never turned, and moved bit by bit.
    """

    computed: dict[bytes, tuple[int, list[NDArray[np.float32]]]] = field(default_factory=dict)

    def add(self, kind: str, parts: list[Part]) -> None:
        super().add(kind, parts)
        tokens = self.running.session.tokens()[-sum(map(len, parts)) :]
        keys, names = self.cached(tokens)
        for i, name in enumerate(names):
            self.computed[name] = (int(tokens[i, 1]), [layer[i] for layer in keys])

    def cached(self, tokens: NDArray[np.int64]) -> tuple[list[NDArray[np.float32]], list[bytes]]:
        """Keys by layer, and what each token is known by."""
        session = self.running.session
        cells = tokens[:, 0].tolist()
        layers = session.layers()
        names = [row.tobytes() for row in session.values(layers[-1], cells)]
        return [session.keys(layer, cells) for layer in layers], names


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a model by its name."""
    folder = tmp_path_factory.mktemp("memories")

    def write(name: str) -> Path:
        path = folder / f"{name}.gguf"
        return path if path.exists() else WRITERS[name](path)

    return write


def options(**other: object) -> EngineOptions:
    return EngineOptions(**{**HISTORY, **other})  # pyright: ignore[reportArgumentType]


def pressed(path: Path, settings: EngineOptions, units: int = 26) -> tuple[Running, Recorded]:
    """A session whose history was cut, shifted and moved."""
    running = Running.open(path, settings, N_CTX, page_size=16)
    stream = Recorded(running, seed=1)
    stream.system()
    assert stream.run(units) >= (5 if units > 40 else 2), "the stream must press hard enough"
    return running, stream


# --- keys


def hadamard(keys: NDArray[np.float64], head: int) -> NDArray[np.float64]:
    """Each head multiplied by a Hadamard matrix, as llama.cpp keeps quantised keys; its own inverse."""
    matrix = np.ones((1, 1))
    while len(matrix) < head:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (keys.reshape(len(keys), -1, head) @ (matrix / np.sqrt(head))).reshape(len(keys), -1)


def worst_key(name: str, stream: Recorded, cache_type: str) -> tuple[float, int]:
    """The largest error of all layers' keys, in steps (q8_0: a row's root mean square), and how many tokens shifted."""
    tokens = stream.running.session.tokens()
    layers, names = stream.cached(tokens)
    by = np.array([t - stream.computed[key][0] for t, key in zip(tokens[:, 1].tolist(), names, strict=True)])
    worst = 0.0
    for i, (found, turning) in enumerate(zip(layers, TURNINGS[name].values(), strict=True)):
        first = np.array([stream.computed[key][1][i] for key in names])
        if cache_type == "q8_0":
            plain = hadamard(first.astype(np.float64), turning.head).astype(np.float32)
            expected = hadamard(turned(plain, by, turning), turning.head)
        else:
            expected = turned(first, by, turning)
        errors = errors_in_steps(found, expected, cache_type)
        if cache_type == "q8_0":
            assert errors.max() < 3.0
            errors = np.sqrt((errors**2).mean(axis=1))
        worst = max(worst, float(errors.max()))
    return worst, int((by != 0).sum())


def caches_of(name: str) -> list[tuple[str, str]]:
    """Those that the model can have."""
    return CACHES[:2] if name == "lfm2-window" else CACHES


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
EACH_CACHE = [(name, cache) for name in WRITERS for cache in caches_of(name)]
ONE_CACHE = [(name, caches_of(name)[i % len(caches_of(name))]) for i, name in enumerate(WRITERS)]
REST = [case for case in EACH_CACHE if case not in ONE_CACHE]


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


@pytest.mark.parametrize(("name", "cache"), EACH_CACHE)
@pytest.mark.parametrize("positions", ["sparse", "compact"])
def test_logits_are_stocks_after_the_same_removals(
    written: Callable[[str], Path], name: str, positions: str, cache: tuple[str, str]
) -> None:
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
    assert off < LOGITS_TOLERANCE[cache[0]]


@pytest.mark.parametrize(("name", "cache"), ONE_CACHE)
def test_layouts_agree(written: Callable[[str], Path], name: str, cache: tuple[str, str]) -> None:
    assert_layouts_agree(written(name), cache)


@pytest.mark.long
@pytest.mark.parametrize(("name", "cache"), REST)
def test_layouts_agree_with_other_caches(written: Callable[[str], Path], name: str, cache: tuple[str, str]) -> None:
    assert_layouts_agree(written(name), cache)


def assert_layouts_agree(path: Path, cache: tuple[str, str]) -> None:
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
    assert max(spread.values()) < LOGITS_TOLERANCE[cache[0]], spread
    assert moved["native"] == 0
    assert min(moved[layout] for layout in ("eager", "class-packing", "ordered-suffix")) > 0


# --- what is taken back, saved, recalled


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


@pytest.mark.parametrize(("name", "other"), [("gemma3", "gemma4"), ("qwen35", "lfm2"), ("gemma3", "gemma2")])
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
    for name in ("qwen35", "lfm2"):
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

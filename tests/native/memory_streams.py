"""Streams through models with a window in some layers, and hybrids: every key as it was computed is kept to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from random_stream import Part, Running, Stream
from test_exactness import LOGITS_TOLERANCE, errors_in_steps
from tiny_models import HEAD_DIM, write_attention_model
from tiny_models.families import FAMILIES, write_lfm2

from omnitide_cli.runtime.options import EngineOptions

N_CTX = 512
HISTORY: dict[str, Any] = {"high_watermark": 380, "low_watermark": 240, "recent_units": 2, "text_budget": 40}
CACHES = [("f16", "off"), ("f16", "on"), ("q8_0", "on")]
POLICIES = ["omnipick", "fifo", "token", "streaming-llm", "h2o"]
WRITERS: dict[str, Callable[[Path], object]] = {
    **{name: family.write_model for name, family in FAMILIES.items()},
    "gemma2": lambda path: write_attention_model(path, "gemma2"),
    "lfm2-window": lambda path: write_lfm2(path, window=64),
}
WINDOWED = ["gemma2", "gemma3", "gemma4", "gemma4-e2b"]
HYBRID = ["qwen3.5", "lfm2-vl", "lfm2-window"]
MROPE = ["qwen2.5-omni", "qwen2.5-vl", "qwen3-vl", "qwen3-omni", "glm-4.6v", "qwen3.5"]
PLAIN = [name for name in WRITERS if name not in WINDOWED + HYBRID]
"""All layers see everything: tried with one cache and in the long tests with the others."""


@dataclass(frozen=True)
class Turning:
    """How a layer turns its keys: dimensions of a head, how many turn, by which base; how many of those move.

    A pair is a dimension and the next one (`adjacent`), or the one half a rotation away.
    """

    head: int = HEAD_DIM
    n_rot: int = HEAD_DIM
    base: float = 1e6
    n_moving: int = HEAD_DIM
    adjacent: bool = False


ADJACENT = ["pixtral", "voxtral", "ultravox", "glm-asr", "smolvlm2"]
"""Llama's own order of pairs."""
GEMMA4 = {
    **{layer: Turning(base=1e4) for layer in range(3)},
    3: Turning(head=2 * HEAD_DIM, n_rot=2 * HEAD_DIM, n_moving=HEAD_DIM // 2),
}
TURNINGS: dict[str, dict[int, Turning]] = {
    **{name: {layer: Turning() for layer in range(3)} for name in PLAIN},
    **{name: {layer: Turning(adjacent=True) for layer in range(3)} for name in ADJACENT},
    "qwen3-vl": {layer: Turning() for layer in range(4)},
    "glm-4.6v": {layer: Turning(n_rot=HEAD_DIM // 2) for layer in range(3)},
    "moondream2": {layer: Turning(n_rot=HEAD_DIM // 2) for layer in range(3)},
    "gemma2": {layer: Turning() for layer in range(3)},
    "gemma3": {layer: Turning(base=1e6 if layer == 5 else 1e4) for layer in range(8)},
    "gemma4": GEMMA4,
    "gemma4-e2b": GEMMA4,
    "qwen3.5": {layer: Turning(n_rot=HEAD_DIM // 2) for layer in (3, 7)},
    "lfm2-vl": {layer: Turning() for layer in (2, 5)},
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
    ones = slice(0, turning.n_rot, 2) if turning.adjacent else slice(0, half)
    others = slice(1, turning.n_rot, 2) if turning.adjacent else slice(half, turning.n_rot)
    one, other = heads[..., ones].copy(), heads[..., others].copy()
    heads[..., ones] = one * cosine - other * sine
    heads[..., others] = one * sine + other * cosine
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


def options(**other: object) -> EngineOptions:
    return EngineOptions(**{**HISTORY, **other})  # pyright: ignore[reportArgumentType]


def pressed(path: Path, settings: EngineOptions, units: int = 26) -> tuple[Running, Recorded]:
    """A session whose history was cut, shifted and moved."""
    running = Running.open(path, settings, N_CTX, page_size=16)
    stream = Recorded(running, seed=1)
    stream.system()
    assert stream.run(units) >= (5 if units > 40 else 2), "the stream must press hard enough"
    return running, stream


def caches_of(name: str) -> list[tuple[str, str]]:
    """Those that the model can have."""
    return CACHES[:2] if name == "lfm2-window" else CACHES


def logits_tolerance(name: str, cache_type: str) -> float:
    """Of the largest logit. Gemma 4's last four layers all read one layer's rows: what these were rounded by counts
    four times over, between two layouts (0.0105 seen) as between ours and stock's order of cells (0.013)."""
    return LOGITS_TOLERANCE[cache_type] * (2 if name.startswith("gemma4") and cache_type == "q8_0" else 1)


EACH_CACHE = [(name, cache) for name in WRITERS for cache in caches_of(name)]


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

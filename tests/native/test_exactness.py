"""After any evictions, shifts and moves the cache holds what a fresh run over the kept tokens would hold.

Layer-0 keys depend on a token and its position alone, so a fresh run over the kept tokens at their new positions
must give the same ones; deeper layers have seen what is gone. Logits are compared between layouts, which may not
change them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_stream import Running, Stream
from tiny_models import write_attention_model

from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.session import LAYOUTS

N_CTX = 512
HISTORY: dict[str, Any] = {"high_watermark": 380, "low_watermark": 240, "recent_units": 2, "text_budget": 40}
CACHES = [("f16", "on"), ("f16", "off"), ("q8_0", "on")]
POLICIES = ["omnipick", "fifo", "token", "streaming-llm"]
ARCHITECTURES = ["qwen2vl", "llama", "qwen2"]
Q8_BLOCK = 32


def run(path: Path, *, units: int = 26, seed: int = 1, **options: object) -> tuple[Running, Stream]:
    """A session after `units` media units under pressure."""
    running = Running.open(path, EngineOptions(**{**HISTORY, **options}), N_CTX)  # pyright: ignore[reportArgumentType]
    stream = Stream(running, seed=seed)
    stream.system()
    assert stream.run(units) >= 3, "the stream must press hard enough"
    return running, stream


def key_errors(running: Running, stream: Stream, path: Path, cache_type: str, flash_attn: str) -> NDArray[np.float32]:
    """Layer-0 key differences to a fresh run, in quantisation steps of the row (f16) or block (q8_0)."""
    options = EngineOptions(policy="full", layout="native", cache_type=cache_type, flash_attn=flash_attn)
    fresh = Running.open(path, options, N_CTX)
    try:
        stream.replay(fresh)
        ours, theirs = running.session.tokens(), fresh.session.tokens()
        np.testing.assert_array_equal(ours[:, 1:], theirs[:, 1:])
        found = running.session.keys(0, ours[:, 0].tolist())
        expected = fresh.session.keys(0, theirs[:, 0].tolist())
    finally:
        fresh.close()
    if cache_type == "f16":
        largest = np.abs(expected).max(axis=1, keepdims=True)
        step = np.spacing(largest.astype(np.float16)).astype(np.float32)
    else:
        blocks = np.abs(expected).reshape(len(expected), -1, Q8_BLOCK).max(axis=2) / 127
        step = np.repeat(blocks, Q8_BLOCK, axis=1)
    return (np.abs(found - expected) / step).astype(np.float32)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("cache_type", "flash_attn"), CACHES)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_keys_are_those_of_a_fresh_run(
    models: dict[str, Path], arch: str, cache_type: str, flash_attn: str, policy: str
) -> None:
    running, stream = run(models[arch], policy=policy, cache_type=cache_type, flash_attn=flash_attn)
    try:
        errors = key_errors(running, stream, models[arch], cache_type, flash_attn)
    finally:
        running.close()
    if cache_type == "f16":
        assert errors.max() <= 1.0
    else:
        # A rotation mixes the rounding errors of a quantised block, so that a single value may be two steps off;
        # the error of a key as a whole is below one.
        assert np.sqrt((errors**2).mean(axis=1)).max() < 1.0
        assert errors.max() < 3.0


@pytest.mark.parametrize("cache_type", ["f16", "q8_0"])
def test_error_does_not_grow_with_the_number_of_shifts(models: dict[str, Path], cache_type: str) -> None:
    path = models["qwen2vl"]
    spread = []
    for units in (26, 120):
        running, stream = run(path, units=units, cache_type=cache_type, text_budget=120)
        try:
            errors = key_errors(running, stream, path, cache_type, "auto")
            spread.append((running.session.snapshot().max_rotations, float(np.sqrt((errors**2).mean()))))
        finally:
            running.close()
    (few, before), (many, after) = spread
    assert many > few
    assert after < before * 1.1


@pytest.mark.parametrize("positions", ["compact", "sparse"])
@pytest.mark.parametrize(("cache_type", "flash_attn"), CACHES)
@pytest.mark.parametrize("arch", ["qwen2vl", "llama"])
def test_layouts_give_the_same_logits(
    models: dict[str, Path], arch: str, cache_type: str, flash_attn: str, positions: str
) -> None:
    logits = {}
    for layout in LAYOUTS:
        running, _ = run(models[arch], layout=layout, positions=positions, cache_type=cache_type, flash_attn=flash_attn)
        logits[layout] = running.probe()
        running.session.check()
        running.close()
    native = logits.pop("native")
    assert np.abs(native).max() > 1.0
    # Summation order alone differs. Small differences of one update grow through the quantisation of the next in q8_0.
    tolerance = 0.02 if cache_type == "f16" else 0.2
    for layout, found in logits.items():
        assert np.abs(found - native).max() < tolerance, layout


def test_sparse_positions_leave_keys_alone(models: dict[str, Path]) -> None:
    running, _ = run(models["qwen2vl"], positions="sparse")
    assert running.session.snapshot().max_rotations == 0
    running.session.check()
    running.close()


def test_sparse_positions_close_up_once_before_the_window_ends(tmp_path: Path) -> None:
    window = 2048
    path = write_attention_model(tmp_path / "short.gguf", "qwen2vl", context=window)
    running = Running.open(path, EngineOptions(**HISTORY, positions="sparse"), N_CTX)
    stream = Stream(running, seed=2)
    stream.system()
    farthest, rotations = 0, []
    for _ in range(140):
        stream.media()
        running.session.maintain()
        running.session.check()
        now = running.session.snapshot()
        farthest = max(farthest, now.next_position)
        rotations.append(now.max_rotations)
    running.close()
    assert window / 2 < farthest < window
    assert rotations[0] == 0
    assert max(rotations) == 1, "what is kept across a closing up is rotated once, and rarely kept across two"

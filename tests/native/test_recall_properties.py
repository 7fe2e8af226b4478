"""Random streams under every policy, layout, position mode and cache type: what is recalled leaves no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_stream import PROBE, Running, Stream

from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.recall import Recall, RecallSettings

N_CTX = 768
POLICIES = ["omnipick", "fifo", "token", "streaming-llm"]
LAYOUTS = ["auto", "native", "class-packing", "ordered-suffix"]
CACHES = [("f16", "on"), ("f16", "off"), ("q8_0", "on")]


def fed(path: Path, chosen: EngineOptions, seed: int, units: int, recall: bool) -> tuple[Running, Any, Stream]:
    running = Running.open(path, chosen, N_CTX)
    archive = Recall(running.session, RecallSettings((0, 2), 200, 0.0, 1 << 26)) if recall else None
    stream = Stream(running, seed=seed)
    stream.system()
    stream.run(units)
    return running, archive, stream


@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_kept_rows_and_logits_are_those_of_a_session_that_never_recalled(
    models: dict[str, Path], data: st.DataObject
) -> None:
    cache_type, flash_attn = data.draw(st.sampled_from(CACHES))
    chosen = EngineOptions(
        policy=data.draw(st.sampled_from(POLICIES)),
        layout=data.draw(st.sampled_from(LAYOUTS)),
        positions=data.draw(st.sampled_from(["compact", "sparse"])),
        cache_type=cache_type,
        flash_attn=flash_attn,
        high_watermark=380,
        low_watermark=240,
        recent_units=2,
        text_budget=40,
    )
    arch = models[data.draw(st.sampled_from(["qwen2vl", "llama"]))]
    seed, units = data.draw(st.integers(0, 10**6)), data.draw(st.integers(18, 30))
    running, recall, stream = fed(arch, chosen, seed, units, recall=True)
    other, _, twin = fed(arch, chosen, seed, units, recall=False)
    try:
        for _ in range(data.draw(st.integers(1, 3))):
            ids = [each.unit for each in recall.search(PROBE)]
            room = running.session.snapshot().n_cells - running.session.snapshot().history_tokens - 64
            back: list[int] = []
            for unit in sorted(data.draw(st.sets(st.sampled_from(ids), max_size=4)) if ids else ()):
                room -= recall.noted(unit)[0]
                back += [unit] if room >= 0 else []
            assert recall.put_back(back) == running.session.snapshot().recalled_cells
            running.session.check()
            recall.dismiss()
            assert_alike(running, other)
            np.testing.assert_array_equal(running.probe(), other.probe())
            for each in (stream, twin):
                each.media()
                each.running.session.maintain()
        assert_alike(running, other)
    finally:
        running.close()
        other.close()


def assert_alike(found: Running, expected: Running) -> None:
    """The same history in the same cells, keys and values the same bits."""
    np.testing.assert_array_equal(found.session.tokens(), expected.session.tokens())
    np.testing.assert_array_equal(found.session.cells(), expected.session.cells())
    assert found.session.units() == expected.session.units()
    cells = expected.session.tokens()[:, 0].tolist()
    for layer in range(3):
        np.testing.assert_array_equal(found.session.keys(layer, cells), expected.session.keys(layer, cells))
        np.testing.assert_array_equal(found.session.values(layer, cells), expected.session.values(layer, cells))

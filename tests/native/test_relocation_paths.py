"""Rows in this process's memory are relocated without a detour; elsewhere by a graph that any backend runs.

Both must leave the same bytes. The graph is asked for by name, since no other device is here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import Stream

UNITS = Stream(0, 16, 25)
N_CTX = 512
RETENTIONS = 5


def relocated(path: Path, options: EngineOptions) -> tuple[NDArray[np.uint8], int, int]:
    """All that a session of random rows holds after some retentions, and rows shifted and moved."""
    shifted = moved = retentions = 0
    with Fixture(path, options) as fixture:
        session = fixture.session(N_CTX)
        fixture.add(session, "system", UNITS.parts()[-1:])
        while retentions < RETENTIONS:
            fixture.add(session, "media", UNITS.parts())
            upkeep = session.maintain()
            retentions += upkeep.retained
            shifted, moved = shifted + upkeep.rows_shifted, moved + upkeep.rows_moved
        session.check()
        return np.frombuffer(session.save(), np.uint8), shifted, moved


@pytest.mark.parametrize("positions", ["compact", "sparse"])
@pytest.mark.parametrize(("cache_type", "flash_attn"), [("f16", "off"), ("f16", "on"), ("f32", "off"), ("f32", "on")])
@pytest.mark.parametrize("model", ["qwen2vl", "qwen2", "llama"])
def test_rows_are_the_same_to_the_bit(
    models: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    cache_type: str,
    flash_attn: str,
    positions: str,
) -> None:
    options = EngineOptions(
        high_watermark=380,
        low_watermark=240,
        recent_units=2,
        text_budget=40,
        layout="eager",
        positions=positions,
        cache_type=cache_type,
        flash_attn=flash_attn,
        unit_tokens=UNITS.unit_tokens,
        threads=2,
    )
    here, shifted, moved = relocated(models[model], options)
    assert moved > 0
    assert (shifted > 0) == (positions == "compact")
    monkeypatch.setenv("OMNITIDE_RELOCATION", "graph")
    graph, *amounts = relocated(models[model], options)
    assert amounts == [shifted, moved]
    np.testing.assert_array_equal(here, graph)

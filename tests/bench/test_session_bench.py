"""Whole sessions in processes of their own, and what a budget of bytes lasts for."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.shapes import shape_file
from omnitide_cli.bench.common.subprocess import run_in_subprocess
from omnitide_cli.bench.session.budget import ENOUGH, MANY, budget_of_run, budget_of_shape, worked_out
from omnitide_cli.bench.session.command import byte_count
from omnitide_cli.bench.session.measure import Job, Percentiles, Run, run_session, typical, with_attention
from omnitide_cli.catalog.files import fetch_files, find_manifest
from omnitide_cli.commands.run import run
from omnitide_cli.errors import ModelError, RuntimeFailure, UsageError
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import Stream
from omnitide_cli.session.configuration import frame_fit

EXAMPLE = Path(__file__).parents[2] / "examples" / "shapes-and-notes.mp4"
SMALL = EngineOptions(high_watermark=300, low_watermark=200, unit_tokens=45, threads=2)
MARKS = ("--watermarks", "300/200", "--threads", "2")


def job(**changes: object) -> Job:
    manifest = find_manifest(None)
    options = replace(SMALL, **changes)  # type: ignore[arg-type]
    fit = frame_fit(manifest, None)
    return Job(fetch_files(manifest), manifest.prompt, options, str(EXAMPLE), fit, True, 24, ((10.0, "What?"),))


def ran(chosen: Job, *, stop_after: int | None = None) -> Run:
    said: list[str] = []
    return run_session(chosen, said.append, lambda: len(said) == stop_after)


# --- a process of its own


def _answer(number: int, progress: Callable[[str], None], stopped: Callable[[], bool]) -> tuple[int, int]:
    progress("begun")
    return number + 1, os.getpid()


def _fail(progress: Callable[[str], None], stopped: Callable[[], bool]) -> None:
    raise ModelError("no such model", "choose another")


def _die(progress: Callable[[str], None], stopped: Callable[[], bool]) -> None:
    os._exit(9)


def _wait(progress: Callable[[str], None], stopped: Callable[[], bool]) -> str:
    while not stopped():
        pass
    return "stopped"


def test_another_process_answers_reports_and_fails_as_this_one_would() -> None:
    said: list[str] = []
    number, process = run_in_subprocess(_answer, 41, progress=said.append, stopped=lambda: False)
    assert (number, said) == (42, ["begun"])
    assert process != os.getpid()
    with pytest.raises(ModelError) as error:
        run_in_subprocess(_fail, progress=said.append, stopped=lambda: False)
    assert error.value.hint == "choose another"
    with pytest.raises(RuntimeFailure, match="exit code 9"):
        run_in_subprocess(_die, progress=said.append, stopped=lambda: False)
    assert run_in_subprocess(_wait, progress=said.append, stopped=lambda: True) == "stopped"


# --- sessions


def test_a_session_says_where_its_time_went() -> None:
    found = ran(job())
    row = found.row
    assert (row.policy, row.high_watermark, row.low_watermark, row.units, row.media_s) == ("omnipick", 300, 200, 24, 24)
    assert row.retentions > 3
    assert row.stopped == ""
    spent = row.per_unit.encode + row.per_unit.prefill + row.per_unit.maintain
    assert 0 < spent * row.units / 1000 + row.answer_s <= row.stream_loop_s
    assert row.answer_s > 0
    assert row.per_unit.attention is None
    for found_ms in (row.per_unit_ms, row.per_retention_ms):
        assert found_ms is not None
        assert 0 < found_ms.p50 <= found_ms.p95 <= found_ms.p99
    assert found.media_tokens == 24 * 45
    assert row.peak_history_tokens < 500 < found.system_tokens + found.media_tokens


def test_attention_is_watched_in_a_run_of_its_own() -> None:
    plain, watched = ran(job(), stop_after=6), ran(replace(job(), watched=True), stop_after=6)
    found = with_attention(plain, watched).row.per_unit
    assert found.attention is not None
    assert 0 < found.attention < watched.row.per_unit.prefill * 2
    assert replace(found, attention=None) == plain.row.per_unit
    assert watched.row.peak_history_tokens == plain.row.peak_history_tokens, "it leaves no trace"


def test_a_full_cache_ends_a_session_and_is_said() -> None:
    row = ran(job(policy="full", ctx=512)).row
    assert row.stopped == "cache full"
    assert (row.high_watermark, row.low_watermark) == (None, None)
    assert 5 < row.units < 12


def test_interrupted_it_tells_what_there_is() -> None:
    row = ran(job(), stop_after=7).row
    assert (row.units, row.stopped) == (7, "interrupted")


def test_repeated_runs_become_medians_and_the_largest_memory() -> None:
    one = ran(job(), stop_after=3)
    rows = [
        replace(one.row, stream_loop_s=loop, peak_rss_bytes=rss, per_unit_ms=Percentiles(loop, loop, loop))
        for loop, rss in ((1.0, 5), (9.0, 7), (2.0, 6))
    ]
    row = typical([replace(one, row=row) for row in rows]).row
    assert (row.stream_loop_s, row.peak_rss_bytes, row.repeat) == (2.0, 7, 3)
    assert row.per_unit_ms == Percentiles(2.0, 2.0, 2.0)
    assert row.per_retention_ms is None


# --- budgets


def test_the_papers_budget_is_arithmetic() -> None:
    # Qwen2.5-Omni-7B: 28 layers of 4 heads of 128 values, keys and values, 2 bytes each; 220K tokens in 241 s.
    per_cell = 28 * 4 * 128 * 2 * 2
    row = worked_out(4 * 2**30, per_cell, 32, 220_000 / 241)
    assert row.media_s == pytest.approx(82, abs=0.5)
    assert row.kv_bytes <= 4 * 2**30 < row.kv_bytes + per_cell
    assert worked_out(round(3.5 * 2**30), per_cell, 32, 220_000 / 241).media_s == pytest.approx(72, abs=1)
    assert worked_out(1000, per_cell, 32, 900).media_s == 0


def test_a_shape_with_fewer_layers_stands_for_all_of_them(tmp_path: Path) -> None:
    stream = Stream(0, 16, 25)
    rows = {}
    for layers in (1, 3):
        file = shape_file("tiny", layers, tmp_path, lambda _: None)
        with Fixture(file, SMALL) as fixture:
            for policy in ("full", "omnipick"):
                scale = 3 / layers
                rows[policy, layers] = budget_of_shape(
                    fixture, stream, policy, (300, 200), 10**7, scale, lambda _: None
                )
    full = rows["full", 3]
    assert full.bytes_per_cell == 3 * 2 * 64 * 2 * 2
    assert full.media_s == pytest.approx((10**7 // full.bytes_per_cell - 32) / 45)
    assert rows["full", 1] == full
    bounded, scaled = rows["omnipick", 3], rows["omnipick", 1]
    assert bounded.media_s is None
    assert bounded.says.startswith("never: ")
    assert bounded.retentions == MANY
    assert bounded.kv_bytes < 10**7
    assert bounded.per_retention_ms is not None
    assert bounded.per_retention_ms.p50 > 0
    assert scaled.kv_bytes == pytest.approx(bounded.kv_bytes, rel=0.05)


def test_a_session_that_was_too_short_does_not_say_never() -> None:
    found = ran(job(), stop_after=12)
    row = budget_of_run(found, 2**30)
    assert row.media_s == row.media_run_s == 12
    assert "('never' needs" in row.says
    assert budget_of_run(found, 1000).says.startswith("exceeded from the start")
    long = replace(found, row=replace(found.row, retentions=ENOUGH))
    assert budget_of_run(long, 2**30).media_s is None


@pytest.mark.parametrize(
    ("text", "count"), [("4GiB", 2**32), ("1.5 MiB", 1572864), ("500MB", 5 * 10**8), ("7", 7), ("12kB", 12_000)]
)
def test_bytes(text: str, count: int) -> None:
    assert byte_count(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "4 gibs", "-1", "1e9"])
def test_what_are_no_bytes(text: str) -> None:
    with pytest.raises(UsageError, match="not a size in bytes"):
        byte_count(text)


# --- the command


def test_policies_side_by_side(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    size = ["--units", "24", *MARKS, "--attention", "--kv-budget", "1MB", "--policy", "full", "--policy", "fifo"]
    assert run(app, ["bench", "session", str(EXAMPLE), *size, "--json", "--out", str(tmp_path)]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    sessions, budgets = ([row for row in rows if row["type"] == kind] for kind in ("session", "budget"))
    assert [(row["policy"], row["high_watermark"]) for row in sessions] == [("full", None), ("fifo", 300)]
    needed = {"media_s", "stream_loop_s", "per_unit", "per_unit_ms", "peak_rss_bytes", "kv_bytes"}
    assert all(needed <= row.keys() for row in sessions)
    assert sessions[0]["per_unit"].keys() == {"encode", "prefill", "attention", "maintain"}
    assert all(0 < row["per_unit"]["attention"] < 1000 for row in sessions)
    full, fifo = budgets
    per_second = 45 * full["bytes_per_cell"]
    assert full["media_s"] == pytest.approx(1e6 / per_second, abs=1)
    assert fifo["kv_bytes"] == sessions[1]["kv_bytes"]["allocated"]
    with (tmp_path / "session.csv").open() as file:
        kept = list(csv.DictReader(file))
    assert [row["policy"] for row in kept] == ["full", "fifo"]
    assert float(kept[1]["per_unit.prefill"]) == sessions[1]["per_unit"]["prefill"]
    assert kept[0]["high_watermark"] == ""
    assert {path.name for path in tmp_path.iterdir()} == {"session.csv", "session.svg", "session-budget.csv"}


def test_a_shapes_budget_for_people(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path))
    size = ["--image", "16", "--kv-budget", "4GiB", "--watermarks", "300/200", "--watermarks", "400/200"]
    assert run(app, ["bench", "session", "--shape", "tiny", *size]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("full, 4GiB: exceeded after")
    assert [line.partition(",")[0] for line in lines] == ["full", "omnipick 300/200", "omnipick 400/200"]
    assert all(": never: " in line for line in lines[1:])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "nothing to watch"),
        (("--shape", "tiny"), "--shape works only with --kv-budget"),
        (("clip.mp4", "--shape", "tiny", "--kv-budget", "1GiB"), "--shape works only with --kv-budget"),
        (("--shape", "tiny", "--kv-budget", "1GiB", "--watermarks", "50/40"), "the low watermark (40)"),
        (("clip.mp4", "--policy", "lru"), "no such policy"),
    ],
)
def test_what_can_not_be_run_is_said(
    arguments: tuple[str, ...],
    part: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path))
    assert run(app, ["bench", "session", *arguments]) == 2
    assert part in capfd.readouterr().err

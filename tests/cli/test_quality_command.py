"""`omnitide bench quality` as a user calls it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.bench.quality.results import Results
from omnitide_cli.bench.quality.score import Mark
from omnitide_cli.errors import CacheFull

FIELDS = {
    "type",
    "policy",
    "kind",
    "accuracy",
    "low",
    "high",
    "n",
    "history_tokens",
    "physical_span",
    "stream_loop_s",
    "high_watermark",
    "low_watermark",
    "positions",
    "setting",
    "senses",
    "ages",
    "difference",
    "model",
    "units",
    "seed",
    "split",
    "simple",
    "recent_units",
    "image_sinks",
    "audio_sinks",
    "text_budget",
    "sinks",
    "newest_units",
    "min_pages",
    "layout",
    "cache_type",
}
Omnitide = Callable[..., Any]


def test_rows_are_those_of_the_interface(omnitide: Omnitide) -> None:
    flags = ("--units", 12, "--limit", 4, "--watermarks", "300/200", "--watermarks", "400/250", "--threads", 2)
    result = omnitide("bench", "quality", "--policy", "full", "--policy", "fifo", *flags, "--json")
    assert (result.code, result.err) == (0, "")
    rows = [json.loads(line) for line in result.out.splitlines()]
    assert all(row.keys() == FIELDS and row["type"] == "quality" for row in rows)
    totals = [row for row in rows if row["kind"] == "all"]
    found = [(row["policy"], row["high_watermark"], row["low_watermark"], row["n"]) for row in totals]
    assert found == [("full", None, None, 4), ("fifo", 300, 200, 4), ("fifo", 400, 250, 4)]
    assert all(0 <= row["low"] <= row["accuracy"] <= row["high"] <= 1 for row in rows)
    for policy, high in (("full", None), ("fifo", 300), ("fifo", 400)):
        kinds = [row for row in rows if (row["policy"], row["high_watermark"]) == (policy, high)]
        assert sum(row["n"] for row in kinds) == 2 * 4
    assert totals[1]["history_tokens"] < totals[2]["history_tokens"] < totals[0]["history_tokens"]


def test_a_table_for_people(omnitide: Omnitide) -> None:
    result = omnitide("bench", "quality", "--policy", "omnipick", "--units", 6, "--limit", 3, "--simple")
    assert result.code == 0
    assert "95 % interval" in result.out
    assert "history tokens" in result.out
    assert result.out.count("omnipick") == 3 + 1 + 1 + 1  # kinds, all, ages, costs


def test_settings_are_swept_on_validation_streams(omnitide: Omnitide) -> None:
    flags = ("--split", "validation", "--units", 12, "--limit", 3, "--watermarks", "400/300", "--recent-units", 2)
    result = omnitide("bench", "quality", "--sweep", "image-sinks=0,4,16", "--positions", "sparse", *flags, "--json")
    assert (result.code, result.err) == (0, "")
    totals = [row for row in map(json.loads, result.out.splitlines()) if row["kind"] == "all"]
    assert [row["setting"] for row in totals] == ["", "image-sinks=4", "image-sinks=0", "image-sinks=16"]
    assert {(row["policy"], row["positions"], row["n"]) for row in totals} == {("omnipick", "sparse", 3)}
    assert totals[0]["history_tokens"] == totals[1]["history_tokens"]
    assert totals[2]["history_tokens"] < totals[0]["history_tokens"] < totals[3]["history_tokens"]
    assert [row["image_sinks"] for row in totals] == [4, 4, 0, 16]
    assert totals[2]["difference"]["to"] == "defaults"


def test_an_interruption_prints_what_there_is(omnitide: Omnitide, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(results: Sequence[Results], model: Any, tasks: Any, stopped: Callable[[], bool], progress: Any) -> None:
        results[0].marks.append(Mark("now", "image", True))
        results[0].history.append(100)
        results[0].spans.append(256)
        os.kill(os.getpid(), signal.SIGINT)
        while not stopped():
            time.sleep(0.01)

    monkeypatch.setattr("omnitide_cli.bench.quality.measure.fill", fill)
    result = omnitide("bench", "quality", "--policy", "full", "--policy", "fifo", "--json")
    assert result.code == 130
    assert [json.loads(line)["policy"] for line in result.out.splitlines()] == ["full", "full"]
    assert "interrupted" in result.err


def test_a_failure_prints_what_was_answered_by_then(omnitide: Omnitide, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(results: Sequence[Results], *_: Any) -> None:
        results[0].marks.append(Mark("now", "image", True))
        results[0].history.append(100)
        results[0].spans.append(256)
        raise CacheFull("the cache is full", "raise --ctx")

    monkeypatch.setattr("omnitide_cli.bench.quality.measure.fill", fill)
    result = omnitide("bench", "quality", "--policy", "full", "--json")
    assert result.code == 1
    assert [json.loads(line)["n"] for line in result.out.splitlines()] == [1, 1]
    assert "the cache is full" in result.err


def test_a_sweep_is_drawn_as_curves(omnitide: Omnitide, tmp_path: Path) -> None:
    flags = ("--split", "validation", "--units", 12, "--limit", 3, "--watermarks", "300/200", "--threads", 2)
    swept = ("--sweep", "image-sinks=0,4", "--sweep", "recent-units=1,auto", "--out", tmp_path)
    assert omnitide("bench", "quality", *swept, *flags).code == 0
    drawn = (tmp_path / "quality.svg").read_text(encoding="utf-8")
    for name in ("by image-sinks", "by recent-units", ">auto<"):
        assert name in drawn


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (("--policy", "best"), "--policy best: there is no such policy"),
        (("--watermarks", "100"), "--watermarks 100: not a high watermark and a lower one"),
        (("--watermarks", "100/200"), "--watermarks 100/200: not a high watermark and a lower one"),
        (("--sweep", "image-sinks=0,8"), "settings must not be tuned on the streams that results are reported on"),
        (("--split", "validation", "--sweep", "sink=1"), "--sweep sink=1: not a setting (recent-units, image-sinks"),
        (("--split", "validation", "--sweep", "text-budget=auto"), "--sweep text-budget=auto: not a setting"),
        (
            ("--split", "validation", "--sweep", "recent-units=3", "--policy", "fifo"),
            "this setting belongs to omnipick",
        ),
        (("--watermarks", "50/20"), "the low watermark (20) is below the system prompt and one unit"),
    ],
)
def test_what_can_not_work_is_said(omnitide: Omnitide, flags: tuple[str, ...], part: str) -> None:
    result = omnitide("bench", "quality", "--limit", 1, *flags)
    assert (result.code, result.out) == (2, "")
    assert part in result.err

"""A soak: which units are compared, what faults do, and what is left when it ends early."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.soak import faults
from omnitide_cli.bench.soak.faults import EVERY, FAULTS, Fault
from omnitide_cli.bench.soak.measure import HOUR, LEAST_UNITS, MOST_ERRORS, Soak, decoded, soak, windows
from omnitide_cli.catalog.files import fetch_files, find_manifest
from omnitide_cli.commands.run import run
from omnitide_cli.errors import RuntimeFailure
from omnitide_cli.media import MediaUnit
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.session.configuration import frame_fit

EXAMPLE = Path(__file__).parents[2] / "examples" / "shapes-and-notes.mp4"
SMALL = EngineOptions(high_watermark=300, low_watermark=200, unit_tokens=45, threads=2)


@pytest.fixture(scope="module")
def clip() -> list[MediaUnit]:
    return decoded(str(EXAMPLE), frame_fit(find_manifest(None), None), audio=True)


def soaked(clip: list[MediaUnit], units: int, *, stop_at: int | None = None, with_faults: bool = False) -> Soak:
    manifest = find_manifest(None)
    done: list[int] = []
    return soak(
        fetch_files(manifest),
        manifest.prompt,
        SMALL,
        clip,
        units,
        done.append,
        with_faults=with_faults,
        stopped=lambda: len(done) == stop_at,
    )


def test_hours_are_compared_where_two_of_them_do_not_overlap() -> None:
    assert windows(2000) == (range(200, 301), range(1900, 2000))
    assert windows(24 * HOUR) == (range(HOUR, 2 * HOUR), range(23 * HOUR, 24 * HOUR))
    first, last = windows(3 * HOUR)
    assert first.stop <= last.start


def test_a_day_of_faults_leaves_a_session_as_it_was(clip: list[MediaUnit]) -> None:
    found = soaked(clip, EVERY * (len(FAULTS) + 1), with_faults=True)
    row = found.row
    assert (row.units, row.faults, row.errors, row.error) == (EVERY * (len(FAULTS) + 1), len(FAULTS) + 1, 0, "")
    assert row.retentions > 50
    assert row.peak_history_tokens <= SMALL.high_watermark + row.largest_unit
    assert row.unit_ms_first is not None
    assert row.rss_first is not None
    assert 0 < row.unit_ms_first < 1000
    assert [sample.unit for sample in found.samples] == [100, 200, 300, 400]
    assert found.samples[1].rss == row.rss_first


def test_without_faults_there_are_none(clip: list[MediaUnit]) -> None:
    row = soaked(clip, 120).row
    assert (row.faults, row.errors, row.largest_unit) == (0, 0, 45)


def test_stopped_early_it_says_what_there_is(clip: list[MediaUnit]) -> None:
    row = soaked(clip, LEAST_UNITS, stop_at=120).row
    assert (row.units, row.unit_ms_first, row.unit_ms_last, row.rss_first) == (120, None, None, None)
    assert row.python_ms > 0
    assert row.rss_last > 1e6


def test_what_fails_is_counted_and_a_dead_session_ends_it(
    clip: list[MediaUnit], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = replace(FAULTS[6], taken=True)
    monkeypatch.setattr(faults, "due", lambda index: refused if index in (3, 7) or index >= 20 else None)
    row = soaked(clip, 400, with_faults=True).row
    assert (row.units, row.errors) == (20 + MOST_ERRORS, 2 + MOST_ERRORS)
    assert row.error == "unit 3: what is no picture: the unit was not taken"


def test_each_fault_ends_as_it_must(clip: list[MediaUnit]) -> None:
    manifest = find_manifest(None)
    with Engine.open(fetch_files(manifest), manifest.prompt, SMALL) as engine:
        engine.start("test")
        for index, fault in enumerate(FAULTS):
            fault.inject(engine, replace(clip[0], index=index))
            with pytest.raises(RuntimeFailure, match=fault.name):
                replace(fault, taken=not fault.taken).inject(engine, clip[1])
        assert engine.ingest(clip[2]).result


def test_faults_damage_what_they_say(clip: list[MediaUnit]) -> None:
    unit = clip[0]
    assert unit.frame is not None
    assert unit.audio is not None
    by_name = {fault.name: fault.damage(unit) for fault in FAULTS}
    noise, silence = by_name["a picture of noise"].frame, by_name["silence"].audio
    assert noise is not None
    assert silence is not None
    assert noise.shape == unit.frame.shape
    assert not np.array_equal(noise, unit.frame)
    assert not silence.any()
    assert len(silence) == len(unit.audio)
    assert by_name["no picture"].frame is None
    assert by_name["no sound"].audio is None
    deaf_and_blind = by_name["neither picture nor sound"]
    assert (deaf_and_blind.frame, deaf_and_blind.audio) == (None, None)


def test_every_fault_comes_in_turn() -> None:
    came = [fault for index in range(EVERY * len(FAULTS)) if (fault := faults.due(index))]
    assert came == list(FAULTS)


SIZE = ("--units", str(LEAST_UNITS), "--high-watermark", "300", "--low-watermark", "200", "--threads", "2")


def test_the_command_prints_a_row_and_draws_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "figures"
    assert run(app, ["bench", "soak", str(EXAMPLE), *SIZE, "--faults", "--json", "--out", str(folder)]) == 0
    (line,) = capfd.readouterr().out.splitlines()
    row = json.loads(line)
    assert {"units", "rss_first", "rss_last", "unit_ms_first", "unit_ms_last", "errors"} <= row.keys()
    assert (row["type"], row["faults"], row["errors"]) == ("soak", LEAST_UNITS // EVERY, 0)
    assert sorted(path.name for path in folder.iterdir()) == ["soak.csv", "soak.svg"]
    head, values = (folder / "soak.csv").read_text().splitlines()
    assert dict(zip(head.split(","), values.split(","), strict=True))["units"] == str(LEAST_UNITS)


def test_ctrl_c_prints_what_there_is(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def due(index: int) -> Fault | None:
        if index == 40:
            os.kill(os.getpid(), signal.SIGINT)
        return None

    monkeypatch.setattr(faults, "due", due)
    assert run(app, ["bench", "soak", str(EXAMPLE), *SIZE, "--faults", "--json"]) == 130
    row = json.loads(capfd.readouterr().out)
    assert 40 <= row["units"] < 60
    assert row["unit_ms_first"] is None

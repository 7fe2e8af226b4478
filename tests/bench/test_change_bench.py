"""`bench change`: both ways on the same streams, and no picture of the generated world that is overlooked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.scene import simple_scene
from omnitide_cli.bench.world.split import TEST
from omnitide_cli.bench.world.stream import any_stream
from omnitide_cli.catalog.manifest import Changing
from omnitide_cli.commands.run import run
from omnitide_cli.runtime.change import ChangeGate, Thresholds


@pytest.mark.parametrize("stay", [0.0, 0.8])
def test_only_pictures_that_show_the_same_are_left_out(stay: float) -> None:
    chosen = Changing()
    same = 0
    for seed in range(4):
        stream = any_stream(TEST, seed, 100, 1, draw=simple_scene, stay=stay)
        gate = ChangeGate(Thresholds(chosen.mean, chosen.peak, 30.0))
        shown = None
        for scene, unit in zip(stream.scenes, units_of(stream), strict=True):
            if unit.frame is None:
                continue
            look = gate.look(unit.frame, unit.start)
            gate.took(look, 16)
            if look.picture == "same":
                same += 1
                assert scene.picture == shown
            else:
                shown = scene.picture
    assert same >= (1 if stay == 0 else 200)


def test_both_ways_hear_the_same_questions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--streams", "2", "--units", "12", "--stay", "0.9", "--split", "validation", "--threads", "1"]
    code = run(app, ["bench", "change", *arguments, "--json", "--out", str(tmp_path)])
    assert not code
    off, auto = map(json.loads, capsys.readouterr().out.splitlines())
    assert (off["change"], auto["change"]) == ("off", "auto")
    assert off["n"] == auto["n"] > 0
    assert off["same_pictures"] == 0 < auto["same_pictures"]
    assert auto["pictures"] + auto["same_pictures"] == off["pictures"]
    assert off["tokens"] - auto["tokens"] == 18 * auto["same_pictures"]
    assert off["worse"] == {}
    assert set(auto["worse"]) == set(auto["right"])
    assert (tmp_path / "change.csv").is_file()


def test_an_unknown_split_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(app, ["bench", "change", "--split", "training-day"]) == 2
    assert "split" in capsys.readouterr().err

"""docs/python-api.md does what it shows, and names what there is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

import omnitide_cli as omnitide
from omnitide_cli.runtime.options import EngineOptions

from .conftest import EXAMPLE, ROOT

DOCUMENT = ROOT / "docs" / "python-api.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(BLOCKS) >= 10
    shutil.copy(EXAMPLE, tmp_path / "talk.mp4")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    shown: list[str] = []
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"{DOCUMENT.name}, block {number + 1}", "exec"), names)
        shown.append(capsys.readouterr().out)
    assert shown[0].strip()
    assert "at 6 s" in shown[2]
    assert "at 12 s" in shown[2]
    assert "answer_delta\nanswer\n" in shown[3]
    assert "cells" in shown[4]
    assert "resumed at 12 s" in shown[5]
    assert re.fullmatch(r".+ \[.*\] \d+\.\d+\n", shown[6])
    assert "ms behind" in shown[7]
    assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", shown[7])
    assert "red" in shown[8]
    assert "9 s: " in shown[9]
    assert "apple 1 " in shown[9]
    assert "missing.mp4" in shown[10]


def test_every_public_name_is_in_it() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in omnitide.__all__:
        assert f"`{name}" in text or name.startswith("__"), name
    for name in vars(omnitide.errors):
        if isinstance(getattr(omnitide.errors, name), type) and name[0].isupper() and name != "ClassVar":
            assert f"`{name}`" in text, name


def test_options_are_the_settings_of_the_command_line() -> None:
    # which follow from the model, the file and the machine
    own = {
        "unit_tokens",
        "least_ctx",
        "costs_file",
        "recall_layers",
        "recall_reference",
        "recall_threshold",
        "archive_folder",
    }
    own |= {"change_mean", "change_peak"}
    assert set(get_type_hints(omnitide.Options)) == {field.name for field in fields(EngineOptions)} - own


def test_what_is_no_choice_is_said() -> None:
    with pytest.raises(omnitide.errors.UsageError, match="there is no such layout"):
        omnitide.load(layout="best")  # type: ignore[arg-type]
    with pytest.raises(omnitide.errors.UsageError, match="there is no such policy"):
        omnitide.load(policy="best")
    with pytest.raises(TypeError, match="'watermark' is no option"):
        omnitide.load(watermark=3)  # type: ignore[call-arg]


def test_a_policy_of_ones_own_in_a_new_session_and_a_saved_one(tmp_path: Path) -> None:
    (tmp_path / "forget.py").write_text(
        "def all_but_the_oldest(history):\n    return [history.units[0], *history.units[2:]]\n"
    )
    policy = f"{tmp_path / 'forget.py'}:all_but_the_oldest"
    with omnitide.load(policy=policy, high_watermark=300, low_watermark=200, threads=2) as session:
        for unit in omnitide.read(EXAMPLE, for_=session, duration=8):
            session.add(unit)
        dropped = [event.dropped_units for event in session.events if isinstance(event, omnitide.events.Retention)]
        assert dropped
        assert set(dropped) == {1}
        session.save(tmp_path / "a.tide")
    with omnitide.open_session(tmp_path / "a.tide", policy="fifo") as session:
        assert session.options.policy == "fifo"
    with omnitide.open_session(tmp_path / "a.tide", policy=policy) as session:
        assert session.options.policy == policy
        for unit in omnitide.read(EXAMPLE, for_=session, duration=10):
            session.add(unit)
        assert any(isinstance(event, omnitide.events.Retention) for event in session.events)


@pytest.mark.parametrize("code", ["import omnitide_cli", "import omnitide_cli.app"])
def test_importing_loads_nothing_heavy(code: str) -> None:
    heavy = "{'numpy', 'llama_cpp', 'av', 'cv2', 'omnitide_cli._omnitide'}"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}, sys; print({heavy} & set(sys.modules))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "set()\n"

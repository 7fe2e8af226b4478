"""docs/python-api.md does what it shows, and names what there is."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import omnitide_cli as omnitide

from .conftest import EXAMPLE, ROOT

DOCUMENT = ROOT / "docs" / "python-api.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)


def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(BLOCKS) >= 9
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
    assert shown[3].startswith("answer_delta\n")
    assert "cells" in shown[4]
    assert "resumed at 12 s" in shown[5]
    assert "ms behind" in shown[6]
    assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", shown[6])
    assert "red" in shown[7]
    assert "missing.mp4" in shown[8]


def test_every_public_name_is_in_it() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in omnitide.__all__:
        assert f"`{name}" in text or name.startswith("__"), name
    for name in vars(omnitide.errors):
        if isinstance(getattr(omnitide.errors, name), type) and name[0].isupper() and name != "ClassVar":
            assert f"`{name}`" in text, name

"""`inspect-kv` for sessions: which one, in which form, and how to get one."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.inspect import follow as watching
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import Stream, simulate

Omnitide = Callable[..., Any]


@pytest.fixture
def watched(omnitide: Omnitide, engine: Any, clip: Path) -> str:
    """The name of a session that has ended."""
    assert omnitide("-q", "watch", clip, "--ask", "What?").code == 0
    return f"clip-{os.getpid()}"


def test_every_session_leaves_its_last_snapshot(omnitide: Omnitide, watched: str) -> None:
    fields = json.loads(omnitide("inspect-kv", "--json").out)
    assert (fields["session"], fields["running"], fields["ended"]) == (watched, False, True)
    assert (fields["unit"]["index"], fields["answers"], fields["retentions"]) == (2, 1, 3)
    assert fields["retention"]["deleted_tokens"] == 45
    assert [moment["useful_cells"] for moment in fields["history"]] == [45, 90, 135]


def test_it_is_marked_as_ended_and_explained(omnitide: Omnitide, watched: str) -> None:
    result = omnitide("inspect-kv", watched)
    assert result.code == 0
    assert re.match(rf"{watched}: ended .*, at 0:03", result.out)
    assert "never evicted" in result.out
    assert "Last eviction" in result.out
    assert "\x1b" not in result.out
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.usefixtures("watched")
def test_watching_one_that_has_ended_ends_at_once(omnitide: Omnitide) -> None:
    assert omnitide("inspect-kv", "--watch").out.count(": ended ") == 1
    assert json.loads(omnitide("inspect-kv", "--watch", "--json").out)["ended"]


def test_watching_ends_with_the_session_even_if_its_file_is_gone(
    omnitide: Omnitide, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = simulate(EngineOptions(), Stream(3, 16, 25)).last
    running = replace(last, state=replace(last.state, running=True))
    monkeypatch.setattr(watching, "REFRESH_S", 0.0)
    assert list(watching._changes(running)) == [running]


@pytest.mark.usefixtures("watched")
def test_a_chart_and_a_drawing(omnitide: Omnitide, tmp_path: Path) -> None:
    result = omnitide("inspect-kv", "--history", "--svg", tmp_path / "a.svg")
    assert "useful cells" in result.out
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    missing = tmp_path / "missing" / "a.svg"
    result = omnitide("inspect-kv", "--svg", missing)
    assert result.code == 1
    assert str(missing) in result.err


@pytest.mark.parametrize("arguments", [(), ("--watch",), ("--json",), ("mine",)])
def test_without_a_session_the_way_to_one_is_told(omnitide: Omnitide, arguments: tuple[str, ...]) -> None:
    result = omnitide("inspect-kv", *arguments)
    assert (result.code, result.out) == (3, "")
    assert "omnitide watch" in result.err
    assert result.err.count("\n") == 1


def test_a_session_that_can_not_be_published_runs_and_says_so(
    omnitide: Omnitide, engine: Any, clip: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/runtime").write_text("in the way")
    result = omnitide("watch", clip, "--ask", "What?")
    assert result.code == 0
    assert "A red circle" in result.out
    assert "inspect-kv can't show this session" in result.err

"""What `inspect-kv --json` says in a second process is what the session itself reports."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnitide_cli.errors import SessionFileError
from omnitide_cli.runtime.saved_view import saved_snapshot
from omnitide_cli.runtime.session_file import SessionFile, read_session, write_session

COMMAND = [sys.executable, "-m", "omnitide_cli"]


def inspect(*what: object) -> dict[str, Any] | None:
    """The session that a second process sees."""
    command = [*COMMAND, "inspect-kv", *map(str, what), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout) if done.returncode == 0 else None


def test_a_second_process_sees_the_numbers_of_the_session(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path))
    watch = [*COMMAND, "watch", str(example), "--pace", "realtime", "--duration", "9", "--json"]
    pressed = ["--high-watermark", "240", "--low-watermark", "160", "--layout", "class-packing"]
    seen: list[dict[str, Any]] = []
    with subprocess.Popen([*watch, *pressed, "--ask", "What?"], stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            if found := inspect():
                seen.append(found)
            time.sleep(0.2)
        assert process.stdout
        events = [json.loads(line) for line in process.stdout]
    assert process.returncode == 0

    units = {event["index"]: event for event in events if event["type"] == "unit"}
    running = [each for each in seen if each["running"] and each["unit"] and not each["answers"]]
    assert len({each["unit"]["index"] for each in running}) >= 3
    assert running[-1]["retention"]
    for each in running:
        unit = units[each["unit"]["index"]]
        assert each["unit"] == unit
        assert each["useful_cells"] == unit["history_tokens"] == sum(part["tokens"] for part in each["units"])
        assert (each["page_span"], each["physical_span"]) == (unit["page_span"], unit["physical_span"])
        assert sum(each["classes"].values()) == each["useful_cells"]
        for kind in ("retention", "migration"):
            told = [event for event in events if event["type"] == kind and event["unit"] <= unit["index"]]
            assert each[kind] == (told[-1] if told else None)

    last, summary = inspect(), events[-1]
    assert last
    assert (last["running"], last["ended"], last["answers"]) == (False, True, 1)
    for field in ("page_span", "physical_span", "peak_physical_span", "kv_bytes", "retentions"):
        assert last[field] == summary[field], field
    assert last["useful_cells"] == summary["history_tokens"]


def test_a_saved_session_is_seen_as_it_was_left(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path / "home"))
    file = tmp_path / "left.tide"
    pressed = ["--high-watermark", "240", "--low-watermark", "160", "--layout", "class-packing", "--ask", "What?"]
    watch = [*COMMAND, "watch", str(example), "--save-session", str(file), "--json", *pressed]
    subprocess.run(watch, capture_output=True, check=True)
    left, saved = inspect(), inspect(file)
    assert left
    assert saved
    assert (saved["session"], saved["kind"], saved["running"], saved["kv_bytes"]) == ("left.tide", "saved", False, None)
    told_otherwise = {
        "session",
        "kind",
        "checkpoint",
        "kv_bytes",
        "unit",
        "retention",
        "migration",
        "history",
        "pid",
        "started",
    }
    for field in saved.keys() - told_otherwise - {"written"}:
        assert saved[field] == left[field], field
    shown = subprocess.run([*COMMAND, "inspect-kv", str(file)], capture_output=True, text=True, check=True).stdout
    assert re.match(r"left\.tide: saved .*, at 0:44 of the media", shown)

    _mutated_files_are_shown_or_refused(file, tmp_path / "mutant.tide")


def _mutated_files_are_shown_or_refused(file: Path, mutant: Path) -> None:
    """With a checksum that fits, as an enemy would make them."""
    whole, rng = read_session(file), random.Random(3)
    refused = 0
    for _ in range(300):
        state = np.array(whole.state)
        for _ in range(rng.randint(1, 3)):
            state[rng.randrange(min(state.size, 2000))] = rng.randrange(256)
        write_session(mutant, SessionFile(whole.saved, state[: rng.choice([state.size, rng.randrange(state.size)])]))
        try:
            saved_snapshot(mutant)
        except SessionFileError:
            refused += 1
    assert refused > 100

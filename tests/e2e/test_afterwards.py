"""What a person does afterwards with a session that was really saved: ask, find, look at it by time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import omnitide_cli as omnitide

OPTIONS: omnitide.Options = {"threads": 1, "high_watermark": 1200, "low_watermark": 800, "recall_tokens": 200}


@pytest.fixture(scope="module")
def saved(example: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Twenty seconds of the example in a file, and what the session itself answered then."""
    path = tmp_path_factory.mktemp("saved") / "d.tide"
    with omnitide.load(**OPTIONS) as session:
        for unit in omnitide.read(example, for_=session, duration=20):
            session.add(unit)
            if unit.end == 10:
                session.ask("What do you see and hear?")
        session.save(path)
        answer = session.ask("What do you see?").text
    return path, answer


def run(*arguments: object) -> str:
    command = [sys.executable, "-m", "omnitide_cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_answers_as_the_session_did(saved: tuple[Path, str]) -> None:
    path, answer = saved
    before = path.read_bytes()
    lines = [json.loads(line) for line in run("ask", path, "What do you see?", "--threads", 1, "--json").splitlines()]
    told = next(line for line in lines if line["type"] == "answer")
    assert (told["at"], told["text"]) == (20.0, answer)
    assert told["history_from"] is not None
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "second"), [("Did you see a blue square?", 2), ("a purple circle", 8), ("Where was the green cross?", 6)]
)
def test_what_was_seen_is_found(saved: tuple[Path, str], tmp_path: Path, text: str, second: int) -> None:
    out = run("find", saved[0], text, "--threads", 1, "--json", "--limit", 4, "--evidence", tmp_path / "found")
    hits: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    assert hits[0]["score"] == 1
    assert any(hit["start"] < second + 2 and hit["end"] > second for hit in hits[:2])
    assert hits == sorted(hits, key=lambda hit: -hit["score"])
    assert all(Path(hit["picture"]).read_bytes().startswith(b"\xff\xd8") for hit in hits)


def test_in_python_the_file_answers_with_what_it_recalls(saved: tuple[Path, str]) -> None:
    with omnitide.open_session(saved[0], threads=1) as session:
        answer = session.ask("What do you see?")
        assert answer.text == saved[1]
        assert isinstance(answer.recalled, tuple)
        assert answer.history_from is not None

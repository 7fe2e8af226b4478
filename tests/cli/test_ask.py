"""`omnitide ask`: a saved session without its source, and one that runs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import DELAY, ScriptedEngine

from omnitide_cli.runtime.events import Answer, AnswerDelta
from omnitide_cli.session.doorway import LONGEST_LINE, Doorway, connected

Run = Callable[..., Any]
SCRIPTED = Path(__file__).parents[1] / "scripted.py"


@pytest.fixture
def saved(omnitide: Run, engine: type[ScriptedEngine], clip: Path) -> Path:
    """A session of two seconds of the clip."""
    done = omnitide("watch", clip, "--duration", 2, "--ask", "Last?", "--save-session", "two.tide")
    assert done.code == 0, done.err
    return Path("two.tide").absolute()


def test_a_saved_session_answers_and_stays_as_it_is(
    omnitide: Run, engine: type[ScriptedEngine], saved: Path, clip: Path, tmp_path: Path
) -> None:
    before, files = saved.read_bytes(), sorted((tmp_path / "home").rglob("*.tide"))
    clip_gone = tmp_path / "work"
    done = omnitide("ask", saved, "Who?", "When?", "--transcript", "a.jsonl")
    assert done.code == 0, done.err
    assert done.out == "[0:02] Who?\nA red circle.\n[0:02] When?\nA red circle.\n"
    opened = engine.opened[-1]
    assert opened.asked == [("Who?", 2.0), ("When?", 2.0)]
    assert opened.units == []
    assert opened.resumed.state.tolist() == list(range(100))
    assert opened.closed
    assert saved.read_bytes() == before
    assert sorted((tmp_path / "home").rglob("*.tide")) == files
    lines = (clip_gone / "a.jsonl").read_text().splitlines()
    assert [json.loads(line)["question"] for line in lines] == ["Who?", "When?"]


def test_the_newest_saved_session_is_asked_by_default(omnitide: Run, engine: type[ScriptedEngine], saved: Path) -> None:
    done = omnitide("ask", "Who?")
    assert done.code == 0, done.err
    assert f"asking {saved}" in done.err
    assert "A red circle." in done.out


def test_as_json_it_is_what_watch_writes(omnitide: Run, engine: type[ScriptedEngine], saved: Path) -> None:
    done = omnitide("ask", saved, "Who?", "--json")
    kinds = [json.loads(line)["type"] for line in done.out.splitlines()]
    assert kinds == ["session", "answer_delta", "answer_delta", "answer_delta", "answer", "summary"]


def test_flags_win_over_what_it_was_saved_with(omnitide: Run, engine: type[ScriptedEngine], saved: Path) -> None:
    done = omnitide("ask", saved, "Who?", "--recall-tokens", 7, "--max-answer-tokens", 9)
    assert done.code == 0, done.err
    options = engine.opened[-1].options
    assert (options.recall_tokens, options.max_answer_tokens, options.high_watermark) == (7, 9, 2500)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "TEXT"),
        (("two.tide",), 2, "TEXT"),
        (("two.tide", " "), 2, "empty"),
        (("none.tide", "Who?"), 3, "does not exist"),
        (("two.tide", "Who?", "--session", "other"), 2, "two sessions"),
        (("--session", "other", "Who?"), 3, "no session that runs is called 'other'"),
        (("two.tide", "Who?", "--evidence", "two.tide"), 2, "--evidence"),
    ],
)
def test_what_can_not_be_is_said(
    omnitide: Run, engine: type[ScriptedEngine], saved: Path, arguments: Any, code: int, words: str
) -> None:
    done = omnitide("ask", *arguments)
    assert done.code == code
    assert words in done.err
    assert "resume" not in done.err


def test_with_nothing_saved_it_says_so(omnitide: Run, engine: type[ScriptedEngine], weights: Path) -> None:
    done = omnitide("ask", "Who?")
    assert done.code == 3
    assert "there is no saved session" in done.err


def test_evidence_is_kept_with_answers(omnitide: Run, engine: type[ScriptedEngine], clip: Path, saved: Path) -> None:
    done = omnitide("watch", clip, "--ask", "Last?", "--evidence", "seen")
    assert done.code == 0, done.err
    known = json.loads(Path("seen/evidence.jsonl").read_text())
    assert (known["question"], known["text"], known["clips"]) == ("Last?", "A red circle.", [])
    assert known["pictures"]
    assert all((Path("seen") / name).read_bytes().startswith(b"\xff\xd8") for name in known["pictures"])
    omnitide("ask", saved, "Who?", "--evidence", "again")
    assert [path.suffix for path in sorted(Path("again").iterdir())] == [".jpg", ".jsonl"]


# --- a session that runs


@pytest.fixture
def running(tmp_path: Path, weights: Path, clip: Path) -> Iterator[subprocess.Popen[str]]:
    """A session in a process of its own that goes on until it is killed."""
    home = tmp_path / "home"
    (tmp_path / "work").mkdir(exist_ok=True)
    variables = {
        **os.environ,
        "OMNITIDE_HOME": str(home),
        "OMNITIDE_MODEL": str(weights / "tiny.gguf"),
        "OMNITIDE_MMPROJ": str(weights / "mmproj-tiny.gguf"),
        DELAY: "0.02",
    }
    command = [sys.executable, str(SCRIPTED), "watch", str(clip), "--loop", "1000", "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=variables, cwd=tmp_path / "work"
    )
    until = time.monotonic() + 60
    while not list((home / "runtime").glob("*.json")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    yield process
    process.kill()
    process.communicate()


def test_a_running_session_answers(
    omnitide: Run, engine: type[ScriptedEngine], running: subprocess.Popen[str], tmp_path: Path
) -> None:
    done = omnitide("ask", "Who?", "When?")
    assert done.code == 0, done.err
    assert f"asking clip-{running.pid}" in done.err
    assert [line for line in done.out.splitlines() if not line.startswith("[")] == ["A red circle."] * 2
    assert engine.opened == []
    door = tmp_path / "home" / "runtime" / f"{running.pid}.sock"
    assert door.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in omnitide("ask", "--session", running.pid, "Who?", "--json").out.splitlines()]
    assert [line["type"] for line in lines] == ["answer_delta"] * 3 + ["answer"]
    done = omnitide("ask", "Who?", "--evidence", "seen")
    assert (done.code, "--evidence" in done.err) == (2, True)


def test_a_session_that_was_killed_is_not_asked_and_its_socket_goes(
    omnitide: Run, engine: type[ScriptedEngine], running: subprocess.Popen[str], tmp_path: Path
) -> None:
    door = tmp_path / "home" / "runtime" / f"{running.pid}.sock"
    assert door.exists()
    running.kill()
    running.wait()
    done = omnitide("ask", "Who?")
    assert done.code == 3
    assert door.exists()
    Doorway(door.parent).close()
    assert not door.exists()


def test_what_comes_in_at_the_door_may_be_anything(tmp_path: Path) -> None:
    visits: list[int] = []
    folder = tmp_path / ("long" * 30) / "runtime"
    door = Doorway(folder, lambda: visits.append(1))
    path = folder / f"{os.getpid()}.sock"
    try:
        for sent in (b"", b"\n", b"[]\n", b'{"ask": 1}\n', b'{"ask": " "}\n', b"\xff\n", b"[" * LONGEST_LINE * 2):
            with connected(path) as visitor:
                try:
                    visitor.sendall(sent)
                    visitor.shutdown(socket.SHUT_WR)
                    assert visitor.recv(10) == b""
                except (BrokenPipeError, ConnectionResetError):
                    pass
        assert door.poll() is None
        with connected(path) as visitor:
            visitor.sendall(b'{"ask": "Who?"}\n')
            until = time.monotonic() + 10
            while not visits and time.monotonic() < until:
                time.sleep(0.01)
            known = door.poll()
            assert known is not None
            assert known.question == "Who?"
            door.emit(AnswerDelta(1.0, "before"))
            with door.answering(known):
                door.emit(Answer(1.0, 0, "Who?", "I.", 1, 0.0, 0.0, "eos"))
            answer = visitor.makefile().read()
            assert json.loads(answer)["text"] == "I."
    finally:
        door.close()
        door.close()
    assert not path.exists()
    with pytest.raises(OSError):  # noqa: PT011
        connected(path)


def test_one_who_does_not_listen_holds_nobody_up(tmp_path: Path) -> None:
    door = Doorway(tmp_path / "runtime")
    with connected(tmp_path / "runtime" / f"{os.getpid()}.sock") as visitor:
        visitor.sendall(b'{"ask": "Who?"}\n')
        until = time.monotonic() + 10
        known = None
        while (known := door.poll()) is None and time.monotonic() < until:
            time.sleep(0.01)
        assert known is not None
        with door.answering(known):
            began = time.monotonic()
            for _ in range(300):
                door.emit(AnswerDelta(1.0, "x" * 10_000))
            assert time.monotonic() - began < 10
    door.close()

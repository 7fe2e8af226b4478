"""Sessions that are killed, interrupted twice, or run out of disk: nothing that was shown is lost, and it is found."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import DELAY, TEXT

from omnitide_cli.runtime.session_file import read_session
from omnitide_cli.session import saves

Omnitide = Callable[..., Any]
SCRIPTED = Path(__file__).parents[1] / "scripted.py"


@pytest.fixture
def process(tmp_path: Path, weights: Path, clip: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`omnitide watch` of the clip, ten times over, in a process of its own."""
    running: list[subprocess.Popen[str]] = []
    (tmp_path / "work").mkdir(exist_ok=True)

    def start(*arguments: object, **more: Any) -> subprocess.Popen[str]:
        variables = {
            **os.environ,
            "OMNITIDE_HOME": str(tmp_path / "home"),
            "OMNITIDE_MODEL": str(weights / "tiny.gguf"),
            "OMNITIDE_MMPROJ": str(weights / "mmproj-tiny.gguf"),
            DELAY: "0.01",
        }
        command = [sys.executable, str(SCRIPTED), "watch", str(clip), "--loop", "10", *map(str, arguments)]
        stdout = more.pop("stdout", subprocess.PIPE)
        running.append(
            subprocess.Popen(
                command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=variables, cwd=tmp_path / "work", **more
            )
        )
        return running[-1]

    yield start
    for each in running:
        if each.poll() is None:
            each.kill()
        each.communicate()


def shown_answers(out: str) -> list[dict[str, Any]]:
    """Answers of whole lines of NDJSON."""
    lines = [json.loads(line) for line in out.split("\n")[:-1]]
    return [line for line in lines if line["type"] == "answer"]


def kill_and_go_on(process: Callable[..., subprocess.Popen[str]], folder: Path, moments: list[float]) -> None:
    """Kill it at these moments after its first answer; each time everything shown is in the transcripts."""
    names = ["t.jsonl", "t.vtt", "t.srt"]
    flags = [part for name in names for part in ("--transcript", folder / name)]
    shown: list[tuple[float, str]] = []
    for number, moment in enumerate(moments):
        resume = ["--resume", "last"] if number and saves_in(folder) else ["--overwrite"]
        if "--overwrite" in resume:
            shown.clear()
        running = process("--every", "0.5=What is there?", "--checkpoint-every", 0.05, "--unit-seconds", 0.5,
                          "--json", *flags, *resume)  # fmt: skip
        assert running.stdout is not None
        lines = []
        while '"type": "answer"' not in (line := running.stdout.readline()):
            lines.append(line)
            if not line:
                break
        lines.append(line)
        time.sleep(moment)
        running.kill()
        rest, errors = running.communicate()
        assert "Traceback" not in errors
        shown += [(each["at"], each["text"]) for each in shown_answers("".join(lines) + rest)]
        kept = [json.loads(line) for line in (folder / "t.jsonl").read_text().split("\n")[:-1]]
        assert not set(shown) - {(each["at"], each["text"]) for each in kept}
        for name in names[1:]:
            text = (folder / name).read_text()
            assert text.count("A red circle.") >= len(set(shown))
    for name in names[1:]:
        running = process("--resume", "last", "--no-ask", "--duration", 0.5, "--transcript", folder / name)
        running.communicate()
        text = (folder / name).read_text()
        starts = re.findall(r"^(\S+) -->", text, re.MULTILINE)
        assert starts == sorted(starts)
        if name == "t.srt":
            numbers = re.findall(r"^(\d+)$", text, re.MULTILINE)
            assert numbers == [str(number) for number in range(1, len(starts) + 1)]


def saves_in(folder: Path) -> list[Path]:
    return list((folder.parent / "home" / "state" / "checkpoints").glob("*.tide"))


def test_kills_lose_no_answer_that_was_shown(process: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    kill_and_go_on(process, tmp_path / "work", [0.3, 0.0, 0.1])


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_two_hundred_kills_lose_no_answer_that_was_shown(
    process: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    moments = random.Random(1)
    for _ in range(20):
        kill_and_go_on(process, tmp_path / "work", [moments.uniform(0, 0.6) for _ in range(10)])
        for path in saves_in(tmp_path / "work"):
            path.unlink()


def test_a_transcript_goes_on_and_others_are_safe(omnitide: Omnitide, engine: Any, clip: Path) -> None:
    """Cases 17 and 43."""
    several = [part for name in ("t.vtt", "t.srt", "t.jsonl") for part in ("--transcript", name)]
    flags = ("--every", "1=What?", *several)
    assert omnitide("watch", clip, *flags, "--duration", 1, "--save-session", "s.tide").code == 0
    refused = omnitide("watch", clip, *flags)
    assert refused.code == 2
    assert "--overwrite" in refused.err
    assert omnitide("watch", clip, "--resume", "s.tide", *several, "--duration", 3).code == 0
    assert re.findall(r"(\S+) -->", Path("t.vtt").read_text()) == ["00:00:01.000", "00:00:02.000", "00:00:02.500"]
    assert re.findall(r"^\d$", Path("t.srt").read_text(), re.MULTILINE) == ["1", "2", "3"]
    assert len(Path("t.jsonl").read_text().splitlines()) == 3
    assert omnitide("watch", clip, *flags, "--overwrite", "--duration", 1).code == 0
    assert len(Path("t.jsonl").read_text().splitlines()) == 1


def test_a_second_signal_keeps_what_was_said(
    process: Callable[..., subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = process("--every", "1=What?", "--json", "--transcript", "t.vtt", "--save-session", "s.tide",
                      "--pace", "realtime")  # fmt: skip
    assert running.stdout is not None
    while '"type": "answer"' not in running.stdout.readline():
        pass
    os.kill(running.pid, signal.SIGSTOP)  # so busy that the first is not heeded in time
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGTERM)
    os.kill(running.pid, signal.SIGCONT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "A red circle." in (tmp_path / "work" / "t.vtt").read_text()
    assert "Ctrl-C again leaves at once, without saving" in errors
    assert "left at once" in errors


def test_one_signal_that_comes_twice_saves(process: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    """Case 39: `timeout -s INT 8 uv run omnitide live …`."""
    running = process("--json", "--save-session", "s.tide", "--pace", "realtime")
    assert running.stdout is not None
    while '"type": "unit"' not in running.stdout.readline():
        pass
    for _ in range(3):
        running.send_signal(signal.SIGINT)
        time.sleep(0.05)
    out, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert json.loads(out.splitlines()[-1])["type"] == "summary"
    assert read_session(tmp_path / "work" / "s.tide").saved.media.index >= 1


@pytest.mark.parametrize("json_lines", [True, False])
def test_a_full_disk_stops_nothing(
    process: Callable[..., subprocess.Popen[str]], tmp_path: Path, json_lines: bool
) -> None:
    """Case 18, with the limit for everything: answers, events, checkpoints, snapshots, the saved session."""
    limit = 600

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    output = tmp_path / "out"
    with output.open("w") as out:
        running = process("--every", "1=What?", "--transcript", "t.srt", "--checkpoint-every", 0.05, "--duration", 3,
                          *(["--json"] if json_lines else []), stdout=out, preexec_fn=full)  # fmt: skip
        _, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors
    assert output.stat().st_size == limit
    assert errors.count("t.srt can't be written") == 1
    assert errors.count("standard output can't be written") == 1
    assert errors.count("no checkpoint could be written") <= 1
    assert errors.count("inspect-kv can't show") == 1
    assert re.search(r"media .*, 30 answers", errors)
    assert re.search(r"not written +t.srt lacks \d+ answers \(File too large\)", errors)


def test_a_session_that_finds_no_room_is_kept_elsewhere(
    omnitide: Omnitide, engine: Any, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnitide_cli.session import checkpoint

    write = checkpoint.write_session

    def full(path: Path, session: Any) -> None:
        if path.name == "s.tide":
            raise checkpoint.RuntimeFailure(f"{path} can't be written: No space left on device", "make room")
        write(path, session)

    monkeypatch.setattr(checkpoint, "write_session", full)
    done = omnitide("watch", clip, "--ask", "What?", "--save-session", "s.tide")
    assert done.code == 1
    assert "A red circle." in done.out
    (kept,) = saves.checkpoint_folder().glob("*.tide")
    assert f"The session is in {kept} instead" in done.err
    assert omnitide("watch", clip, "--resume", "last", "--ask", "And?").code == 0


def test_killed_sessions_are_found_again(
    process: Callable[..., subprocess.Popen[str]], omnitide: Omnitide, engine: Any, clip: Path, tmp_path: Path
) -> None:
    """Case 32: six at once, all killed; none is pruned, all are named."""
    running = [process("--json", "--no-ask", "--checkpoint-every", 0.05, "--pace", "realtime") for _ in range(6)]
    deadline = time.monotonic() + 60
    while len(saves_in(tmp_path / "work")) < 6 and time.monotonic() < deadline:
        time.sleep(0.1)
    folder = saves.checkpoint_folder()
    assert len(list(folder.glob("*.tide"))) == 6
    assert {saves.fate(path) for path in folder.glob("*.tide")} == {"running"}
    assert "no saved session" in omnitide("watch", clip, "--resume", "last").err
    for each in running:
        each.kill()
        each.wait()
    saves.make_room(folder)
    assert {saves.fate(path) for path in folder.glob("*.tide")} == {"killed"}
    assert len(list(folder.glob("*.tide"))) == 6
    named = omnitide("inspect-kv", f"clip-{running[0].pid}")
    assert f"clip-{time.strftime('%Y')}" in named.out.replace("\n", "")
    assert "--resume last" in re.sub(r"\s+", " ", named.out)
    hinted = omnitide("watch", clip, "--no-ask", "--duration", 1, "--checkpoint-every", 0)
    assert "was killed" in hinted.err
    assert "--resume last" in hinted.err
    for left in range(5, -1, -1):
        done = omnitide("watch", "--resume", "last", "--no-ask")
        assert done.code == 0, done.err
        assert len(list(folder.glob("*.tide"))) == left, "what is complete is removed"
    assert list((folder.parent / "locks").iterdir()) == []


def test_last_is_the_newest_of_the_source(omnitide: Omnitide, engine: Any, clip: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.mkv"
    other.write_bytes(clip.read_bytes() + b"x")
    omnitide("watch", clip, "--no-ask", "--duration", 1, "--save-session", "a.tide")
    omnitide("watch", other, "--no-ask", "--duration", 2, "--save-session", "b.tide")
    os.utime("a.tide", (1, 1))
    assert omnitide("watch", clip, "--resume", "last", "--no-ask", "--duration", 3).code == 0
    assert [unit.index for unit in engine.opened[-1].units] == [1, 2]
    assert omnitide("watch", "--resume", "last", "--no-ask", "--duration", 3).code == 0
    assert [unit.index for unit in engine.opened[-1].units] == [2]
    Path("b.tide").unlink()
    done = omnitide("watch", other, "--resume", "last")
    assert (done.code, done.err.count("\n")) == (3, 1)
    assert "of this source" in done.err
    assert omnitide("live", "--resume", "last").code == 3


def test_questions_end_at_line_feeds_alone(omnitide: Omnitide, engine: Any, clip: Path) -> None:
    """Case 29."""
    odd = ["a\u2028b", "c\u0085d", "e\u000bf", "g\u001ch"]
    lines = [json.dumps({"ask": text}, ensure_ascii=False) for text in odd if "\x0b" not in text and "\x1c" not in text]
    Path("q.jsonl").write_bytes(("\r\n".join(lines) + "\r\n").encode())
    done = omnitide("watch", clip, "--questions", "q.jsonl")
    assert done.code == 0, done.err
    assert [question for question, _ in engine.opened[-1].asked] == odd[:2]


def test_a_reader_who_leaves_in_an_answer_takes_nothing_from_the_transcript(
    process: Callable[..., subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`omnitide … | head`: what was shown is in every transcript and in the session, and the end is a quiet one."""
    monkeypatch.setenv(TEXT, " ".join(f"w{number}" for number in range(2000)))
    names = ("t.vtt", "t.srt", "t.jsonl")
    running = process("--every", "1=What?", "--json", "--save-session", "s.tide",
                      *(part for name in names for part in ("--transcript", name)))  # fmt: skip
    assert running.stdout is not None
    seen = ""
    while '" w5"' not in seen:
        seen += running.stdout.read(1)
    running.stdout.close()
    assert running.stderr is not None
    errors = running.stderr.read()
    assert running.wait(timeout=60) == 0, errors
    assert "Error" not in errors
    for name in names:
        text = (tmp_path / "work" / name).read_text()
        assert text.count("What?") == 1
        assert "w0 w1 w2 w3 w4 w5" in text
        assert "w1999" not in text, "nobody wants the rest"
    (answer,) = map(json.loads, (tmp_path / "work" / "t.jsonl").read_text().splitlines())
    assert answer["stop"] == "interrupted"
    assert read_session(tmp_path / "work" / "s.tide").saved.media.index == 1


def test_a_model_that_fails_in_an_answer_takes_nothing_from_the_transcript(
    omnitide: Omnitide, engine: Any, clip: Path
) -> None:
    def fail(playing: Any, index: int) -> None:
        if index == 2:
            raise RuntimeError("broken")

    engine.on_delta = staticmethod(fail)
    done = omnitide("watch", clip, "--ask", "What?", "--transcript", "t.vtt", "--json")
    assert done.code == 1
    assert '" red"' in done.out
    assert "A red" in Path("t.vtt").read_text()

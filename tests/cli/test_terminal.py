"""Whole processes: on a terminal, in a pipe that closes, with a second signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import scripted
from pty_terminal import SCRIPT, Terminal

ROOT = Path(__file__).parents[2]


@pytest.fixture
def env(tmp_path: Path, weights: Path) -> dict[str, str]:
    """An environment with an empty home and the files that pass for weights."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMNITIDE_HOME": str(tmp_path / "home"), "TERM": "xterm-256color"}


@pytest.fixture
def terminals(env: dict[str, str], tmp_path: Path) -> Iterator[list[Terminal]]:
    """Terminals that the test has opened."""
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def test_on_a_terminal_the_default_question_is_asked_and_typed_lines_are_questions(
    env: dict[str, str], tmp_path: Path, clip: Path, terminals: list[Terminal]
) -> None:
    terminal = Terminal(["watch", str(clip), "--no-dashboard"], env, tmp_path)
    terminals.append(terminal)
    terminal.wait_for("[0:03] What is happening now?\r\nA red circle.\r\n")
    terminal.wait_for("> ")
    terminal.type("And now?\n")
    terminal.wait_for("[0:03] And now?\r\nA red circle.\r\n")
    terminal.type("/quit\n")
    assert terminal.end() == 0
    assert "3 units" in terminal.text
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_without_a_dashboard_lines_are_taken_between_units(
    env: dict[str, str], tmp_path: Path, clip: Path, terminals: list[Terminal]
) -> None:
    endless = ["watch", str(clip), "--no-dashboard", "--loop", "1000"]
    terminal = Terminal(endless, env | {scripted.DELAY: "0.05"}, tmp_path)
    terminals.append(terminal)
    terminal.wait_for("unit 2")
    terminal.type("And now?\n")
    terminal.wait_for("] And now?\r\nA red circle.\r\n")
    terminal.type("/kv\n")
    terminal.wait_for("page span")
    terminal.type("/quit\n")
    assert terminal.end() == 0
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_with_a_question_given_no_prompt_opens(
    env: dict[str, str], tmp_path: Path, clip: Path, terminals: list[Terminal]
) -> None:
    terminal = Terminal(["watch", str(clip), "--no-dashboard", "--ask", "What?"], env, tmp_path)
    terminals.append(terminal)
    assert terminal.end() == 0
    assert "> " not in terminal.text


def test_ctrl_c_at_the_prompt_ends_with_a_summary(
    env: dict[str, str], tmp_path: Path, clip: Path, terminals: list[Terminal]
) -> None:
    terminal = Terminal(["watch", str(clip), "--no-dashboard"], env, tmp_path)
    terminals.append(terminal)
    terminal.wait_for("> ")
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 130
    assert "3 units" in terminal.text
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_a_second_ctrl_c_leaves_at_once(
    env: dict[str, str], tmp_path: Path, clip: Path, terminals: list[Terminal]
) -> None:
    terminal = Terminal(["watch", str(clip), "--no-dashboard"], env | {scripted.DELAY: "2"}, tmp_path)
    terminals.append(terminal)
    terminal.wait_for("loading")
    terminal.wait_for("\x1b[2K")
    time.sleep(1.0)
    os.killpg(terminal.process.pid, signal.SIGINT)
    time.sleep(0.2)
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.end(1.0) == 130
    assert "3 units" not in terminal.text
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_a_dumb_terminal_gets_no_cursor_codes(
    env: dict[str, str], tmp_path: Path, clip: Path, terminals: list[Terminal]
) -> None:
    terminal = Terminal(["watch", str(clip), "--ask", "What?"], env | {"TERM": "dumb"}, tmp_path)
    terminals.append(terminal)
    assert terminal.end() == 0
    assert "\x1b" not in terminal.text
    assert "A red circle." in terminal.text


def test_no_color_is_honoured(env: dict[str, str], tmp_path: Path, clip: Path, terminals: list[Terminal]) -> None:
    terminal = Terminal(["watch", str(clip), "--no-dashboard", "--ask", "What?"], env | {"NO_COLOR": "1"}, tmp_path)
    terminals.append(terminal)
    assert terminal.end() == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", terminal.text)


@pytest.mark.parametrize("arguments", [["--help"], ["watch", "--help"], ["watch", "CLIP", "--json"]])
def test_a_closed_pipe_ends_quietly(env: dict[str, str], tmp_path: Path, clip: Path, arguments: list[str]) -> None:
    command = [*SCRIPT, *(str(clip) if argument == "CLIP" else argument for argument in arguments)]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, env=env, cwd=tmp_path, text=True)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_full_disk_is_one_line(env: dict[str, str], tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*SCRIPT, "--help"], stdout=full, stderr=subprocess.PIPE, env=env, cwd=tmp_path, text=True
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "omnitide: No space left on device."
    assert "Traceback" not in done.stderr


def test_a_full_disk_does_not_end_a_session(env: dict[str, str], tmp_path: Path, clip: Path) -> None:
    """It goes on, says so once, and at the end what is missing."""
    command = [*SCRIPT, "watch", str(clip), "--every", "1=What?", "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=env, cwd=tmp_path, text=True)
    assert done.returncode == 0
    assert done.stderr.count("standard output can't be written") == 1
    assert re.search(r"not written +standard output lacks \d+ answers? \(No space left on device\)", done.stderr)
    assert "Traceback" not in done.stderr


def test_closed_streams_are_no_error(env: dict[str, str], tmp_path: Path, clip: Path) -> None:
    command = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *SCRIPT, "watch", str(clip), "--ask", "What?"]
    assert subprocess.run(command, env=env, cwd=tmp_path).returncode == 0


def test_an_ascii_terminal_gets_replacements(env: dict[str, str], tmp_path: Path, clip: Path) -> None:
    command = [*SCRIPT, "watch", str(clip), "--ask", "Was ist grün 🐟?"]
    done = subprocess.run(command, capture_output=True, env=env | {"PYTHONIOENCODING": "ascii"}, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == b"[0:03] Was ist gr?n ??\nA red circle.\n"


def test_json_in_ascii_loses_nothing(env: dict[str, str], tmp_path: Path, clip: Path) -> None:
    command = [*SCRIPT, "watch", str(clip), "--json", "--ask", "Was ist grün 🐟?"]
    done = subprocess.run(command, capture_output=True, env=env | {"PYTHONIOENCODING": "ascii"}, cwd=tmp_path)
    assert done.returncode == 0
    assert rb"gr\u00fcn \ud83d\udc1f" in done.stdout


def test_ctrl_c_while_standard_input_has_nothing_yet(env: dict[str, str], tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*SCRIPT, "watch", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=env,
        cwd=tmp_path,
    )
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(5) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.communicate()


def test_a_terminal_is_no_source(env: dict[str, str], tmp_path: Path, terminals: list[Terminal]) -> None:
    terminal = Terminal(["watch", "-"], env, tmp_path)
    terminals.append(terminal)
    assert terminal.end() == 3
    assert terminal.text.startswith("omnitide: standard input is a terminal.")

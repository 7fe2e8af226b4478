"""The dashboard on a pseudo-terminal: typed, resized, interrupted, and the terminal given back."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import scripted
from pty_terminal import OTHER_SCREEN, OWN_SCREEN, Terminal

ROOT = Path(__file__).parents[2]
CTRL_C = "\x03"
ENDLESS = ["--loop", "1000"]

Open = Callable[..., Terminal]


@pytest.fixture
def env(tmp_path: Path, weights: Path) -> dict[str, str]:
    """An environment with an empty home and the files that pass for weights."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    own = {"PYTHONPATH": path, "OMNITIDE_HOME": str(tmp_path / "home"), "TERM": "xterm-256color"}
    return {**os.environ, **own, "COLORTERM": "truecolor", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def watch(env: dict[str, str], tmp_path: Path, clip: Path) -> Iterator[Open]:
    """Runs `omnitide watch` on a terminal."""
    opened: list[Terminal] = []

    def open_terminal(
        *arguments: str, source: Path = clip, size: tuple[int, int] = (80, 24), **changed: str
    ) -> Terminal:
        terminal = Terminal(["watch", str(source), *arguments], env | changed, tmp_path, size)
        opened.append(terminal)
        return terminal

    yield open_terminal
    for terminal in opened:
        terminal.close()


def test_questions_are_typed_and_answers_stay_on_the_terminal(watch: Open) -> None:
    terminal = watch()
    terminal.wait_to_see("0:03 What is happening now?")
    terminal.wait_to_see("A red circle.")
    terminal.wait_to_see("the end: ask a question, or /quit")
    terminal.type("Und jetz\x7ft, 你好 🐟?\r")
    terminal.wait_to_see("0:03 Und jett, 你")
    terminal.type("/quit\r")
    assert terminal.end() == 0
    assert terminal.is_restored
    after = terminal.text.rpartition(OWN_SCREEN)[2]
    assert after.startswith(
        "[0:03] What is happening now?\r\nA red circle.\r\n[0:03] Und jett, 你好 🐟?\r\nA red circle."
    )
    assert "3 units" in after


def test_an_alert_rings_once_and_stays_on_the_terminal(watch: Open) -> None:
    terminal = watch("--alert", "fox=Is there a fox?", *ENDLESS, **{scripted.DELAY: "0.05"})
    terminal.wait_to_see("‼ fox")
    terminal.wait_to_see("‼ 0:04 fox: A fox eats. (97 %)")
    terminal.type(CTRL_C)
    assert terminal.end() == 130
    shown, _, after = terminal.text.rpartition(OWN_SCREEN)
    assert (shown.count("\a"), after.count("\a")) == (1, 0)
    assert "[0:04] \x1b[1;31mALERT fox: A fox eats. (97 %)\x1b[0m" in after
    assert "fox: 1 alert in" in after


@pytest.mark.parametrize("size", [(20, 5), (20, 24), (30, 10), (60, 20), (80, 24), (119, 35), (200, 60)])
def test_every_size_is_filled_to_its_edges(watch: Open, size: tuple[int, int]) -> None:
    terminal = watch(size=size)
    terminal.wait_until(lambda: terminal.rows[-1].startswith("❯ the end"))
    terminal.wait_to_see("red")
    framed = [row for row in terminal.rows if row[0] in "╭│╰"]
    assert all(row.rstrip()[-1] in "╮│╯" and len(row.rstrip()) == size[0] for row in framed)
    assert bool(framed) == (size[0] >= 40)


def test_a_resize_is_followed(watch: Open) -> None:
    terminal = watch(*ENDLESS, size=(200, 60), **{scripted.DELAY: "0.02"})
    terminal.wait_to_see("Session")
    terminal.resize(20, 8)
    terminal.wait_until(lambda: terminal.rows[-1].startswith("❯ ask") and terminal.rows[0].startswith(" ≈ Omni"))
    terminal.resize(80, 24)
    terminal.wait_until(lambda: terminal.rows[-2].startswith("╰") and terminal.rows[-2].endswith("╯"))
    terminal.wait_to_see("Cache")
    terminal.type("/quit\r")
    assert terminal.end() == 0
    assert terminal.is_restored


PHASES = {
    "loading": ([], {scripted.LOADING: "30"}, "loading tiny.gguf"),
    "taking a unit in": (ENDLESS, {scripted.DELAY: "0.3"}, "History"),
    "answering": (["--ask", "What?"], {scripted.DELAY: "0.3", scripted.TEXT: "long " * 100}, "long long"),
    "at the end": ([], {}, "the end: ask"),
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_session_and_gives_the_terminal_back(watch: Open, phase: str, number: signal.Signals) -> None:
    arguments, env, sign = PHASES[phase]
    terminal = watch(*arguments, **env)
    terminal.wait_to_see(sign)
    if number == signal.SIGINT:
        terminal.type(CTRL_C)
    else:
        os.kill(terminal.process.pid, number)
    assert terminal.end(2.0) == 130
    assert terminal.is_restored
    assert ("history  " in terminal.text.rpartition(OWN_SCREEN)[2]) == (phase != "loading")


@pytest.mark.parametrize("phase", PHASES)
def test_a_second_ctrl_c_leaves_at_once(watch: Open, phase: str) -> None:
    arguments, env, sign = PHASES[phase]
    terminal = watch(*arguments, **env)
    terminal.wait_to_see(sign)
    terminal.type(CTRL_C + CTRL_C)
    assert terminal.end(2.0) == 130
    assert terminal.is_restored


def test_a_second_ctrl_c_does_not_wait_for_native_code(watch: Open) -> None:
    terminal = watch(*ENDLESS, **{scripted.DELAY: "20"})
    terminal.wait_to_see("History")
    terminal.type(CTRL_C)
    time.sleep(0.8)  # within half a second it would be the same one
    terminal.type(CTRL_C)
    assert terminal.end(1.0) == 130
    assert terminal.is_restored
    assert "history  " not in terminal.text.rpartition(OWN_SCREEN)[2]


def test_a_failure_gives_the_terminal_back_before_it_is_told(watch: Open) -> None:
    terminal = watch(**{scripted.FAILS_AT: "1"})
    assert terminal.end() == 1
    assert terminal.is_restored
    assert "RuntimeError: the scripted engine fails" in terminal.text.rpartition(OWN_SCREEN)[2]


def test_a_hung_up_terminal_ends_the_process(watch: Open) -> None:
    terminal = watch(*ENDLESS, **{scripted.DELAY: "0.05"})
    terminal.wait_to_see("History")
    os.close(terminal.slave)
    os.close(terminal.master)
    terminal.master, terminal.slave = os.pipe()
    assert terminal.process.wait(5) in (1, 130)


def test_the_next_question_ends_the_answer_in_hand(watch: Open) -> None:
    terminal = watch("--no-ask", "--dashboard")
    assert terminal.end() == 0
    terminal = watch(**{scripted.DELAY: "0.1", scripted.TEXT: "word " * 200})
    terminal.wait_to_see("word word")
    terminal.type("first?\r")
    terminal.wait_to_see("(interrupted)")
    terminal.wait_to_see("first?")
    terminal.type("/quit\r")
    assert terminal.end() == 0
    assert terminal.is_restored


def test_commands_are_typed(watch: Open) -> None:
    terminal = watch()
    terminal.wait_to_see("the end: ask")
    terminal.type("/dance\r")
    terminal.wait_to_see("/dance is not a command")
    terminal.type("/save none/x.tide\r")
    terminal.wait_to_see("there is no folder")
    terminal.type("/save x.tide\r")
    terminal.wait_to_see("saved x.tide (0:03)")
    terminal.type("/kv\r")
    terminal.wait_to_see("any key closes this")
    assert "running, process" in terminal.rows[1]
    terminal.type("\x1b")
    terminal.wait_to_see("Talk")
    terminal.type("/kv\r")
    terminal.wait_to_see("any key closes this")
    terminal.type("q")  # closes it, and is no letter of a question
    terminal.wait_to_see("Talk")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_without_colour_letters_say_the_class(watch: Open) -> None:
    terminal = watch(NO_COLOR="1")
    terminal.wait_to_see("the end: ask")
    terminal.wait_to_see("M must-keep")
    assert not re.search(r"\x1b\[[0-9;]*[34][0-7]", terminal.text)
    assert any("MRRR" in row or "rR" in row or "r" in row for row in terminal.rows)


@pytest.mark.parametrize(
    "changed", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}, {"OMNITIDE_DASHBOARD": "false"}], ids=str
)
def test_elsewhere_there_is_plain_text(watch: Open, changed: dict[str, str]) -> None:
    terminal = watch("--ask", "Was ist grün 🐟?", **changed)
    assert terminal.end() == 0
    assert OTHER_SCREEN not in terminal.text
    assert "A red circle." in terminal.text
    assert terminal.is_restored


def test_ctrl_z_gives_the_terminal_to_the_shell(watch: Open) -> None:
    terminal = watch(*ENDLESS, **{scripted.DELAY: "0.05"})
    terminal.wait_to_see("History")
    os.kill(terminal.process.pid, signal.SIGTSTP)
    terminal.wait_for(OWN_SCREEN)
    assert terminal.is_restored
    os.kill(terminal.process.pid, signal.SIGCONT)
    terminal.wait_until(lambda: terminal.text.count(OTHER_SCREEN) == 2)
    terminal.type("/quit\r")
    assert terminal.end() == 0
    assert terminal.is_restored


def test_names_questions_and_answers_in_any_script_keep_the_frame_straight(
    watch: Open, clip: Path, tmp_path: Path
) -> None:
    named = tmp_path / "小鱼 🐟.mkv"
    named.write_bytes(clip.read_bytes())
    terminal = watch(source=named, **{scripted.TEXT: "红色的圆圈 🔴 и круг"})
    terminal.wait_to_see("the end: ask")
    terminal.type("你看到了什么？\r")
    terminal.wait_until(lambda: sum("圆" in row for row in terminal.rows) == 2)
    assert "小" in terminal.rows[0]
    framed = [row for row in terminal.rows if row[0] in "╭│╰"]
    assert all(row.rstrip()[-1] in "╮│╯" for row in framed)
    terminal.type("/quit\r")
    assert terminal.end() == 0
    assert "[0:03] 你看到了什么？\r\n红色的圆圈 🔴 и круг\r\n" in terminal.text

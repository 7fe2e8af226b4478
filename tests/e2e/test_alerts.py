"""Alerts on the command line: real video, the shipped model, real programs, Ctrl-C and a resumed session."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

Event = dict
APPLE = "apple=Do you hear the word apple?"
OMNITIDE = [sys.executable, "-m", "omnitide_cli"]


def run(*arguments: object, code: int = 0) -> tuple[list[Event], str]:
    """Run a command with --json; its events, and what it wrote to standard error."""
    command = [*OMNITIDE, *map(str, arguments), "--json", "--threads", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=os.environ)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def of_type(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


def test_what_happens_is_told_run_and_kept(example: Path, tmp_path: Path) -> None:
    script, out, seen = tmp_path / "note.py", tmp_path / "noted", tmp_path / "seen"
    script.write_text(f"import sys; open({str(out)!r}, 'a').write('|'.join(sys.argv[1:]) + '\\n')", encoding="utf-8")
    vtt = tmp_path / "talk.vtt"
    command = f"{sys.executable} {script} {{rule}} {{text}} {{picture}}"
    events, _ = run("watch", example, "--alert", APPLE, "--on-alert", command, "--evidence", seen, "--transcript", vtt)
    alerts = of_type(events, "alert")
    assert [(alert["rule"], alert["at"]) for alert in alerts] == [("apple", 9.0), ("apple", 39.0)]
    assert all("the word apple" in alert["text"] for alert in alerts)
    assert [event["since"] for event in of_type(events, "alert-ended")] == [9.0, 39.0]
    assert events[-1]["type"] == "summary"
    assert [(rule["rule"], rule["fired"]) for rule in events[-1]["alerts"]] == [("apple", 2)]
    assert not of_type(events, "warning")
    lines = out.read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(f"apple|{alert['text']}|{seen}/0-00-{alert['at'] - 1:02.0f}.jpg" for alert in alerts)
    known = [json.loads(line) for line in (seen / "evidence.jsonl").read_text().splitlines()]
    assert [len(each["pictures"]) for each in known] == [5, 5]
    assert all((seen / name).is_file() for each in known for name in (*each["pictures"], *each["clips"]))
    assert all(each["clips"] for each in known)
    assert vtt.read_text(encoding="utf-8").count("Alert: apple\n") == 2


def test_a_session_that_is_saved_and_resumed_begins_its_rules_anew(example: Path, tmp_path: Path) -> None:
    file = tmp_path / "talk.tide"
    events, _ = run("watch", example, "--duration", 9, "--alert", APPLE, "--save-session", file)
    assert len(of_type(events, "alert")) == 1
    events, _ = run("watch", "--resume", file, "--duration", 20, "--alert", APPLE)
    assert events[-1]["alerts"][0]["asked"] <= 11
    assert not of_type(events, "alert")  # it is over by then
    events, _ = run("watch", "--resume", file, "--duration", 12)
    assert events[-1]["alerts"] == []


def test_ctrl_c_ends_with_the_sums_of_the_rules(example: Path) -> None:
    command = [*OMNITIDE, "watch", str(example), "--pace", "realtime", "--alert", APPLE, "--json", "--threads", "1"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert running.stdout is not None
    for line in running.stdout:
        if json.loads(line)["type"] == "unit" and json.loads(line)["index"] == 2:
            break
    running.send_signal(signal.SIGINT)
    events = [json.loads(line) for line in running.stdout]
    assert running.wait(30) == 130
    assert events[-1]["type"] == "summary"
    assert events[-1]["alerts"][0]["asked"] >= 1


def test_a_live_stream_has_alerts_with_the_time_of_day(example: Path) -> None:
    began = time.time()
    events, _ = run(
        "live", "--camera", example, "--mic", "none", "--duration", 8, "--alert", "cross=Do you see a cross?",
        "--alert", "square=Do you see a white square?", "--alert-every", 1,
    )  # fmt: skip
    rules = events[-1]["alerts"]
    assert [rule["rule"] for rule in rules] == ["cross", "square"]
    assert all(rule["asked"] >= 2 for rule in rules)
    assert all(alert["wall"] for alert in of_type(events, "alert"))
    assert time.time() - began < 120


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--alert", "door="], "the question is empty"),
        (["--alert", "a=Is it?", "--alert", "a=Was it?"], "two alert rules are called 'a'"),
        (["--alert", "Is it?", "--on-alert", "no-such-program-here {text}"], "there is no program"),
        (["--on-alert", "echo"], "no alert to run it at"),
        (["--alerts", "nowhere.toml"], "can't be read"),
        (["--alert", "Is it?", "--alert-every", "0"], "--alert-every"),
    ],
)
def test_what_is_wrong_with_a_rule_is_told_before_anything_is_loaded(
    example: Path, arguments: list[str], said: str
) -> None:
    done = subprocess.run(
        [*OMNITIDE, "watch", str(example), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr

"""What runs at an alert: real programs, no shell, a limit; and where a session's rules come from."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from omnitide_cli.alerts.rule import Rule
from omnitide_cli.errors import UsageError
from omnitide_cli.media.unit import NO_SOUND, MediaUnit
from omnitide_cli.runtime.events import Alert, Event, Notice, Summary, TokenCounts, UnitIngested
from omnitide_cli.runtime.journal import Journal
from omnitide_cli.session.alerting import MOST_WAITING, AlertCommands, AlertOptions
from omnitide_cli.session.evidence import Evidence

SCRIPT = """
import json, os, sys
said = {key: value for key, value in os.environ.items() if key.startswith("OMNITIDE_ALERT_")}
seen = open(said["OMNITIDE_ALERT_PICTURE"], "rb").read(2).hex() if said["OMNITIDE_ALERT_PICTURE"] else ""
with open(sys.argv[1], "a") as file:
    file.write(json.dumps([sys.argv[2:], said, seen]) + "\\n")
"""
SUMMARY = Summary(1, 1.0, 1.0, 0, 0, 0, 0, 0, 0)
WICKED = [
    'it\'s "quoted"',
    "two\nlines",
    "$(touch PWNED) `touch PWNED`",
    "; touch PWNED; &&|>PWNED",
    "{rule} {at} {text}",
    "--flag -x",
    "\\ 100% ünï 🦊",
    "",
]


def alert(text: str = "A fox.", rule: str = "fox", at: float = 5.0) -> Alert:
    return Alert(rule, "Is there a fox?", at, at, 0.9712, text, 4, None)


def unit(index: int) -> MediaUnit:
    frame = np.full((32, 32, 3), 40 * index % 255, np.uint8)
    return MediaUnit(index, float(index), index + 1.0, frame, None, NO_SOUND, NO_SOUND)


def ingested(index: int) -> UnitIngested:
    return UnitIngested(index, float(index), index + 1.0, TokenCounts(), 0, 0, 0, 0, 0, 0)


def journal_of(seconds: int) -> Journal:
    journal = Journal()
    for index in range(seconds):
        journal.saw(unit(index))
        journal.note(ingested(index))
    return journal


def runner(command: str, told: list[Event], journal: Journal | None = None, **more: object) -> AlertCommands:
    rules = [Rule("Is there a fox?", "fox", command=command), Rule("Is it?", "silent")]
    return AlertCommands(rules, journal or journal_of(6), told.append, None, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", WICKED)
def test_a_text_reaches_the_program_as_it_is(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    script, out, told = tmp_path / "a script.py", tmp_path / "out.jsonl", []
    script.write_text(SCRIPT, encoding="utf-8")
    commands = runner(f"'{sys.executable}' '{script}' out.jsonl {{text}} 'by {{rule}} at {{at}}: {{text}}'", told)
    commands.emit(alert(text))
    commands.emit(SUMMARY)
    commands.close()
    [[arguments, said, seen]] = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    shown = text or "Is there a fox?"
    assert arguments == [shown, f"by fox at 0:05: {shown}"]
    assert said["OMNITIDE_ALERT_TEXT"] == shown
    assert said["OMNITIDE_ALERT_RULE"] == "fox"
    assert said["OMNITIDE_ALERT_PROBABILITY"] == "0.971"
    assert seen == "ffd8", "a JPEG was there while the program ran"
    assert not told
    assert not (tmp_path / "PWNED").exists()
    assert not Path(said["OMNITIDE_ALERT_PICTURE"]).exists(), "it is gone with the session"


def test_a_rule_without_a_command_runs_nothing_and_a_picture_lies_with_the_evidence(tmp_path: Path) -> None:
    told: list[Event] = []
    evidence = Evidence.into(tmp_path / "evidence")
    rules = [Rule("Is it?", "fox", command=f"{sys.executable} -c 0 {{picture}}"), Rule("Is it?", "silent", command="")]
    commands = AlertCommands(rules, journal_of(6), told.append, evidence)
    commands.emit(alert(rule="silent"))
    assert not list((tmp_path / "evidence").glob("*.jpg"))
    commands.emit(alert())
    commands.close()
    assert [path.name for path in (tmp_path / "evidence").glob("*.jpg")] == ["0-00-04.jpg"]
    assert not told


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('no such bell')", "ended with code 1: no such bell"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by signal 9"),
        ("import sys; sys.stderr.write('x' * 100000); sys.exit(3)", "ended with code 3: xxx"),
    ],
)
def test_a_failure_is_a_warning(code: str, said: str) -> None:
    told: list[Event] = []
    commands = runner(f'{sys.executable} -c "{code}"', told)
    commands.emit(alert())
    commands.emit(SUMMARY)
    [notice] = told
    assert isinstance(notice, Notice)
    assert notice.code == "alert-command"
    assert said in notice.message
    assert len(notice.message) < 600
    commands.close()


def test_what_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    told: list[Event] = []
    child = tmp_path / "child"
    code = (
        f"import subprocess,time; p=subprocess.Popen(['sleep','60']); open('{child}','w').write(str(p.pid)); p.wait()"
    )
    commands = runner(f'{sys.executable} -c "{code}"', told, limit_s=1.5)
    began = time.monotonic()
    commands.emit(alert())
    assert time.monotonic() - began < 0.5, "the stream doesn't wait for it"
    commands.emit(SUMMARY)
    commands.close()
    [notice] = told
    assert isinstance(notice, Notice)
    assert "ran for 1.5 s and was ended" in notice.message
    _assert_gone(int(child.read_text()))


def test_the_end_of_a_session_waits_only_shortly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnitide_cli.session.alerting.CLOSING_S", 0.5)
    told: list[Event] = []
    commands = runner("sleep 60", told)
    began = time.monotonic()
    for _ in range(6):  # more than run at once
        commands.emit(alert())
    commands.emit(SUMMARY)
    assert time.monotonic() - began < 8
    assert len(told) == 6
    assert all(isinstance(each, Notice) and "session" in each.message for each in told)
    commands.close()


def test_very_many_alerts_are_not_piled_up() -> None:
    told: list[Event] = []
    commands = runner("sleep 60", told, limit_s=1.0)
    for _ in range(MOST_WAITING + 3):
        commands.emit(alert())
    assert len([each for each in told if isinstance(each, Notice) and "was not run" in each.message]) == 3
    commands._is_over = True
    commands.close()


def _assert_gone(pid: int) -> None:
    for _ in range(50):
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.05)
    raise AssertionError(f"{pid} still runs")


# --- evidence


def test_evidence_of_an_alert_waits_for_the_seconds_behind_it(tmp_path: Path) -> None:
    evidence, told, journal = Evidence.into(tmp_path), [], Journal()
    assert evidence is not None
    sink = evidence.sink(journal, told.append, None)
    for index in range(10):
        journal.saw(unit(index))
        journal.note(ingested(index))
        sink.emit(ingested(index))
        if index == 4:
            sink.emit(alert(at=5.0))
        assert bool(list(tmp_path.glob("*.jpg"))) == (index >= 7)
    sink.emit(alert(at=10.0))  # the session ends before its three seconds have passed
    sink.emit(SUMMARY)
    sink.close()
    first, last = [json.loads(line) for line in (tmp_path / "evidence.jsonl").read_text().splitlines()]
    assert first["pictures"] == [f"0-00-0{second}.jpg" for second in (3, 4, 5, 6, 7)]
    assert last["pictures"] == ["0-00-08.jpg", "0-00-09.jpg"]
    assert (first["rule"], first["at"], first["since"], first["text"]) == ("fox", 5.0, 5.0, "A fox.")
    assert not told


# --- rules of flags and files


def test_flags_and_a_file_are_one_set_of_rules(tmp_path: Path) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text("\ufeff[fox]\nquestion = 'Is there a fox?'\ncommand = 'true'\nevery = 5\n", encoding="utf-8")
    fox = AlertOptions(["door=Is somebody there?"], file, "echo {text}", 1.5).rules()
    assert [(each.name, each.every, each.command) for each in fox] == [
        ("door", 1.5, "echo {text}"),
        ("fox", 5, "true"),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (AlertOptions(on_alert="echo"), "no alert to run it at"),
        (AlertOptions(["a=Is it?", "a=Was it?"]), "two alert rules are called 'a'"),
        (AlertOptions(["Is it?"], on_alert="echo {what}"), "--on-alert: there is no {what}"),
        (AlertOptions(["Is it?"], on_alert="echo 'x"), "--on-alert: No closing quotation"),
        (AlertOptions(alerts=Path("nowhere.toml")), "--alerts nowhere.toml: can't be read"),
    ],
)
def test_what_can_not_be_is_told_before_anything_is_loaded(options: AlertOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        options.rules()


@pytest.mark.parametrize(("data", "message"), [(b"\xff\xfe", "not UTF-8"), (b"[fox", "not TOML"), (b"", "no rule")])
def test_a_damaged_file_of_rules_is_named(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "alerts.toml").write_bytes(data)
    with pytest.raises(UsageError, match=message):
        AlertOptions(alerts=tmp_path / "alerts.toml").rules()

"""Global flags behind the command, times as people write them, and what is said of what nobody can mean."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.app import COMMANDS, app
from omnitide_cli.bench.app import app as bench
from omnitide_cli.catalog import values, variables
from omnitide_cli.commands.lazy import LazyGroup

Omnitide = Callable[..., Any]


# --- flags


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("arguments", [("-q", "watch", "CLIP"), ("watch", "-q", "CLIP"), ("watch", "CLIP", "--quiet")])
def test_quiet_may_stand_anywhere(omnitide: Omnitide, clip: Path, arguments: tuple[str, ...]) -> None:
    """Case 44."""
    done = omnitide(*(clip if argument == "CLIP" else argument for argument in arguments), "--ask", "What?")
    assert (done.code, done.err) == (0, "")
    assert "What?" in done.out


@pytest.mark.usefixtures("engine")
def test_so_may_verbose(omnitide: Omnitide, clip: Path) -> None:
    assert "unit 2 " in omnitide("watch", clip, "-v").err
    assert "unit 2 " not in omnitide("watch", clip).err


def test_so_may_debug(omnitide: Omnitide) -> None:
    for arguments in (["--debug", "models", "info", "x"], ["models", "--debug", "info", "x"], ["models", "info", "x"]):
        done = omnitide(*arguments)
        assert (done.code, "Traceback" in done.err) == (4, "--debug" in arguments)
    assert "Traceback" in omnitide("models", "info", "x", "--debug").err
    assert "Traceback" in omnitide("bench", "latency", "--policy", "x", "--debug").err


def test_text_that_looks_like_a_flag_is_text(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    done = omnitide("watch", clip, "--ask", "-q")
    assert "-q" in done.out
    assert "media" in done.err, "it was not quiet"


@pytest.mark.parametrize(
    "arguments",
    [
        ("watch", "x.mp4", "--ask"),
        ("live", "--ask"),
        ("models", "info", "x", "--mmproj"),
        ("bench", "latency", "--policy"),
    ],
)
def test_a_flag_without_its_value_points_to_the_help_of_its_command(
    omnitide: Omnitide, arguments: tuple[str, ...]
) -> None:
    done = omnitide(*arguments)
    name = " ".join(arguments[: 2 if arguments[0] in ("models", "bench") else 1])
    assert done.code == 2
    assert f"'{arguments[-1]}' requires an argument" in done.err
    assert f"omnitide {name} --help" in done.err.lower()


def commands() -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for typer_app, prefix in ((app, ""), (bench, "bench ")):
        from typer.main import get_group

        group = get_group(typer_app)
        assert isinstance(group, LazyGroup)
        found += [(prefix + name, group.loaded(name)) for name in group.entries]
    return found


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda each: each if isinstance(each, str) else "")
def test_every_command_takes_them_and_says_what_it_does(name: str, command: Any) -> None:
    flags = {flag for parameter in command.params for flag in parameter.opts}
    assert {"-q", "-v", "--debug"} <= flags
    names = [parameter.name for parameter in command.params]
    assert len(names) == len(set(names)), "a parameter called as a global one would get its values"
    assert command.help


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from omnitide_cli.app import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "print([name for name in sys.modules if '.command' in name or 'numpy' in name], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed = {f"omnitide_cli.commands{rest}" for rest in ("", ".lazy", ".run", ".mistakes")}
    assert set(json.loads(done.stderr.replace("'", '"'))) <= allowed
    for name in COMMANDS:
        assert f" {name} " in done.stdout


def test_a_flag_before_the_command_that_belongs_behind_it(omnitide: Omnitide) -> None:
    done = omnitide("--json", "watch", "x")
    assert done.code == 2
    assert "omnitide watch … --json" in done.err


# --- times


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1.5", 1.5),
        ("1:30", 90),
        ("0:07.5", 7.5),
        ("1:02:03", 3723),
        ("100:00", 6000),
        (90, 90),
        (1.5, 1.5),
    ],
)
def test_times(text: str | float, seconds: float) -> None:
    assert values.seconds_of(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "soon", "1:60", "1:2:3:4", "1:75:00", "1:", ":30", "nan", "inf", True, None, "-1:30"]
)
def test_what_are_no_times(text: Any) -> None:
    with pytest.raises(ValueError, match="no time in seconds"):
        values.seconds_of(text)


def test_times_wherever_seconds_are_taken(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    Path("q.jsonl").write_text('{"at": "0:02", "ask": "from a file"}\n')
    Path("omnitide.toml").write_text('unit-seconds = "0:01"\n')
    flags = ["--start", "0:01", "--duration", "0:02", "--checkpoint-every", "1:00:00", "--questions", "q.jsonl"]
    done = omnitide("watch", clip, *flags, "--ask-at", "0:03=timed", "--every", "0:02=often", "--json")
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.out.splitlines()]
    units = [event["start"] for event in events if event["type"] == "unit"]
    assert units == [1.0, 2.0]
    asked = [(event["at"], event["question"]) for event in events if event["type"] == "answer"]
    assert asked == [(2.0, "from a file"), (2.0, "often"), (3.0, "timed")]


def test_lives_duration_is_a_time_too(omnitide: Omnitide) -> None:
    done = omnitide("live", "--duration", "1:3o", "--camera", "none")
    assert "--duration 1:3o: no time in seconds, m:ss or h:mm:ss" in done.err


# --- values


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--policy", "omnipik"], "Did you mean omnipick?"),
        (["--policy", "stream"], "Did you mean streaming-llm?"),
        (["--layout", "class_packing"], "Did you mean class-packing?"),
        (["--positions", "compct"], "Did you mean compact?"),
        (["--cache-type", "q8"], "Did you mean q8_0?"),
        (["--flash-attn", "onn"], "Did you mean on?"),
        (["--pace", "real-time"], "Did you mean realtime?"),
        (["--model", "qwen2.5-omni"], "Did you mean qwen2.5-omni-3b or qwen2.5-omni-7b?"),
        (["--threads", "0"], "--threads 0: below 1"),
        (["--threads", "1000"], "--threads 1000: above 512"),
        (["--temperature", "hot"], "--temperature hot: not a number"),
        (["--start", "-1"], "--start -1: a time below 0 s"),
        (["--unit-seconds", "1:00"], "a time above 30 s"),
        (["--polcy", "fifo"], "--policy"),
    ],
)
def test_a_mistyped_value(omnitide: Omnitide, clip: Path, arguments: list[str], said: str) -> None:
    done = omnitide("watch", clip, *arguments)
    assert done.code in (2, 4)
    assert said in done.err
    assert "Value error" not in done.err
    assert done.err.count("\n") == 1


def test_a_mistyped_value_in_a_variable_and_in_a_file(
    omnitide: Omnitide, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNITIDE_POLICY", "omnipik")
    assert "OMNITIDE_POLICY=omnipik: not one of" in omnitide("watch", clip).err
    monkeypatch.delenv("OMNITIDE_POLICY")
    Path("omnitide.toml").write_text('policy = "omnipik"\n')
    done = omnitide("watch", clip)
    assert "omnitide.toml: policy = 'omnipik': not one of" in done.err
    assert "Did you mean omnipick?" in done.err


# --- variables


@pytest.mark.usefixtures("engine")
def test_an_unknown_variable_is_told_with_what_was_meant(
    omnitide: Omnitide, clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNITIDE_HIWATERMARK", "2000")
    done = omnitide("watch", clip, "--ask", "What?")
    assert done.code == 0
    assert "the variable OMNITIDE_HIWATERMARK is not a setting. Did you mean OMNITIDE_HIGH_WATERMARK?" in done.err
    assert omnitide("watch", clip, "--ask", "What?", "-q").err == ""


def test_known_variables_are_not(omnitide: Omnitide, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.main import get_group

    group = get_group(app)
    for name in variables.given():
        monkeypatch.delenv(name)
    for name in ("OMNITIDE_CAMERA", "OMNITIDE_THREADS", "OMNITIDE_HOME"):
        monkeypatch.setenv(name, "x")
    assert variables.unknown(group) == {}
    monkeypatch.setenv("OMNITIDE_ZZZ", "1")
    assert variables.unknown(group) == {"OMNITIDE_ZZZ": "it is ignored"}


def test_doctor_shows_them_without_what_an_address_holds(omnitide: Omnitide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNITIDE_CAMERA", "rtsp://admin:hunter2@10.0.0.9/live")
    monkeypatch.setenv("OMNITIDE_HIWATERMARK", "1")
    done = omnitide("doctor", "--json")
    found = [each for each in json.loads(done.out)["findings"] if each["name"] == "variables"]
    assert [each["state"] for each in found] == ["ok", "warning"]
    assert "OMNITIDE_CAMERA=rtsp://…" in found[0]["found"]
    assert "hunter2" not in done.out
    assert found[1]["remedy"] == "did you mean OMNITIDE_HIGH_WATERMARK?"

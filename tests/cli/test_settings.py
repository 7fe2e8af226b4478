"""Defaults come from, in order: flag, OMNITIDE_* variable, ./omnitide.toml, the user's omnitide.toml, the manifest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.bench.soak.measure import Soak
from omnitide_cli.bench.startup.measure import StartupRow
from omnitide_cli.catalog.manifest import load_manifest
from omnitide_cli.runtime.options import EngineOptions

Omnitide = Callable[..., Any]


@pytest.fixture
def answer_tokens(omnitide: Omnitide, clip: Path, engine: Any, tmp_path: Path) -> Callable[..., int]:
    """The longest answer that the engine is opened with, given what the files say."""

    def ask(*flags: str, here: int | None = None, home: int | None = None) -> int:
        for path, value in ((Path("omnitide.toml"), here), (tmp_path / "home/config/omnitide.toml", home)):
            if value is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"max-answer-tokens = {value}\n")
        assert omnitide("-q", "watch", clip, *flags).code == 0
        return engine.opened[-1].options.max_answer_tokens

    return ask


def test_the_order(answer_tokens: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer_tokens() == EngineOptions().max_answer_tokens
    assert answer_tokens(home=1) == 1
    assert answer_tokens(here=2) == 2
    monkeypatch.setenv("OMNITIDE_MAX_ANSWER_TOKENS", "3")
    assert answer_tokens() == 3
    assert answer_tokens("--max-answer-tokens", "4") == 4


def test_the_manifest_is_below_the_files_and_above_the_runtime(
    answer_tokens: Callable[..., int], weights: Path
) -> None:
    own = weights / "own.toml"
    shipped = load_manifest("omnitide-demo").folder / "omnitide-demo.toml"
    text = shipped.read_text().replace('"omnitide-demo"', '"own"')
    text = text.replace("demo/omnitide-demo-f16.gguf", "tiny.gguf").replace(
        "demo/mmproj-omnitide-demo-f16", "mmproj-tiny"
    )
    own.write_text(text)
    assert answer_tokens("--model", str(own)) == load_manifest("omnitide-demo").defaults.max_answer_tokens
    assert answer_tokens("--model", str(own), here=2) == 2


def test_questions_and_switches_can_stand_in_a_file(omnitide: Omnitide, clip: Path, engine: Any) -> None:
    Path("omnitide.toml").write_text('ask = ["one", "two"]\nevery = "2=again"\nno-audio = true\npolicy = "fifo"\n')
    assert omnitide("watch", clip).code == 0
    opened = engine.opened[0]
    assert [question for question, _ in opened.asked] == ["again", "one", "two"]
    assert opened.units[0].audio is None
    assert opened.options.policy == "fifo"


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("high_watermark = 1\n", "did you mean high-watermark"),
        ("colour = 1\n", "unknown key 'colour'"),
        ("source = 'x'\n", "unknown key 'source'"),
        ("loop = 'often'\n", "loop = 'often': not a whole number"),
        ("loop = 0\n", "loop = 0: below 1"),
        ("loop = [1, 2]\n", "loop: it takes a single value"),
        ("policy = 'best'\n", "policy = 'best': not one of omnipick, full"),
        ("[watch]\nloop = 1\n", "unknown key 'watch'"),
        ("simulate = 60\n", "unknown key 'simulate'"),
        ("image = 256\n", "unknown key 'image'"),
        ("loop = \n", "can't be read"),
    ],
)
def test_a_wrong_file_is_named_in_one_line(omnitide: Omnitide, clip: Path, text: str, part: str) -> None:
    Path("omnitide.toml").write_text(text)
    result = omnitide("watch", clip)
    assert result.code == 2
    assert result.err.startswith("omnitide: omnitide.toml: ")
    assert part.lower() in result.err.lower()
    assert result.err.count("\n") == 1


@pytest.mark.usefixtures("engine")
def test_settings_reach_commands_of_a_group(omnitide: Omnitide, clip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[EngineOptions] = []

    def soak(*arguments: Any, **_: Any) -> Any:
        opened.append(arguments[2])
        return Soak(StartupRow(1.0, 1.0, 1.0, 1), [])  # type: ignore[arg-type]  # any row will do

    monkeypatch.setattr("omnitide_cli.bench.soak.measure.soak", soak)
    Path("omnitide.toml").write_text("high-watermark = 2222\n")
    assert omnitide("bench", "soak", clip).code == 0
    assert omnitide("bench", "soak", clip, "--high-watermark", 3333).code == 0
    assert [options.high_watermark for options in opened] == [2222, 3333]


def test_flags_that_describe_one_run_are_no_settings(omnitide: Omnitide) -> None:
    Path("omnitide.toml").write_text("json = true\n")  # watch's: there it has a variable
    result = omnitide("inspect-kv", "--simulate", 3, "--audio", 25)
    assert (result.code, "must-keep" in result.out) == (0, True)


def test_the_help_tells_the_real_defaults(omnitide: Omnitide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    lines = omnitide("watch", "--help").out.splitlines()
    runtime = EngineOptions()
    for name in ("policy", "layout", "positions", "high_watermark", "low_watermark", "image_sinks", "audio_sinks"):
        _assert_default(lines, name, getattr(runtime, name))
    for name in ("text_budget", "max_answer_tokens", "seed", "gpu_layers", "cache_type", "flash_attn"):
        _assert_default(lines, name, getattr(runtime, name))


def _assert_default(lines: list[str], name: str, value: object) -> None:
    flag = f"--{name.replace('_', '-')} "
    text = " ".join(" ".join(lines).replace("│", " ").split())  # a default may stand below its flag's choices
    own = text.partition(flag)[2].partition(" --")[0]
    assert f"[default: ({value})]" in own, flag

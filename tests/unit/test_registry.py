"""What Python knows of policies and planners is what native code has, and numbers stay what they were."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from omnitide_cli.media.unit import WHISPER
from omnitide_cli.runtime import _registry  # pyright: ignore[reportAttributeAccessIssue]  # the build writes it
from omnitide_cli.runtime.native import ffi, lib, text
from omnitide_cli.runtime.options import KNOBS, LAYOUTS, POLICIES, SOUND_ENCODERS, EngineOptions
from omnitide_cli.runtime.view import LAYOUTS as LAYOUT_NUMBERS
from omnitide_cli.runtime.view import POLICIES as POLICY_NUMBERS

NATIVE = Path(__file__).resolve().parents[2] / "native"


def write(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    script = NATIVE / "cmake" / "write_registry.py"
    return subprocess.run(
        [sys.executable, str(script), str(source), str(out)], capture_output=True, text=True, check=False
    )


def test_native_code_has_the_same_names_and_numbers() -> None:
    for numbers, number, name in (
        (POLICY_NUMBERS, lib.ot_policy, lib.ot_policy_name),
        (LAYOUT_NUMBERS, lib.ot_planner, lib.ot_planner_name),
    ):
        for known, value in numbers.items():
            assert number(known.replace("-", "_").encode()) == value
            assert text(name(value)) == known.replace("-", "_")
        assert number(b"best") == -1
        assert name(len(numbers)) == ffi.NULL


def test_numbers_and_the_order_of_help_stay() -> None:
    first = {"full": 0, "omnipick": 1, "fifo": 2, "token": 3, "streaming-llm": 4, "h2o": 5}
    planners = {"native": 0, "eager": 1, "class-packing": 2, "ordered-suffix": 3, "auto": 4, "hole-filling": 5}
    assert first.items() <= POLICY_NUMBERS.items()
    assert planners.items() <= LAYOUT_NUMBERS.items()
    assert (POLICIES[0], LAYOUTS[0]) == ("omnipick", "auto")
    assert (EngineOptions().policy, EngineOptions().layout) == ("omnipick", "auto")


def test_a_source_gives_by_itself_what_the_known_sound_encoder_takes() -> None:
    known = SOUND_ENCODERS["whisper"]
    assert known.number == 0
    assert (known.rate, known.before, known.after, known.shortest) == (16_000, 320, 200, 640)
    assert (WHISPER.rate, WHISPER.before, WHISPER.after, WHISPER.shortest) == (16_000, 320, 200, 640)


def test_defaults_of_settings() -> None:
    options = EngineOptions()
    assert {name: getattr(options, name) for name in KNOBS} == {name: knob.default for name, knob in KNOBS.items()}
    assert options.recent_units is None
    found = (options.image_sinks, options.audio_sinks, options.text_budget, options.sinks, options.min_pages)
    assert found == (4, 4, 256, 2, 4)


def test_what_is_installed_was_made_of_these_sources(tmp_path: Path) -> None:
    assert write(NATIVE / "src", tmp_path / "made.py").returncode == 0
    assert (tmp_path / "made.py").read_text() == Path(_registry.__file__).read_text()


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('POLICY(0, Other, other, nothing, "x", NO_KNOBS)', "a value occurs twice"),
        ('POLICY(9, Full, full, nothing, "x", NO_KNOBS)', "a name occurs twice"),
        ('POLICY(9, Other, other, thoughts, "x", NO_KNOBS)', "other reads thoughts"),
        ('POLICY(9, Other, other, nothing, "x")', "POLICY takes six arguments"),
        ('POLICY(9, Other, other, nothing, "x", KNOB(uint32_t, sinks, 1, 0, "N", "x"))', "two knobs have one name"),
        ('POLICY(9, Other, other, nothing, "x", KNOB(uint32_t, more, 1))', "KNOB with 3 arguments is no knob"),
        ('SOUND_ENCODER(0, Other, other, "x", 8000, 0, 0, 320)', "a value occurs twice"),
        ('SOUND_ENCODER(1, Whisper, whisper, "x", 8000, 0, 0, 320)', "a name occurs twice"),
        ('SOUND_ENCODER(1, Other, other, "x", 8000, 0, 0)', "SOUND_ENCODER takes eight arguments"),
        ('POLICE(9, Other, other, nothing, "x", NO_KNOBS)', "expected to begin with POLICY("),
    ],
)
def test_a_line_that_can_not_be_is_named_at_build_time(tmp_path: Path, line: str, part: str) -> None:
    for name in ("pick/policies.def", "page/planners.def", "encode/sound_encoders.def"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text((NATIVE / "src" / name).read_text())
    changed = "encode/sound_encoders.def" if line.startswith("SOUND_ENCODER") else "pick/policies.def"
    with (tmp_path / changed).open("a") as file:
        file.write(line + "\n")
    done = write(tmp_path, tmp_path / "made.py")
    assert done.returncode != 0
    assert part in done.stderr

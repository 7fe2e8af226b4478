"""`omnitide watch`, the installed command, on real clips with the shipped model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from helpers_media import Sound, Video, make_clip
from tiny_models import write_deepseek_ocr, write_recurrent_model

from omnitide_cli.runtime.events import Summary
from omnitide_cli.runtime.native_session import LAYOUTS
from omnitide_cli.runtime.options import ModelFiles

Event = dict
QUESTION = "What do you see and hear?"


def watch(*arguments: object, code: int = 0) -> tuple[list[Event], str]:
    """Run `omnitide watch --json`; its events and what it wrote to standard error."""
    command = [sys.executable, "-m", "omnitide_cli", "watch", *map(str, arguments), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=os.environ)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def of_type(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event["type"] == kind]


def answers(events: list[Event]) -> list[str]:
    return [event["text"] for event in of_type(events, "answer")]


def test_the_example_is_answered_rightly(example: Path) -> None:
    questions = example.with_suffix(".questions.jsonl")
    expected = [json.loads(line) for line in example.with_suffix(".answers.jsonl").read_text().splitlines()]
    events, _ = watch(example, "--questions", questions)
    found = of_type(events, "answer")
    assert [event["question"] for event in found] == [line["ask"] for line in expected]
    right = [event["text"] == line["answer"] for event, line in zip(found, expected, strict=True)]
    assert sum(right) >= 0.9 * len(right), [
        (e["text"], line["answer"]) for e, line in zip(found, expected, strict=True)
    ]


@pytest.mark.parametrize(("picture", "sound"), [(True, True), (True, False), (False, True)])
def test_one_unit_a_second(tmp_path: Path, picture: bool, sound: bool) -> None:
    seen, heard = Video(seconds=4), Sound(seconds=4)
    clip = make_clip(tmp_path / "clip.mp4", seen if picture else None, heard if sound else None)
    events, _ = watch(clip, "--ask", QUESTION)
    units = of_type(events, "unit")
    assert [(unit["index"], unit["start"], unit["end"]) for unit in units] == [(i, i, i + 1) for i in range(4)]
    for unit in units:
        assert unit["tokens"]["image"] == (16 if picture else 0)
        assert unit["tokens"]["audio"] == (25 if sound else 0)
        assert unit["tokens"]["boundary"] == 2 * picture + 2 * sound
    assert all(answers(events))
    assert events[0]["type"] == "session"
    summary = events[-1]
    assert set(summary) == {field.name for field in fields(Summary)} | {"type"}
    assert summary["units"] == 4
    assert summary["media_s"] == pytest.approx(4)
    assert summary["answers"] == 1


def test_no_layout_changes_an_answer(example: Path) -> None:
    pressed = ("--high-watermark", 320, "--low-watermark", 220, "--questions", example.with_suffix(".questions.jsonl"))
    found = {layout: watch(example, "--layout", layout, *pressed)[0] for layout in LAYOUTS}
    assert all(of_type(events, "retention") for events in found.values())
    assert len({tuple(answers(events)) for events in found.values()}) == 1


def test_below_the_watermark_omnipick_answers_as_full(example: Path) -> None:
    asked = ("--questions", example.with_suffix(".questions.jsonl"), "--duration", 16)
    full, _ = watch(example, "--policy", "full", *asked)
    picked, _ = watch(example, "--policy", "omnipick", *asked)
    assert not of_type(picked, "retention")
    assert answers(picked) == answers(full)


def test_a_loop_stays_bounded(example: Path) -> None:
    high, low = 400, 250
    events, _ = watch(example, "--loop", 2, "--high-watermark", high, "--low-watermark", low)
    units = of_type(events, "unit")
    largest = max(unit["tokens"]["total"] for unit in units)
    summary = events[-1]
    assert summary["units"] == len(units) == 88
    assert summary["retentions"] > 5
    assert summary["peak_history_tokens"] <= high + largest
    assert max(unit["history_tokens"] for unit in units) <= high
    assert summary["peak_physical_span"] <= 512


def test_a_high_watermark_just_below_the_cache(example: Path) -> None:
    """Case 3: a long answer across the border overflows nothing."""
    events, _ = watch(
        *(example, "--ctx", 512, "--high-watermark", 511, "--low-watermark", 300),
        *("--duration", 24, "--every", f"2={QUESTION}"),
    )
    assert len(of_type(events, "answer")) == 12
    assert events[-1]["peak_history_tokens"] <= 512
    assert events[-1]["retentions"] == len(of_type(events, "retention")) > 0


def test_h2o_retains_by_attention_in_a_saved_session_too(example: Path, tmp_path: Path) -> None:
    marks = ["--policy", "h2o", "--high-watermark", 400, "--low-watermark", 280, "--ask", QUESTION]
    saved = tmp_path / "seen.tide"
    for more in (["--loop", 2, "--save-session", saved], ["--loop", 4, "--resume", saved]):
        events, _ = watch(example, *marks, *more)
        (session,) = of_type(events, "session")
        assert (session["policy"], session["flash_attn"]) == ("h2o", False)
        assert {event["after_tokens"] for event in of_type(events, "retention")} == {280}
        assert len(answers(events)) == 1
        assert of_type(events, "summary")[0]["peak_history_tokens"] <= 400 + 128
    _, told = watch(example, *marks, "--flash-attn", "on", code=2)
    assert "--policy h2o needs attention weights, which flash attention doesn't expose" in told


def test_full_ends_with_a_clear_error_when_the_cache_is_full(example: Path) -> None:
    events, errors = watch(example, "--policy", "full", "--ctx", 256, code=1)
    assert "cache is full" in errors
    assert "--ctx" in errors
    assert events[-1]["type"] == "summary"
    assert events[-1]["units"] > 2


def test_a_memory_that_can_not_be_managed_is_named(tmp_path: Path, example: Path, demo_files: ModelFiles) -> None:
    """Case 1: exit 4, never an abort."""
    model = write_recurrent_model(tmp_path / "mamba.gguf", n_embd=192, tokenizer_of=demo_files.model)
    events, errors = watch(example, "--model", model, "--mmproj", demo_files.mmproj, code=4)
    assert "recurrent state" in errors
    assert "--policy full" in errors
    assert not of_type(events, "unit")
    events, _ = watch(
        example, "--model", model, "--mmproj", demo_files.mmproj, "--policy", "full", "--duration", 2, "--ask", "What?"
    )
    assert events[-1]["units"] == 2


def test_a_model_whose_positions_can_not_be_shifted_is_named(
    tmp_path: Path, example: Path, demo_files: ModelFiles
) -> None:
    model = write_deepseek_ocr(tmp_path / "ocr.gguf", n_embd=192, tokenizer_of=demo_files.model)
    events, errors = watch(example, "--model", model, "--mmproj", demo_files.mmproj, code=4)
    assert "layer 0" in errors
    assert "--policy full" in errors
    assert not of_type(events, "unit")
    stock = ("--policy", "full", "--duration", 2)
    events, _ = watch(example, "--model", model, "--mmproj", demo_files.mmproj, *stock)
    assert events[-1]["units"] == 2


def test_a_model_in_several_files_is_named_by_its_first(tmp_path: Path, example: Path, demo_files: ModelFiles) -> None:
    parts = [tmp_path / f"demo-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    for part in parts:
        part.write_bytes(demo_files.model.read_bytes()[: 1 << 16])
    _, errors = watch(example, "--model", parts[1], "--mmproj", demo_files.mmproj, code=4)
    assert "part 2 of a model in 3 files" in errors
    assert parts[0].name in errors


@pytest.mark.long
def test_two_thousand_units_stay_bounded(example: Path) -> None:
    """Memory and time per unit stay flat: `pytest -m long -k two_thousand -s` prints the figures."""
    events, _ = watch(example, "--loop", 46, "--high-watermark", 2500, "--low-watermark", 1800)
    units = of_type(events, "unit")
    assert len(units) > 2000
    largest = max(unit["tokens"]["total"] for unit in units)
    assert events[-1]["peak_history_tokens"] <= 2500 + largest

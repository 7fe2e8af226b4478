"""`omnitide watch CLIP --model X.gguf --mmproj Y.gguf` without a manifest, for every family that people run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers_media import Sound, Video, make_clip, plain
from test_watch import of_type, watch
from tiny_models.families import FAMILIES

from omnitide_cli.catalog.files import find_manifest
from omnitide_cli.catalog.manifest_text import manifest_lines

IMAGE_TOKENS = {
    "qwen2.5-omni": 77,
    "qwen2.5-vl": 77,
    "qwen3-vl": 60,
    "qwen3-omni": 60,
    "glm-4.6v": 77,
    "internvl3": 16,
    "moondream2": 16,
    "pixtral": 83,
    "voxtral": 0,
    "ultravox": 0,
    "glm-asr": 0,
    "smolvlm2": 16,
    "gemma3": 16,
    "gemma4": 72,
    "gemma4-e2b": 72,
    "qwen3.5": 60,
    "lfm2-vl": 66,
}
SECONDS = 12
PRESSED = ("--high-watermark", 450, "--low-watermark", 300)
QUESTION = ("--ask", "What is there?", "--max-answer-tokens", 8)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wide seconds with sound."""
    seen, heard = Video(plain((40, 90, 200), (320, 180)), seconds=SECONDS), Sound(seconds=SECONDS)
    return Path(make_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", seen, heard))


def files(name: str, folder: Path) -> tuple[str | Path, ...]:
    model, mmproj = FAMILIES[name].write(folder)
    return ("--model", model, "--mmproj", mmproj)


def cap(name: str) -> tuple[str | int, ...]:
    """Small pictures, where a model has any that can be smaller."""
    return ("--image-tokens", 80) if name in IMAGE_TOKENS and IMAGE_TOKENS[name] > 16 else ()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_runs_without_a_manifest(name: str, clip: Path, tiny_family_folder: Path) -> None:
    arguments = (*files(name, tiny_family_folder), *cap(name), *PRESSED, *QUESTION)
    family = FAMILIES[name]
    events, errors = watch(clip, *arguments)
    units = of_type(events, "unit")
    assert len(units) == SECONDS
    assert {unit["tokens"]["image"] for unit in units} == {IMAGE_TOKENS[name]}
    heard = find_manifest(*map(str, arguments[1:4:2])).hears
    assert all(bool(unit["tokens"]["audio"]) == heard for unit in units)
    marks = sum(map(len, map(names_in, family.image_marks if family.sees else ())))
    marks += sum(map(len, map(names_in, family.sound_marks if heard else ())))
    assert {unit["tokens"]["boundary"] for unit in units} == {marks}
    assert max(unit["history_tokens"] for unit in units) <= 450
    assert bool(of_type(events, "retention")) == (SECONDS * units[0]["tokens"]["total"] > 450)
    assert len(of_type(events, "answer")) == 1
    assert ("can't see pictures" in errors) == (not family.sees)
    assert ("can't hear sound" in errors) == (not heard)


def names_in(mark: str) -> list[str]:
    """Names of tokens in a mark."""
    from omnitide_cli.runtime.options import NAMES

    return NAMES.findall(mark)


@pytest.mark.parametrize("name", ["smolvlm2", "qwen2.5-omni", "voxtral"])
def test_the_manifest_that_is_printed_does_the_same(
    name: str, clip: Path, tiny_family_folder: Path, tmp_path: Path
) -> None:
    given = files(name, tiny_family_folder)
    path = tmp_path / f"{name}.toml"
    path.write_text("\n".join(manifest_lines(find_manifest(*map(str, given[1::2])))), encoding="utf-8")
    rest = (*cap(name), *PRESSED, *QUESTION, "--duration", 3)
    bare, _ = watch(clip, *given, *rest)
    described, _ = watch(clip, "--model", path, *rest)
    told = [
        [(event["tokens"], event["history_tokens"]) for event in of_type(events, "unit")]
        for events in (bare, described)
    ]
    assert told[0] == told[1]
    texts = [json.dumps(of_type(events, "answer")[0]["text"]) for events in (bare, described)]
    assert texts[0] == texts[1]


def test_encoders_of_another_model_are_told(clip: Path, tiny_family_folder: Path) -> None:
    model = FAMILIES["qwen2.5-vl"].write(tiny_family_folder)[0]
    wider = FAMILIES["gemma4-e2b"].write(tiny_family_folder)[1]
    _, errors = watch(clip, "--model", model, "--mmproj", wider, "--no-audio", code=4)
    assert "mismatch between text model" in errors
    assert "this model's mmproj" in errors
    other = FAMILIES["internvl3"].write(tiny_family_folder)[1]
    _, errors = watch(clip, "--model", model, "--mmproj", other, "--no-audio", code=4)
    assert "<img> and </img>, which the vocabulary doesn't have" in errors


def test_a_model_without_encoders_is_told(clip: Path, tiny_family_folder: Path) -> None:
    _, errors = watch(clip, "--model", FAMILIES["qwen2.5-vl"].write(tiny_family_folder)[0], code=4)
    assert "it can't see or hear" in errors
    assert "--mmproj" in errors


@pytest.mark.parametrize(("name", "least"), [("lfm2-vl", 64), ("internvl3", 16)])
def test_pictures_have_no_fewer_tokens_than_the_model_wants(
    name: str, least: int, clip: Path, tiny_family_folder: Path
) -> None:
    arguments = (*files(name, tiny_family_folder), "--image-tokens", least - 1)
    _, errors = watch(clip, *arguments, code=2)
    assert f"a picture takes at least {least} tokens" in errors

"""`omnitide watch` with the shipped MiniCPM manifests on tiny random weights of the same build."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers_media import Sound, Video, make_clip, plain
from test_watch import Event, answers, of_type, watch
from tiny_models import write_attention_model, write_cutting_encoder

from omnitide_cli.catalog.manifest import load_manifest, models_dir

VERSIONS = {"minicpm-v-4.5": 6, "minicpm-o-4.5": 100045}
NAMES = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<image>", "</image>", "<slice>", "</slice>")
UNIT_NAMES = ("<unit>", "</unit>")
QUERIES = 8
SMALLER = {"size": 56, "slice_tokens": QUERIES, "max_tokens": 10 * QUERIES, "default_tokens": 4 * QUERIES}
PRESSED = ("--high-watermark", 400, "--low-watermark", 270)
QUESTION = "What is happening now?"


@pytest.fixture(scope="module", params=VERSIONS)
def manifest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shipped manifest whose files are tiny ones, and whose sizes are an eighth."""
    folder = tmp_path_factory.mktemp("minicpm")
    write_attention_model(folder / "model.gguf", "qwen3", names=NAMES + UNIT_NAMES)
    write_cutting_encoder(folder / "mmproj.gguf", version=VERSIONS[request.param], queries=QUERIES)
    text = (models_dir() / f"{request.param}.toml").read_text(encoding="utf-8")
    for name in ("model", "mmproj"):
        text = re.sub(rf"(\[files\.{name}\]\n)(.+\n)+", rf'\1path = "{name}.gguf"\n', text)
    for key, value in SMALLER.items():
        text, found = re.subn(rf"(?m)^{key} = \d+$", f"{key} = {value}", text)
        assert found == 1
    path = folder / f"{request.param}.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight wide seconds with sound."""
    seen, heard = Video(plain((40, 90, 200), (320, 180)), seconds=8), Sound(seconds=8)
    return Path(make_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", seen, heard))


def test_a_stream_is_watched_in_slices_and_stays_bounded(manifest: Path, clip: Path) -> None:
    events, errors = watch(clip, "--model", manifest, "--ask", QUESTION, "--loop", 3, *PRESSED)
    units = of_type(events, "unit")
    assert len(units) == 24
    marks = len("\n") if "-v-" in manifest.name else len(UNIT_NAMES)
    for unit in units:
        assert unit["tokens"]["image"] == 3 * QUERIES  # a source and two slices of 4 x QUERIES allowed
        assert unit["tokens"]["boundary"] == 6 + marks
        assert unit["tokens"]["audio"] == 0
    assert of_type(events, "retention")
    assert max(unit["history_tokens"] for unit in units) <= 400
    assert len(answers(events)) == 1
    assert "can't hear sound" in errors
    assert [event["code"] for event in of_type(events, "warning")] == ["no-sound"]


@pytest.mark.parametrize(("cap", "images"), [(8, 1), (31, 3), (10 * QUERIES, 9)])
def test_slices_are_capped(manifest: Path, clip: Path, cap: int, images: int) -> None:
    events, errors = watch(clip, "--model", manifest, "--image-tokens", cap, "--no-audio", "--duration", 1)
    assert of_type(events, "unit")[0]["tokens"]["image"] == images * QUERIES
    assert "sound" not in errors


def test_no_layout_changes_what_is_kept(manifest: Path, clip: Path) -> None:
    def kept(layout: str) -> list[Event]:
        events, _ = watch(clip, "--model", manifest, "--loop", 3, "--layout", layout, *PRESSED)
        return [{key: event[key] for key in ("unit", "after_tokens")} for event in of_type(events, "retention")]

    assert kept("eager") == kept("class-packing") != []


def test_what_can_not_be_is_said_with_its_exit_code(manifest: Path, clip: Path, tmp_path: Path) -> None:
    events, errors = watch(clip, "--model", manifest, "--image-tokens", 7, code=2)
    assert "a picture takes 8 tokens" in errors
    tone = make_clip(tmp_path / "tone.wav", None, Sound(seconds=1))
    _, errors = watch(tone, "--model", manifest, code=2)
    assert "has only sound" in errors
    assert "a model with an audio encoder" in errors
    other = write_cutting_encoder(tmp_path / "other.gguf", n_embd=128)
    events, errors = watch(clip, "--model", manifest, "--mmproj", other, code=4)
    assert "other.gguf can't be loaded" in errors
    assert not of_type(events, "unit")


def test_a_language_model_of_another_family_is_refused(clip: Path, manifest: Path) -> None:
    model = write_attention_model(manifest.parent / "plain.gguf", "qwen3", names=NAMES[:4] + UNIT_NAMES)
    other = manifest.with_name("other.toml")
    text = manifest.read_text(encoding="utf-8").replace('"model.gguf"', f'"{model.name}"')
    other.write_text(re.sub(r"(?m)^name = .*$", 'name = "other"', text), encoding="utf-8")
    events, errors = watch(clip, "--model", other, code=4)
    assert "vocabulary lacks the marks" in errors
    assert not of_type(events, "unit")


def test_sizes_are_those_of_the_manifest() -> None:
    frames = load_manifest("minicpm-v-4.5").frames
    assert (frames.size, frames.slice_tokens, frames.max_tokens) == (448, 64, 640)

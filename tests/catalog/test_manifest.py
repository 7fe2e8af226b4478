"""Manifests: the shipped ones are whole, a wrong one is named with its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnitide_cli.catalog.manifest import (
    DEFAULT_MODEL,
    Frames,
    load_manifest,
    model_names,
    models_dir,
    read_manifest,
)
from omnitide_cli.errors import ModelError, UsageError


@pytest.mark.parametrize("name", model_names())
def test_a_shipped_manifest_is_whole(name: str) -> None:
    manifest = load_manifest(name)
    assert manifest.name == name
    assert manifest.default_question.endswith("?")
    assert manifest.mmproj is not None
    prompt = manifest.prompt
    assert prompt.system_prefix == "<|im_start|>system\n"
    assert prompt.question_suffix.startswith("<|im_end|>\n<|im_start|>assistant\n")
    assert prompt.response_suffix == prompt.system_suffix == "<|im_end|>\n<|im_start|>user\n"
    own_marks = prompt.image_prefix, prompt.image_suffix, prompt.audio_prefix, prompt.audio_suffix
    if manifest.frames.mode == "slices":  # whose encoder marks its images
        assert own_marks == ("", "", "", "")
        assert not manifest.hears
        assert prompt.question_suffix.endswith("<think>\n\n</think>\n\n")
    else:
        assert own_marks == ("<|vision_bos|>", "<|vision_eos|>", "<|audio_bos|>", "<|audio_eos|>")
        assert manifest.audio.tokens_per_second == 25


def test_what_is_downloaded_is_pinned() -> None:
    for manifest in map(load_manifest, model_names()):
        for file in (manifest.model, manifest.mmproj):
            assert file is not None
            if file.repo:
                assert len(file.revision) == 40
                assert file.size > 1e9


def test_the_default_model_comes_first_and_downloads_nothing() -> None:
    assert model_names()[0] == DEFAULT_MODEL
    manifest = load_manifest(DEFAULT_MODEL)
    assert not manifest.model.repo
    assert manifest.mmproj is not None
    assert not manifest.mmproj.repo


def test_the_demo_model_is_asked_what_it_was_trained_for() -> None:
    from omnitide_cli.bench.world.question import DEFAULT_QUESTION

    assert load_manifest(DEFAULT_MODEL).default_question == DEFAULT_QUESTION


def test_the_largest_unit_is_its_image_its_sound_and_its_markers() -> None:
    demo = load_manifest(DEFAULT_MODEL)
    assert demo.unit_tokens(1.0) == 16 + 25 + 4
    assert demo.unit_tokens(0.5, 9) == 9 + 13 + 4
    assert load_manifest("qwen2.5-omni-7b").unit_tokens(2.0, 64) == 64 + 50 + 4


def test_a_cap_lowers_the_tokens_of_a_frame_but_never_raises_them() -> None:
    square = Frames("square", 16, size=112)
    assert square.capped(None) == square.capped(99) == square
    assert square.capped(15) == Frames("square", 9, size=84)
    patches = Frames("patches", 256, multiple=28)
    assert patches.capped(100) == Frames("patches", 100, multiple=28)


def test_slices_have_a_default_cap_that_may_be_raised_and_lowered() -> None:
    frames = load_manifest("minicpm-v-4.5").frames
    found = [(capped.max_tokens, capped.slices) for capped in map(frames.capped, (None, 64, 200, 640, 9999))]
    assert found == [(256, 3), (64, 0), (192, 2), (640, 9), (640, 9)]
    with pytest.raises(UsageError, match="--image-tokens 63"):
        frames.capped(63)


def test_the_largest_unit_of_slices_has_their_marks() -> None:
    """Before and behind ten images, behind two of three rows; here one after each slice but the last."""
    manifest = load_manifest("minicpm-o-4.5")
    assert manifest.unit_tokens(1.0, 640) >= 640 + 20 + 8 + 2
    assert manifest.unit_tokens(1.0, 640) < 680
    assert manifest.unit_tokens(5.0) - manifest.unit_tokens(1.0) == 0


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ModelError, match="'gpt-5'") as caught:
        load_manifest("gpt-5")
    assert all(name in caught.value.hint for name in model_names())


@pytest.mark.parametrize("name", ["../models/omnitide-demo", "", ".", "omnitide-demo.toml"])
def test_a_name_is_no_path(name: str) -> None:
    with pytest.raises(ModelError, match="no model is called"):
        load_manifest(name)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('title = "OmniTide demo"\n', "", "missing key title"),
        ('title = "OmniTide demo"', "title = 1", "title has the wrong type: 1"),
        ('name = "own"', 'name = "other"', "name is 'other', the file's is 'own'"),
        ("[frames]\n", "[frame]\n", r"missing table \[frames\]"),
        ("[audio]\n", "[audio]\nrate = 1\n", "unknown key audio.rate"),
        ("[audio]\n", '[audio]\nencoder = "cochlea"\n', "audio.encoder is 'cochlea'; it must be whisper"),
        ("tokens_per_second = 25", "tokens_per_second = true", "audio.tokens_per_second has the wrong type: True"),
        ("size = 112\n", "size = 0\n", "frames must have a size"),
        ("max_tokens = 16\n", "max_tokens = 15\n", "can't have 15 tokens"),
        (
            'mode = "square"\nsize = 112\nmax_tokens = 16',
            'mode = "patches"\nmax_tokens = 3',
            "at least 4 tokens, not 3",
        ),
        ('mode = "square"', 'mode = "round"', "frames.mode is 'round'"),
        ('mode = "square"', 'mode = "slices"', "a source image has 64 tokens, more than 16"),
        ("[files.mmproj]\n", "[files.projector]\n", "unknown key files.projector"),
        (
            'path = "demo/omnitide-demo-f16.gguf"',
            'repo = "a/b"',
            r"\[files.model\] needs either path, or repo and file",
        ),
        ("[shape]\n", "[shape]\nheads = 3\n", "unknown key shape.heads"),
        ("[defaults]\n", '[defaults]\nrecent_units = "many"\n', "defaults.recent_units has the wrong type"),
        ('license = "MIT"\n', 'license = "MIT"\nfolder = "x"\n', "unknown key folder"),
        ('license = "MIT"\n', "license = \n", "the manifest can't be read"),
    ],
)
def test_a_wrong_manifest_is_named_with_its_key(tmp_path: Path, before: str, after: str, message: str) -> None:
    text = (models_dir() / "omnitide-demo.toml").read_text().replace('name = "omnitide-demo"', 'name = "own"')
    assert before in text
    path = tmp_path / "own.toml"
    path.write_text(text.replace(before, after))
    with pytest.raises(ModelError, match=message) as caught:
        read_manifest(path)
    assert str(path) in caught.value.message

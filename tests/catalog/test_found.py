"""What a model's files tell of it, and what is refused before anything is loaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import gguf
import numpy as np
import pytest
from tiny_models import write_attention_model, write_tiling_encoder
from tiny_models.families import FAMILIES
from tiny_models.families.chat import CHATML, CHATML_NAMES
from tiny_models.families.decoders import Vocabulary, write_plain

from omnitide_cli.catalog.files import find_manifest
from omnitide_cli.catalog.manifest import Manifest, read_manifest
from omnitide_cli.catalog.manifest_text import manifest_lines
from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.gguf_file import GgufFile

FRAMES = {
    "qwen2.5-omni": ("patches", 8, 4096),
    "qwen2.5-vl": ("patches", 8, 4096),
    "qwen3-vl": ("patches", 8, 4096),
    "qwen3-omni": ("patches", 8, 4096),
    "glm-4.6v": ("patches", 8, 4096),
    "internvl3": ("fixed", 1, 16),
    "moondream2": ("fixed", 1, 16),
    "pixtral": ("patches", 8, 1024),
    "voxtral": ("none", 1, 0),
    "ultravox": ("none", 1, 0),
    "glm-asr": ("none", 1, 0),
    "smolvlm2": ("fixed", 1, 16),
    "gemma3": ("fixed", 1, 16),
    "gemma4": ("patches", 70, 1120),
    "gemma4-e2b": ("patches", 70, 1120),
    "qwen3.5": ("patches", 8, 4096),
    "lfm2-vl": ("patches", 64, 256),
}
SECONDS = {"qwen2.5-omni": 25, "voxtral": 6, "ultravox": 6, "glm-asr": 14}
"""Tokens of a second of sound; of other families' ears there is no encoder yet."""


def found(name: str, folder: Path) -> Manifest:
    model, mmproj = FAMILIES[name].write(folder)
    return find_manifest(str(model), str(mmproj))


@pytest.mark.parametrize("name", FAMILIES)
def test_sizes_are_the_encoders_own(name: str, tiny_family_folder: Path) -> None:
    manifest = found(name, tiny_family_folder)
    frames = manifest.frames
    assert (frames.mode, frames.min_tokens, frames.max_tokens) == FRAMES[name]
    assert manifest.audio.tokens_per_second == SECONDS.get(name, 0)
    assert manifest.sees == FAMILIES[name].sees


@pytest.mark.parametrize("name", FAMILIES)
def test_what_was_found_can_be_given_back(name: str, tiny_family_folder: Path, tmp_path: Path) -> None:
    manifest = found(name, tiny_family_folder)
    path = tmp_path / f"{name}.toml"
    path.write_text("\n".join(manifest_lines(manifest)), encoding="utf-8")
    back = read_manifest(path)
    for field in fields(Manifest):
        if field.name not in ("folder", "notice", "prompt", "recall"):
            assert getattr(back, field.name) == getattr(manifest, field.name), field.name
    family = FAMILIES[name]
    assert (back.prompt.image_prefix, back.prompt.image_suffix) == family.image_marks
    assert (back.prompt.audio_prefix, back.prompt.audio_suffix) == family.sound_marks
    assert back.prompt.system_prefix == manifest.prompt.system_prefix
    assert back.prompt.question_suffix == manifest.prompt.question_suffix


def test_a_text_begins_as_the_tokenizer_begins_it(tmp_path: Path) -> None:
    names = (*CHATML_NAMES, "<|begin|>")
    write_plain(tmp_path / "m.gguf", "llama", Vocabulary(names, "<|im_end|>", "<|begin|>", CHATML))
    assert find_manifest(str(tmp_path / "m.gguf")).prompt.system_prefix == "<|begin|><|im_start|>system\n"


def test_a_model_without_a_template_gets_a_plain_one_and_says_so(tiny_family_folder: Path) -> None:
    manifest = found("moondream2", tiny_family_folder)
    assert "no chat template" in manifest.notice
    assert manifest.prompt.question_suffix == "\n\nAnswer:"
    assert f"# {manifest.notice}" in list(manifest_lines(manifest))


def test_names_that_are_no_tokens_are_text_where_a_model_may_mean_that(tmp_path: Path) -> None:
    template = CHATML.replace("message.role + '\\n'", "message.role + '[INST]\\n'")
    write_plain(tmp_path / "m.gguf", "llama", Vocabulary(CHATML_NAMES, "<|im_end|>", chat=template))
    assert find_manifest(str(tmp_path / "m.gguf")).prompt.plain_names == ["[INST]"]


def test_a_template_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    write_plain(tmp_path / "m.gguf", "llama", Vocabulary(["<|end|>"], "<|end|>", chat=CHATML))
    with pytest.raises(ModelError, match=r"writes <\|im_end\|>, <\|im_start\|>, which its vocabulary doesn't have"):
        find_manifest(str(tmp_path / "m.gguf"))


def test_a_template_without_turns_is_refused(tmp_path: Path) -> None:
    write_plain(tmp_path / "m.gguf", "llama", Vocabulary(["<|end|>"], "<|end|>", chat="{{ messages[0].content }}"))
    with pytest.raises(ModelError, match="gives no turns: it loses or repeats what is said"):
        find_manifest(str(tmp_path / "m.gguf"))


def write_fields(path: Path, arch: str, **values: int | bool | str) -> Path:
    writer = gguf.GGUFWriter(path, arch)
    for key, value in values.items():
        name = key.replace("__", ".").replace("ARCH", arch)
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        else:
            writer.add_string(name, value)
    writer.add_tensor("t", np.zeros(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def refused(model: Path, mmproj: Path | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        find_manifest(str(model), None if mmproj is None else str(mmproj))
    return f"{caught.value.message}. {caught.value.hint}"


def test_other_kinds_of_files_are_refused_with_the_remedy(tmp_path: Path, tiny_family_folder: Path) -> None:
    model, mmproj = FAMILIES["qwen2.5-vl"].write(tiny_family_folder)
    said = refused(mmproj)
    assert "holds encoders, not a language model" in said
    assert f"--mmproj {mmproj.name}" in said
    assert "is not an mmproj file: it holds a language model" in refused(model, model)
    assert "embedding model" in refused(write_fields(tmp_path / "bert.gguf", "bert", ARCH__attention__causal=False))
    assert "embedding model" in refused(write_fields(tmp_path / "pool.gguf", "qwen3", ARCH__pooling_type=3))
    assert "no such model file" in refused(tmp_path / "none.gguf")
    assert "no such model file" in refused(model, tmp_path / "none.gguf")
    shard = write_fields(tmp_path / "m-00002-of-00003.gguf", "llama", split__no=1)
    assert f"name the first part: {tmp_path / 'm-00001-of-00003.gguf'}" in refused(shard)


def test_encoders_that_cut_in_an_unknown_way_are_refused_by_name(tmp_path: Path, tiny_family_folder: Path) -> None:
    model = FAMILIES["internvl3"].write(tiny_family_folder)[0]
    assert "encoders of the kind 'mlp' cut pictures" in refused(model, write_tiling_encoder(tmp_path / "tiles.gguf"))


@pytest.mark.parametrize("cut", [8, 20, 60, 400, 3000])
def test_a_damaged_file_is_told(cut: int, tmp_path: Path, tiny_family_folder: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(FAMILIES["moondream2"].write(tiny_family_folder)[0].read_bytes()[:cut])
    assert "damaged" in refused(path)


def test_metadata_is_what_the_gguf_package_reads(tmp_path: Path) -> None:
    path = write_attention_model(tmp_path / "m.gguf", "qwen2vl", names=CHATML_NAMES)
    ours, theirs = GgufFile.read(path, with_tokens=True), gguf.GGUFReader(path).fields
    for key, value in ours.values.items():
        expected = theirs[key].contents()
        expected = list(expected) if isinstance(expected, Sequence) and not isinstance(expected, str) else expected
        assert json.dumps(value) == json.dumps(expected), key
    assert ours.tokens == list(theirs["tokenizer.ggml.tokens"].contents())
    assert {key for key in theirs if not key.startswith("GGUF.")} == {*ours.values, "tokenizer.ggml.tokens"}

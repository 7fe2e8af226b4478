"""What is typed is text, also with files that type the names of their marks as user-defined."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import gguf
import pytest

from omnitide_cli.catalog.manifest import load_manifest
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import llama
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.runtime.template import TokenTemplate

TYPED = [
    "<|audio_eos|><|vision_bos|>",
    "<|im_end|>",
    "what is <|im_start|>system\n?<|im_end|><|im_end|> now",
    "<<|im_end|>|im_end|>",
    "<|im_<|im_end|>end|>",
    "  two  spaces\n\nand <b>tags</b>",
    "",
    "ß <|vision_eos|> 日本 🙂",
]


@pytest.fixture(scope="module", params=[gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED])
def retyped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, demo_files: ModelFiles) -> Path:
    """The shipped model, the names of its marks typed otherwise."""
    path = tmp_path_factory.mktemp("retyped") / "model.gguf"
    shutil.copy(demo_files.model, path)
    reader = gguf.GGUFReader(path, "r+")
    names, kinds = (reader.fields[f"tokenizer.ggml.{name}"] for name in ("tokens", "token_type"))
    for index in range(len(names.data)):
        if bytes(names.parts[names.data[index]]).startswith(b"<|"):
            kinds.parts[kinds.data[index]][0] = request.param
    reader.data.flush()
    return path


def test_typed_names_of_marks_stay_text(retyped: Path) -> None:
    model = Model(ModelFiles("test", retyped, None), EngineOptions(threads=1))
    try:
        template = TokenTemplate.of(load_manifest("omnitide-demo").prompt, model)
        marks = {
            token
            for part in (template.audio_suffix, template.image_prefix, template.question_suffix, template.system_prefix)
            for token in part
            if text_of(model, token).startswith(b"<|")
        }
        assert len(marks) >= 4
        for words in TYPED:
            tokens = model.tokenize(words, special=False)
            assert not marks & set(tokens)
            assert b"".join(text_of(model, token) for token in tokens).decode() == words
    finally:
        model.close()


def test_many_marks_are_no_more_work_than_their_text(retyped: Path) -> None:
    model = Model(ModelFiles("test", retyped, None), EngineOptions(threads=1))
    try:
        words = "<|im_end|>word <|audio_bos|>" * 2000
        assert b"".join(text_of(model, token) for token in model.tokenize(words, special=False)).decode() == words
    finally:
        model.close()


def text_of(model: Model, token: int) -> bytes:
    buffer = (ctypes.c_char * 64)()
    length = llama.llama_token_to_piece(model._vocab, token, buffer, 64, 0, True)
    return bytes(buffer[:length])

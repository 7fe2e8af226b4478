"""Tiny random models, written once a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from memory_streams import WRITERS
from tiny_models import write_attention_model, write_recurrent_model


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Paths by architecture: M-RoPE, plain rotary in both orders, sliding window, recurrent."""
    folder = tmp_path_factory.mktemp("models")
    paths = {
        arch: write_attention_model(folder / f"{arch}.gguf", arch) for arch in ("qwen2vl", "qwen2", "llama", "gemma2")
    }
    paths["mamba"] = write_recurrent_model(folder / "mamba.gguf")
    return paths


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a family's model, of one with a window in some layers, or of a hybrid, by its name."""
    folder = tmp_path_factory.mktemp("memories")

    def write(name: str) -> Path:
        path = folder / f"{name}.gguf"
        if not path.exists():
            WRITERS[name](path)
        return path

    return write

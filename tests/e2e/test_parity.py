"""Number by number against Hugging Face's Qwen2.5-Omni on the shipped weights.

tests/data/parity.npz was written once by models/demo/reference.py (float32, weights rounded to what the GGUF files
hold). Differences are relative L2 norms. What remains: llama.cpp multiplies f16 weights with activations rounded to
f16, and has its GELU in a table.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from random_stream import Running

from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native_session import NativeSession, log_mel
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.runtime.view import Part

Reference = dict[str, NDArray]
PICTURE = 5e-4
SOUND = 3e-4
LOGITS = {"f32": 4e-4, "f16": 1.2e-3, "q8_0": 2.5e-2}


@pytest.fixture(scope="module")
def reference() -> Reference:
    with np.load(Path(__file__).parents[1] / "data" / "parity.npz") as file:
        return dict(file)


def open_demo(files: ModelFiles, cache_type: str) -> Running:
    options = EngineOptions(policy="full", cache_type=cache_type, flash_attn="on" if cache_type == "q8_0" else "off")
    model = Model(files, options)
    model.open_context(options, 512)
    return Running(model, NativeSession(model.context_address, model.mtmd_address, options, threads=2))


@pytest.fixture(scope="module")
def demo(demo_files: ModelFiles) -> Iterator[Running]:
    running = open_demo(demo_files, "f32")
    yield running
    running.close()


def difference(found: NDArray, expected: NDArray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def test_picture_embedding(demo: Running, reference: Reference) -> None:
    parts, tokens, rows = demo.session.encode_image(reference["image"], demo.model.n_embd)
    assert parts == [Part("image", 16, width=4)]
    assert set(tokens) == {-1}
    assert difference(rows, reference["image_embedding"]) < PICTURE


def test_spectrogram(reference: Reference) -> None:
    np.testing.assert_allclose(log_mel(reference["sound"]), reference["mel"], atol=2e-4)


def test_spectrogram_with_neighbours(reference: Reference) -> None:
    near = reference["near_sound"]
    found = log_mel(near[320:16320], near[:320], near[16320:])
    np.testing.assert_allclose(found, reference["near_mel"], atol=2e-4)


def test_sound_embedding(demo: Running, reference: Reference) -> None:
    rows = demo.session.encode_audio(reference["sound"], demo.model.n_embd)
    assert rows.shape == (25, demo.model.n_embd)
    assert difference(rows, reference["sound_embedding"]) < SOUND


def test_sound_embedding_with_neighbours(demo: Running, reference: Reference) -> None:
    near = reference["near_sound"]
    rows = demo.session.encode_audio(near[320:16320], demo.model.n_embd, near[:320], near[16320:])
    assert difference(rows, reference["near_sound_embedding"]) < SOUND


@pytest.mark.parametrize("prompt", ["text", "unit"])
@pytest.mark.parametrize("cache_type", list(LOGITS))
def test_logits(demo_files: ModelFiles, reference: Reference, cache_type: str, prompt: str) -> None:
    running = open_demo(demo_files, cache_type)
    session, model = running.session, running.model
    ids = reference[f"{prompt}_ids"].tolist()
    image, audio = (model.tokenize(name, special=True)[0] for name in ("<|IMAGE|>", "<|AUDIO|>"))
    behind_media = next(i for i in reversed(range(-1, len(ids))) if i < 0 or ids[i] in (image, audio)) + 1
    kept = min(len(ids) - behind_media, len(reference[f"{prompt}_logits"]))
    session.begin("media")
    for token, run in groupby(ids[:-kept]):
        if token == image:
            assert session.add_image(reference["image"]) == len(list(run))
        elif token == audio:
            assert session.add_audio(reference["sound"]) == len(list(run))
        else:
            session.add_tokens("text", list(run))
    session.commit()
    found = []
    for token in ids[-kept:]:
        session.begin("question")
        session.add_tokens("text", [token])
        session.commit(want_logits=True)
        found.append(session.logits(model.n_vocab))
    positions = session.tokens()[:, 1:].T
    running.close()
    np.testing.assert_array_equal(positions, reference[f"{prompt}_positions"])
    expected = reference[f"{prompt}_logits"][-kept:]
    assert difference(np.array(found), expected) < LOGITS[cache_type]
    if prompt == "unit":
        assert np.array(found)[-1].argmax() == expected[-1].argmax()

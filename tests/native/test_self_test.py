"""A model is tried before it is trusted: shifted keys must be what it computes, and rows must do what tokens do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_stream import PROBE, Running
from tiny_models import (
    write_attention_model,
    write_cogvlm,
    write_deepseek_ocr,
    write_latent_model,
    write_learned_model,
    write_phi3,
)

from omnitide_cli.errors import CacheFull, ModelError
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import llama
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

CACHES = [("f32", "off"), ("f16", "on"), ("f16", "off"), ("q8_0", "on")]
OPTIONS = EngineOptions(high_watermark=200, low_watermark=120, recent_units=2)
FULL = replace(OPTIONS, policy="full")

Write = Callable[[Path], Path]

REFUSED: dict[str, tuple[Write, int]] = {
    "smollm3": (lambda path: write_attention_model(path, "smollm3", layers=5), 3),
    "hunyuan-dense": (lambda path: write_attention_model(path, "hunyuan-dense"), 0),
    "hunyuan_vl": (lambda path: write_attention_model(path, "hunyuan_vl"), 0),
    "maincoder": (lambda path: write_attention_model(path, "maincoder"), 0),
    "baichuan": (lambda path: write_attention_model(path, "baichuan", layers=40), 0),
    "starcoder": (lambda path: write_learned_model(path, "starcoder"), 0),
    "deepseek-ocr": (write_deepseek_ocr, 0),
}
"""Models whose graphs do something else with positions than they say, and the first layer where that shows."""

EXACT: dict[str, Write] = {
    "minicpm3": lambda path: write_latent_model(path, "minicpm3"),
    "plm": lambda path: write_latent_model(path, "plm"),
    "phi3": write_phi3,
    "cogvlm": write_cogvlm,
    "qwen2vl": lambda path: write_attention_model(path, "qwen2vl"),
    "qwen2": lambda path: write_attention_model(path, "qwen2"),
    "qwen3": lambda path: write_attention_model(path, "qwen3"),
    "qwen3vl": lambda path: write_attention_model(path, "qwen3vl"),
    "llama": lambda path: write_attention_model(path, "llama"),
    "gpt2": lambda path: write_learned_model(path, "gpt2"),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The path of a model by its name."""
    folder = tmp_path_factory.mktemp("models")

    def write(name: str) -> Path:
        path = folder / f"{name}.gguf"
        if not path.exists():
            (EXACT[name] if name in EXACT else REFUSED[name][0])(path)
        return path

    return write


@pytest.mark.parametrize(("cache_type", "flash_attn"), CACHES)
@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_would_be_shifted_wrongly_is_refused(
    written: Callable[[str], Path], name: str, cache_type: str, flash_attn: str
) -> None:
    options = replace(OPTIONS, cache_type=cache_type, flash_attn=flash_attn)
    with pytest.raises(ModelError, match=rf"layer {REFUSED[name][1]}\b"):
        Running.open(written(name), options, 256)


@pytest.mark.parametrize(("cache_type", "flash_attn"), CACHES)
@pytest.mark.parametrize("name", sorted(set(EXACT) - {"gpt2"}))
def test_a_model_that_can_be_shifted_is_accepted(
    written: Callable[[str], Path], name: str, cache_type: str, flash_attn: str
) -> None:
    options = replace(OPTIONS, cache_type=cache_type, flash_attn=flash_attn)
    if name == "plm" and flash_attn == "on":  # where llama.cpp's graph aborts
        with pytest.raises(ModelError, match="flash attention"):
            Running.open(written(name), options, 256)
    else:
        Running.open(written(name), options, 256).close()


@pytest.mark.parametrize("way", ["cpu", "graph"])
@pytest.mark.parametrize("name", ["minicpm3", "plm", "phi3"])
def test_shifted_keys_are_those_of_a_fresh_run(
    written: Callable[[str], Path], name: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNITIDE_RELOCATION", way)
    running = Running.open(written(name), replace(OPTIONS, policy="fifo"), 256)
    random = np.random.default_rng(5)
    fed: dict[int, list[int]] = {}
    while True:
        tokens = random.integers(0, running.model.n_vocab, 20).tolist()
        running.session.begin("question")
        running.session.add_tokens("text", tokens)
        fed[running.session.commit().unit] = tokens
        if running.session.maintain().retained and len(fed) > 30:
            break
    fresh = Running.open(written(name), FULL, 256)
    for unit in running.session.units():
        fresh.session.begin("question")
        fresh.session.add_tokens("text", fed[unit.id])
        fresh.session.commit()
    shifted, computed = (
        session.keys(0, session.tokens()[:, 0].tolist()) for session in (running.session, fresh.session)
    )
    assert np.abs(shifted - computed).max() <= 2e-3 * np.abs(computed).max()
    running.close()
    fresh.close()


def opened_on_stock_memory(path: Path, n_ctx: int) -> Running:
    model = Model(ModelFiles("test", path, None), FULL)
    model.open_context(FULL, n_ctx)
    return Running(model, NativeSession(model.context_address, 0, FULL, threads=2, stock_memory=True))


@pytest.mark.parametrize("name", [*REFUSED, "gpt2"])
def test_what_is_refused_still_runs_on_stock_memory(written: Callable[[str], Path], name: str) -> None:
    running = opened_on_stock_memory(written(name), 256)
    logits = running.probe()
    assert np.isfinite(logits).all()
    running.close()


@pytest.mark.parametrize("name", ["starcoder", "gpt2"])
def test_learned_positions_run_out_without_an_abort(written: Callable[[str], Path], name: str) -> None:
    running = opened_on_stock_memory(written(name), 512)  # twice as many cells as positions
    running.session.begin("question")
    running.session.add_tokens("text", PROBE * 31)
    running.session.commit()
    running.probe()  # up to the last position
    with pytest.raises(CacheFull, match="256 positions"):
        running.probe()
    assert running.session.snapshot().history_tokens == 256
    running.close()


def test_the_context_is_left_as_new(written: Callable[[str], Path]) -> None:
    """Logits are bit by bit those of a context that was never tried, and no position is taken."""
    path = written("qwen2")
    running = Running.open(path, FULL, 256)
    assert running.session.snapshot().history_tokens == 0
    running.session.check()
    tried = running.probe()
    running.close()

    model = Model(ModelFiles("test", path, None), FULL)
    model.open_context(FULL, 256)
    context: Any = llama.llama_context_p_ctypes(model.context_address)
    tokens = (llama.llama_token * len(PROBE))(*PROBE)
    assert llama.llama_decode(context, llama.llama_batch_get_one(tokens, len(PROBE))) == 0
    logits = np.ctypeslib.as_array(llama.llama_get_logits_ith(context, -1), (model.n_vocab,)).copy()
    model.close()
    np.testing.assert_array_equal(tried, logits)


@pytest.mark.parametrize(
    ("name", "stock_memory"),
    [
        ("cogvlm", False),
        ("cogvlm", True),
        ("qwen2", False),
        ("qwen2", True),
        ("qwen3vl", False),
        ("gemma2", False),
        ("gemma2", True),
    ],
)
def test_text_beside_rows_is_what_it_is_alone(
    written: Callable[[str], Path], models: dict[str, Path], name: str, stock_memory: bool
) -> None:
    """CogVLM has other weights for rows: its text must be given as tokens, wherever it stands."""
    path = models[name] if name == "gemma2" else written(name)
    width = 3 * 256 if name == "qwen3vl" else 256
    rows = np.random.default_rng(0).standard_normal((3, width)).astype(np.float32)
    logits = []
    for together in (True, False):
        running = opened_on_stock_memory(path, 256) if stock_memory else Running.open(path, FULL, 256)
        session = running.session
        session.begin("media")
        session.add_tokens("boundary", PROBE)
        if not together:
            session.commit()
            session.begin("media")
        session.add_rows("audio", rows)
        if not together:
            session.commit()
            session.begin("media")
        session.add_tokens("boundary", PROBE[:3])
        session.commit(want_logits=True)
        logits.append(session.logits(running.model.n_vocab))
        running.close()
    assert np.abs(logits[0] - logits[1]).max() <= 5e-3 * np.abs(logits[1]).max()

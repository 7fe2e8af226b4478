"""Models that must see a picture as a whole: its tokens attend to each other, whichever comes first."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_stream import PROBE, Part, Running, Stream
from stock_context import StockContext
from test_exactness import LOGITS_TOLERANCE
from test_slices import stock_chunks
from tiny_models.families import FAMILIES, write_gemma3_encoders
from tiny_models.families.encoders import EncoderFile

from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.model import UBATCH, Model
from omnitide_cli.runtime.native import ffi, lib, llama
from omnitide_cli.runtime.native import mtmd as typed_mtmd
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

SIDE, TOKENS = 224, 16
N_CTX = 512
FULL = EngineOptions(policy="full", cache_type="f16", flash_attn="off")
MARKS = [3, 4]
Rows = NDArray[np.float32]

mtmd: Any = typed_mtmd  # its declarations ask for a check of every pointer


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    return ModelFiles("gemma3", *FAMILIES["gemma3"].write(tmp_path_factory.mktemp("whole")))


def picture(seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)


def in_order(*parts: Part) -> list[tuple[Part, NDArray[np.int64]]]:
    """Each with consecutive places."""
    at, out = 0, []
    for part in parts:
        t = np.arange(at, at + len(part))
        out.append((part, np.stack([t, t, t], axis=1)))
        at += len(part)
    return out


def stock_logits(model: Model, rows: Rows, *, causal: bool) -> Rows:
    stock = StockContext(model, FULL, N_CTX)
    text = Part("boundary", tuple(MARKS))
    for part, places in in_order(text, Part("image", rows=rows), text, Part("text", tuple(PROBE))):
        stock.decode(part, places, causal=causal or part.rows is None)
    found = stock.logits()
    stock.close()
    return found


@pytest.mark.parametrize(("cache_type", "flash_attn"), [("f16", "off"), ("f16", "on"), ("q8_0", "on")])
def test_a_picture_is_seen_as_stock_llama_cpp_sees_it(files: ModelFiles, cache_type: str, flash_attn: str) -> None:
    options = replace(FULL, cache_type=cache_type, flash_attn=flash_attn)
    running = Running.open(files.model, options, N_CTX, mmproj=files.mmproj)
    (part,), _, rows = running.session.encode_image(picture(), running.model.n_embd)
    assert part.length == TOKENS
    running.session.begin("media")
    running.session.add_tokens("boundary", MARKS)
    running.session.add_image(picture())
    running.session.add_tokens("boundary", MARKS)
    running.session.commit()
    found = running.probe()
    whole = stock_logits(running.model, rows, causal=False)
    masked = stock_logits(running.model, rows, causal=True)
    running.close()
    largest = np.abs(whole).max()
    assert np.abs(found - whole).max() / largest < LOGITS_TOLERANCE[cache_type] * (1 if cache_type == "f16" else 3)
    assert np.abs(found - masked).max() / largest > 0.05, "it makes a difference"


def test_the_model_reads_what_stock_mtmd_would_have_given_it(files: ModelFiles) -> None:
    """Its marks, as llama.cpp's helper writes them, and the picture between them."""
    model = Model(files, FULL)
    model.open_context(FULL, N_CTX)
    past = llama.llama_pos(0)
    marks: list[list[int]] = []
    with stock_chunks(model, picture(5)) as chunks:
        for index in range(mtmd.mtmd_input_chunks_size(chunks)):
            chunk = mtmd.mtmd_input_chunks_get(chunks, index)
            if mtmd.mtmd_input_chunk_get_type(chunk) != mtmd.MTMD_INPUT_CHUNK_TYPE_TEXT:
                continue
            n = mtmd.mtmd_input_chunk_get_n_tokens(chunk)
            marks.append(mtmd.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(ctypes.c_size_t()))[:n])
        arguments = (model._mtmd, model._context, chunks, 0, 0, N_CTX, True, ctypes.byref(past))
        assert mtmd.mtmd_helper_eval_chunks(*arguments) == 0
    probe = (llama.llama_token * len(PROBE))(*PROBE)
    assert llama.llama_decode(model._context, llama.llama_batch_get_one(probe, len(PROBE))) == 0
    expected = np.ctypeslib.as_array(llama.llama_get_logits_ith(model._context, -1), (model.n_vocab,)).copy()
    model.close()

    running = Running.open(files.model, FULL, N_CTX, mmproj=files.mmproj)
    before, behind = marks
    running.session.begin("media")
    running.session.add_tokens("boundary", before)
    running.session.add_image(picture(5))
    running.session.add_tokens("boundary", behind)
    running.session.commit()
    assert running.session.snapshot().next_position == past.value
    found = running.probe()
    running.close()
    assert np.abs(expected).max() > 1.0
    assert np.abs(found - expected).max() / np.abs(expected).max() < LOGITS_TOLERANCE["f16"]


def test_sound_and_text_stay_masked(files: ModelFiles) -> None:
    """Rows of sound in one batch with nothing after them say what they say one by one."""
    logits = []
    rows = np.random.default_rng(1).standard_normal((12, 256)).astype(np.float32)
    for step in (12, 1):
        running = Running.open(files.model, replace(FULL, cache_type="f32"), N_CTX, mmproj=files.mmproj)
        for first in range(0, 12, step):
            running.session.begin("media")
            running.session.add_rows("audio", rows[first : first + step])
            running.session.commit()
        logits.append(running.probe())
        running.close()
    assert np.abs(logits[0] - logits[1]).max() < 1e-3 * np.abs(logits[0]).max()


def test_pictures_in_a_row_do_not_see_each_other(files: ModelFiles) -> None:
    rows = np.random.default_rng(2).standard_normal((2 * TOKENS, 256)).astype(np.float32)
    logits = []
    for units in (1, 2):
        running = Running.open(files.model, FULL, N_CTX, mmproj=files.mmproj)
        for unit in range(units):
            running.session.begin("media")
            for half in range(2) if units == 1 else (unit,):
                running.session.add_rows("image", rows[half * TOKENS : (half + 1) * TOKENS], width=4)
            running.session.commit()
        logits.append(running.probe())
        running.close()
    np.testing.assert_array_equal(logits[0], logits[1])


def test_the_context_takes_the_largest_picture_at_once(files: ModelFiles, tmp_path: Path) -> None:
    large = tmp_path / "large.gguf"
    writer = EncoderFile(large, n_embd=FAMILIES["gemma3"].n_embd, width=FAMILIES["gemma3"].encoder_width)
    write_gemma3_encoders(writer, side=14 * 4 * 24)  # 576 tokens
    writer.finish()
    for mmproj, tokens in ((files.mmproj, TOKENS), (large, 576)):
        model = Model(ModelFiles("gemma3", files.model, mmproj), FULL)
        assert lib.ot_largest_whole_picture(ffi.cast("void *", model.mtmd_address)) == tokens
        context = model.new_context(FULL, 1024)
        assert llama.llama_n_ubatch(context) == max(UBATCH, tokens)
        llama.llama_free(context)
        model.close()
    assert lib.ot_largest_whole_picture(ffi.NULL) == 0


def test_a_picture_larger_than_that_is_refused_and_taken_back(files: ModelFiles) -> None:
    running = Running.open(
        files.model, replace(FULL, high_watermark=1600, low_watermark=1500), 2048, mmproj=files.mmproj
    )
    before = running.session.save()
    rows = np.random.default_rng(3).standard_normal((UBATCH + 1, 256)).astype(np.float32)
    running.session.begin("media")
    running.session.add_tokens("boundary", MARKS)
    running.session.add_rows("image", rows, width=27)
    with pytest.raises(ModelError, match=f"picture of {UBATCH + 1} tokens"):
        running.session.commit()
    running.session.check()
    np.testing.assert_array_equal(running.session.save(), before)
    running.session.begin("media")
    running.session.add_rows("image", rows[:-1], width=27)
    running.session.commit()
    assert np.isfinite(running.probe()).all()
    running.close()


@pytest.mark.parametrize("policy", ["omnipick", "h2o"])
def test_a_stream_of_pictures_presses_on(files: ModelFiles, policy: str) -> None:
    options = EngineOptions(
        policy=policy, flash_attn="off", high_watermark=380, low_watermark=240, recent_units=2, text_budget=40
    )
    running = Running.open(files.model, options, N_CTX, mmproj=files.mmproj)
    stream = Stream(running, seed=1)
    stream.system()
    assert stream.run(26) >= 3
    running.session.begin("media")
    running.session.add_image(picture())
    running.session.commit()
    running.session.check()
    assert np.isfinite(running.probe()).all()
    running.close()

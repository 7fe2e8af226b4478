"""Models that cut a picture into a source image and slices: what of it enters the history, and what stays."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from random_stream import PROBE, Part, Running, Stream
from test_exactness import errors_in_steps, keys_of, replayed_keys
from tiny_models import write_attention_model, write_cutting_encoder, write_tiling_encoder

from omnitide_cli.errors import ModelError, RuntimeFailure
from omnitide_cli.media import FrameFit
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted, llama
from omnitide_cli.runtime.native import mtmd as typed_mtmd
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

MARKS = ("<image>", "</image>", "<slice>", "</slice>")
SIDE, QUERIES = 56, 8
N_CTX = 1024
VERSIONS = {"minicpm-v-4.5": 6, "minicpm-o-4.5": 100045, "minicpm-v-2.6": 3, "minicpm-v-2.5": 2}
FULL = EngineOptions(policy="full", cache_type="f32", flash_attn="off")
WIDE = (160, 90)  # three slices in two rows
Rgb = NDArray[np.uint8]

mtmd: Any = typed_mtmd  # its declarations ask for a check of every pointer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cutting")


@pytest.fixture(scope="module")
def language(folder: Path) -> Path:
    """A Qwen3, as below MiniCPM 4.5, that knows the marks."""
    return write_attention_model(folder / "language.gguf", "qwen3", names=MARKS)


@pytest.fixture(scope="module")
def encoders(folder: Path) -> dict[str, Path]:
    return {
        name: write_cutting_encoder(folder / f"{name}.gguf", version=version, side=SIDE, queries=QUERIES)
        for name, version in VERSIONS.items()
    }


@pytest.fixture(scope="module")
def minicpm(language: Path, encoders: dict[str, Path]) -> Iterator[Running]:
    """A session for those who look at the encoder alone."""
    running = Running.open(language, FULL, N_CTX, mmproj=encoders["minicpm-v-4.5"])
    yield running
    running.close()


def picture(width: int, height: int, seed: int = 0) -> Rgb:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def encoded(running: Running, width: int, height: int) -> list[tuple[str, int]]:
    parts = running.session.encode_image(picture(width, height), running.model.n_embd).parts
    return [(part.role, part.length) for part in parts]


@pytest.mark.parametrize("name", ["minicpm-v-4.5", "minicpm-o-4.5", "minicpm-v-2.6"])
def test_a_picture_is_a_source_then_rows_of_slices_between_marks(
    language: Path, encoders: dict[str, Path], name: str
) -> None:
    running = Running.open(language, FULL, N_CTX, mmproj=encoders[name])
    source, slice_ = ("image-source", QUERIES), ("image", QUERIES)
    row = [("boundary", 2), slice_, ("boundary", 2), slice_, ("boundary", 2), slice_]
    second = [("boundary", 3), *row[1:]]  # a row ends with a line feed
    assert encoded(running, *WIDE) == [("boundary", 1), source, *row, *second, ("boundary", 1)]
    tokens = running.session.encode_image(picture(*WIDE), running.model.n_embd).tokens
    names = running.model.tokenize("".join(MARKS) + "\n", special=True)
    image, end, cut, cut_end, line = names
    between = [cut_end, cut]
    expected = [image, end, cut, *between, *between, cut_end, line, cut, *between, *between, cut_end]
    assert tokens[tokens >= 0].tolist() == expected
    running.close()


def test_an_older_template_is_read_as_it_comes(language: Path, encoders: dict[str, Path]) -> None:
    running = Running.open(language, FULL, N_CTX, mmproj=encoders["minicpm-v-2.5"])
    roles = [role for role, _ in encoded(running, *WIDE)]
    assert roles.count("image-source") == 1
    assert roles.count("image") == 6
    running.close()


def test_a_picture_of_no_more_than_a_slice_is_a_source_alone(minicpm: Running) -> None:
    assert encoded(minicpm, SIDE, SIDE) == [("boundary", 1), ("image-source", QUERIES), ("boundary", 1)]


def test_the_ledger_has_what_the_encoder_gave_at_consecutive_positions(
    language: Path, encoders: dict[str, Path]
) -> None:
    running = Running.open(language, FULL, N_CTX, mmproj=encoders["minicpm-v-4.5"])
    session = running.session
    session.begin("media")
    session.add_tokens("boundary", [1, 2])
    added = session.add_image(picture(*WIDE))
    session.add_tokens("boundary", [3])
    done = session.commit()
    expected = encoded(running, *WIDE)
    expected[0] = ("boundary", 3)  # neighbours of one role are one span
    expected[-1] = ("boundary", 2)
    assert [(span.role, span.length) for span in session.units()[0].spans] == expected
    assert added == sum(length for _, length in expected) - 3
    assert done.image_tokens == 7 * QUERIES
    assert done.boundary_tokens == added + 3 - 7 * QUERIES
    positions = session.tokens()[:, 1:]
    np.testing.assert_array_equal(positions, np.arange(added + 3)[:, None].repeat(3, axis=1))
    session.check()
    running.close()


# --- the same as stock mtmd


@contextmanager
def stock_chunks(model: Model, rgb: Rgb) -> Iterator[Any]:
    """What `mtmd_tokenize` makes of a picture."""
    height, width = rgb.shape[:2]
    data = np.ascontiguousarray(rgb).ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
    bitmap, chunks = mtmd.mtmd_bitmap_init(width, height, data), mtmd.mtmd_input_chunks_init()
    marker = mtmd.mtmd_default_marker()
    text = mtmd.mtmd_input_text(text=marker, text_len=len(marker), add_special=False, parse_special=True)
    bitmaps = (mtmd.mtmd_bitmap_p_ctypes * 1)(bitmap)
    assert mtmd.mtmd_tokenize(model._mtmd, chunks, ctypes.byref(text), bitmaps, 1) == 0
    try:
        yield chunks
    finally:
        mtmd.mtmd_input_chunks_free(chunks)
        mtmd.mtmd_bitmap_free(bitmap)


@pytest.mark.parametrize("size", [(SIDE, SIDE), WIDE, (90, 160), (400, 300)])
def test_tokens_and_rows_are_those_of_stock_mtmd(minicpm: Running, size: tuple[int, int]) -> None:
    rgb, model = picture(*size, seed=3), minicpm.model
    tokens: list[int] = []
    rows: list[NDArray[np.float32]] = []
    with stock_chunks(model, rgb) as chunks:
        for index in range(mtmd.mtmd_input_chunks_size(chunks)):
            chunk = mtmd.mtmd_input_chunks_get(chunks, index)
            count = mtmd.mtmd_input_chunk_get_n_tokens(chunk)
            if mtmd.mtmd_input_chunk_get_type(chunk) == mtmd.MTMD_INPUT_CHUNK_TYPE_TEXT:
                n = ctypes.c_size_t()
                tokens += mtmd.mtmd_input_chunk_get_tokens_text(chunk, ctypes.byref(n))[:count]
            else:
                assert mtmd.mtmd_encode_chunk(model._mtmd, chunk) == 0
                out: Any = mtmd.mtmd_get_output_embd(model._mtmd)
                rows.append(np.ctypeslib.as_array(out, (count, model.n_embd)).copy())
                tokens += [-1] * count
    ours = minicpm.session.encode_image(rgb, model.n_embd)
    assert ours.tokens.tolist() == tokens
    np.testing.assert_array_equal(ours.rows, np.concatenate(rows))


def test_the_model_reads_what_stock_mtmd_would_have_given_it(language: Path, encoders: dict[str, Path]) -> None:
    rgb = picture(*WIDE, seed=4)
    stock = Model(ModelFiles("test", language, encoders["minicpm-v-4.5"]), FULL)
    stock.open_context(FULL, N_CTX)
    past = llama.llama_pos(0)
    with stock_chunks(stock, rgb) as chunks:
        arguments = (stock._mtmd, stock._context, chunks, 0, 0, 512, True, ctypes.byref(past))
        assert mtmd.mtmd_helper_eval_chunks(*arguments) == 0
    probe = (llama.llama_token * len(PROBE))(*PROBE)
    assert llama.llama_decode(stock._context, llama.llama_batch_get_one(probe, len(PROBE))) == 0
    expected = np.ctypeslib.as_array(llama.llama_get_logits_ith(stock._context, -1), (stock.n_vocab,)).copy()
    stock.close()

    running = Running.open(language, FULL, N_CTX, mmproj=encoders["minicpm-v-4.5"])
    running.session.begin("media")
    running.session.add_image(rgb)
    running.session.commit()
    assert running.session.snapshot().next_position == past.value
    found = running.probe()
    running.close()
    assert np.abs(expected).max() > 1.0
    assert (
        np.abs(found - expected).max() < 2e-3
    )  # batches differ in size, and so does the order of sums; 0.0011 seen with kernels that round to f16


# --- under pressure

PRESSED: dict[str, Any] = {"high_watermark": 420, "low_watermark": 260, "recent_units": 1, "image_sinks": 3}


def feed(stream: Stream, size: tuple[int, int]) -> None:
    """A unit with a picture, remembered part by part so that a fresh run can be fed with what is left of it."""
    session, model = stream.running.session, stream.running.model
    rgb = picture(*size, seed=int(stream.random.integers(1 << 30)))
    found = session.encode_image(rgb, model.n_embd)
    parts, token, row = [stream.text("boundary", 1)], 0, 0
    for part in found.parts:
        ids = found.tokens[token : token + part.length]
        token += part.length
        if part.role == "boundary":
            parts.append(Part(part.role, tuple(int(i) for i in ids)))
        else:
            parts.append(Part(part.role, rows=found.rows[row : row + part.length]))
            row += part.length
    session.begin("media")
    session.add_tokens("boundary", parts[0].tokens)
    session.add_image(rgb)
    stream.units[session.commit().unit] = parts


@pytest.mark.parametrize("policy", ["omnipick", "fifo", "token", "streaming-llm"])
@pytest.mark.parametrize(("cache_type", "flash_attn"), [("f16", "on"), ("f16", "off"), ("q8_0", "on")])
def test_keys_are_those_of_a_fresh_run(
    language: Path, encoders: dict[str, Path], cache_type: str, flash_attn: str, policy: str
) -> None:
    options = EngineOptions(**PRESSED, policy=policy, cache_type=cache_type, flash_attn=flash_attn)
    running = Running.open(language, options, N_CTX, mmproj=encoders["minicpm-v-4.5"])
    stream = Stream(running, seed=2)
    stream.system()
    retentions = 0
    for index in range(24):
        feed(stream, [WIDE, (90, 160), (SIDE, SIDE), (112, 112)][index % 4])
        retentions += running.session.maintain().retained
        running.session.check()
    assert retentions >= 3
    errors = errors_in_steps(keys_of(running)[1], replayed_keys(running, stream, language, options), cache_type)
    running.close()
    if cache_type == "f16":
        assert errors.max() <= 1.0
    else:  # see test_exactness.py
        assert np.sqrt((errors**2).mean(axis=1)).max() < 1.0


def test_omnipick_keeps_marks_and_sources_whole_and_sinks_of_slices(language: Path, encoders: dict[str, Path]) -> None:
    running = Running.open(language, EngineOptions(**PRESSED), N_CTX, mmproj=encoders["minicpm-v-4.5"])
    stream = Stream(running, seed=5)
    stream.system()
    before = {}
    while not running.session.maintain().retained:
        feed(stream, WIDE)
        before[running.session.units()[-1].id] = running.session.units()[-1]
    cut = [unit for unit in running.session.units() if unit.partial]
    assert cut
    for unit in cut:
        whole = before[unit.id]
        assert len(unit.spans) == len(whole.spans)
        for left, was in zip(unit.spans, whole.spans, strict=True):
            kept = min(was.length, PRESSED["image_sinks"]) if was.role == "image" else was.length
            assert (left.role, left.length, left.first) == (was.role, kept, 0)
    assert not running.session.units()[-1].partial
    running.close()


# --- frames that nobody expects, and models that were not checked


@pytest.mark.parametrize(
    "size",
    [(1, 1), (1, 300), (300, 1), (SIDE + 1, 1), (2000, 3), (3, 2000), (1 << 14, 1), (1, 1 << 14), (3000, 2000)],
    ids=str,
)
def test_no_frame_is_too_odd(minicpm: Running, size: tuple[int, int]) -> None:
    roles = [role for role, _ in encoded(minicpm, *size)]
    assert roles.count("image-source") == 1
    assert roles.count("image") <= 9
    assert roles[0] == roles[-1] == "boundary"


@pytest.mark.parametrize("size", [(1, (1 << 14) + 1), ((1 << 14) + 1, 1)], ids=str)
def test_a_side_beyond_what_libmtmd_can_count_is_refused(minicpm: Running, size: tuple[int, int]) -> None:
    with pytest.raises(RuntimeFailure, match="at most 16384 pixels"):
        encoded(minicpm, *size)


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 5, 7, 8, 9, 20])
def test_fitted_frames_are_never_cut_into_more_slices_than_wanted(minicpm: Running, most: int) -> None:
    fit = FrameFit.slices(SIDE, max_slices=most)
    sizes = np.random.default_rng(most).integers(1, 400, (25, 2)).tolist()
    sizes += [(640, 360), (360, 640), (640, 480), (500, 500), (57, 56), (1000, 20), (2, 900), (SIDE, SIDE), (8, 8)]
    found = []
    for width, height in sizes:
        canvas = fit.fit(picture(width, height))
        parts = minicpm.session.encode_image(canvas, minicpm.model.n_embd).parts
        found.append(sum(part.role == "image" for part in parts))
    assert max(found) == (min(most, 9) if most > 1 else 0)


def test_a_language_model_without_the_marks_is_refused(folder: Path, encoders: dict[str, Path]) -> None:
    other = write_attention_model(folder / "other.gguf", "qwen3", names=("<image>", "</image>"))
    running = Running.open(other, FULL, N_CTX, mmproj=encoders["minicpm-v-4.5"])
    running.session.begin("media")
    with pytest.raises(ModelError, match="marks"):
        running.session.add_image(picture(*WIDE))
    running.session.abandon()
    assert np.isfinite(running.probe()).all()
    running.close()


def test_models_whose_slices_were_not_checked_are_refused(folder: Path, language: Path) -> None:
    running = Running.open(language, FULL, N_CTX, mmproj=write_tiling_encoder(folder / "tiling.gguf", side=SIDE))
    running.session.begin("media")
    with pytest.raises(ModelError, match="slices"):
        running.session.add_image(picture(*WIDE))
    running.close()


def test_an_interruption_between_slices_takes_the_unit_back(language: Path, encoders: dict[str, Path]) -> None:
    running = Running.open(language, FULL, N_CTX, mmproj=encoders["minicpm-v-4.5"])
    session = running.session
    session.begin("media")
    session.interrupt()
    with pytest.raises(Interrupted):
        session.add_image(picture(*WIDE))
    session.interrupt(False)
    session.abandon()
    session.begin("media")
    session.add_image(picture(*WIDE))
    session.commit()
    session.check()
    running.close()

"""The marks before and after pictures and sound, as libmtmd writes them for a model's encoders."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from omnitide_cli.errors import ModelError, RuntimeFailure
from omnitide_cli.runtime.native import lib, llama, mtmd, text

Kind = Literal["image", "audio"]
SIDE = 64  # pixels of a picture that nobody looks at
SECOND = 16000
NO_TOKEN = -1  # where libmtmd looked for one in vain
KNOWN = {
    "image": (("<|vision_bos|>", "<|vision_eos|>"),),  # Qwen2.5-Omni, for which libmtmd writes Qwen2.5-VL's
    "audio": (("<|audio_bos|>", "<|audio_eos|>"),),
}
"""Marks of models whose vocabulary lacks those that libmtmd writes."""
NO_MARKS = "give the mmproj file of this very model; or a manifest with its marks (omnitide models info --mmproj)"


@dataclass(frozen=True, slots=True)
class Marks:
    """Names of the tokens before and after."""

    prefix: str = ""
    suffix: str = ""


def marks_of(mtmd_context: Any, model: Any, kind: Kind) -> Marks:
    """What surrounds a picture or a sound; no marks where the encoders have none of this kind.

    `mtmd_context`, `model`: of llama-cpp-python's declarations. Raises ModelError for marks that aren't tokens.
    """
    supports = mtmd.mtmd_support_vision if kind == "image" else mtmd.mtmd_support_audio
    if not supports(mtmd_context):
        return Marks()
    vocabulary = llama.llama_model_get_vocab(model)
    before, after = _around(mtmd_context, vocabulary, kind)
    prefix, suffix = _names(vocabulary, before), _names(vocabulary, after)
    if _are_marks(vocabulary, before) and _are_marks(vocabulary, after):
        return Marks(prefix, suffix)
    for pair in KNOWN[kind]:
        if all(_is_token(vocabulary, name) for name in pair):
            return Marks(*pair)
    written = " and ".join(filter(None, (prefix, suffix)))
    raise ModelError(f"these encoders mark what they encode by {written}, which the vocabulary doesn't have", NO_MARKS)


def read_marks(model: Path, mmproj: Path) -> dict[Kind, Marks]:
    """Those of files that nobody has loaded. Raises ModelError."""
    from omnitide_cli.runtime.model import start_llama

    start_llama()
    with _vocabulary(model) as words:
        params = mtmd.mtmd_context_params_default()
        params.warmup = params.use_gpu = params.print_timings = False
        encoders = mtmd.mtmd_init_from_file(os.fsencode(mmproj), words, params)
        if not encoders:
            raise ModelError(f"{mmproj} can't be loaded: {text(lib.ot_log_take_error())}", "check that it is complete")
        try:
            kinds: tuple[Kind, ...] = ("image", "audio")
            return {kind: marks_of(encoders, words, kind) for kind in kinds}
        finally:
            mtmd.mtmd_free(encoders)


@contextmanager
def _vocabulary(path: Path) -> Iterator[Any]:
    params = llama.llama_model_default_params()
    params.vocab_only = True
    model = llama.llama_model_load_from_file(os.fsencode(path), params)
    if not model:
        raise ModelError(f"{path} can't be loaded: {text(lib.ot_log_take_error())}", "check that it is complete")
    try:
        yield model
    finally:
        llama.llama_model_free(model)


def _around(context: Any, vocabulary: Any, kind: Kind) -> tuple[list[int], list[int]]:
    """Tokens right before and right after the last piece of a medium: of a picture in tiles, the overview."""
    if kind == "image":
        pixels = (ctypes.c_uint8 * (3 * SIDE * SIDE))()
        bitmap = mtmd.mtmd_bitmap_init(SIDE, SIDE, pixels)
    else:
        samples = (ctypes.c_float * SECOND)()
        bitmap = mtmd.mtmd_bitmap_init_from_audio(SECOND, samples)
    chunks = mtmd.mtmd_input_chunks_init()
    if bitmap is None or chunks is None:
        raise RuntimeFailure("out of memory")
    try:
        marker = mtmd.mtmd_get_marker(context) or b""
        words = mtmd.mtmd_input_text()
        words.text, words.text_len = marker, len(marker)
        words.add_special, words.parse_special = False, True
        if mtmd.mtmd_tokenize(context, chunks, ctypes.pointer(words), _array(bitmap), 1) != 0:
            raise ModelError("libmtmd can't prepare anything for these encoders", "choose another mmproj file")
        parts = [mtmd.mtmd_input_chunks_get(chunks, at) for at in range(mtmd.mtmd_input_chunks_size(chunks))]
        texts = [_tokens(part) for part in parts]
    finally:
        mtmd.mtmd_input_chunks_free(chunks)
        mtmd.mtmd_bitmap_free(bitmap)
    media = [at for at, tokens in enumerate(texts) if tokens is None]
    last = media[-1] if media else 0
    before = (texts[last - 1] if last else None) or []
    after = (texts[last + 1] if last + 1 < len(texts) else None) or []
    if len(media) > 1:  # what divides tiles stands there, too
        named = partial(_is_named, vocabulary)
        before = list(reversed([*takewhile(named, reversed(before))]))
        after = [*takewhile(named, after)]
    return before, after


def _array(bitmap: Any) -> Any:
    return ctypes.cast((ctypes.c_void_p * 1)(bitmap), ctypes.POINTER(ctypes.c_void_p))


def _tokens(chunk: Any) -> list[int] | None:
    """Of a chunk of text; None: it is a medium."""
    if mtmd.mtmd_input_chunk_get_type(chunk) != mtmd.MTMD_INPUT_CHUNK_TYPE_TEXT:
        return None
    count = ctypes.c_size_t()
    tokens: Any = mtmd.mtmd_input_chunk_get_tokens_text(chunk, ctypes.pointer(count))
    return [tokens[at] for at in range(count.value)]


def _are_marks(vocabulary: Any, tokens: list[int]) -> bool:
    """Tokens with a name of their own, or a mere line break: never letters of a name that is no token."""
    if NO_TOKEN in tokens:
        return False
    return len(tokens) <= 1 or all(_is_named(vocabulary, token) for token in tokens)


def _is_named(vocabulary: Any, token: int) -> bool:
    named = llama.LLAMA_TOKEN_ATTR_CONTROL | llama.LLAMA_TOKEN_ATTR_USER_DEFINED
    return token != NO_TOKEN and bool(llama.llama_vocab_get_attr(vocabulary, token) & named)


def _names(vocabulary: Any, tokens: list[int]) -> str:
    return "".join(_piece(vocabulary, token) for token in tokens if token >= 0)


def _piece(vocabulary: Any, token: int) -> str:
    buffer = ctypes.create_string_buffer(256)
    size = llama.llama_token_to_piece(vocabulary, token, buffer, len(buffer), 0, True)
    return buffer.raw[: max(size, 0)].decode("utf-8", "replace")


def _is_token(vocabulary: Any, name: str) -> bool:
    data = name.encode()
    tokens = (llama.llama_token * len(data))()
    return llama.llama_tokenize(vocabulary, data, len(data), tokens, len(data), False, True) == 1

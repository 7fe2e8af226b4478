"""llama.cpp and libmtmd as they are, through llama-cpp-python's API alone: what benchmarks compare ours with."""

from __future__ import annotations

import ctypes
import time
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import ModelError, RuntimeFailure
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import llama, mtmd
from omnitide_cli.runtime.options import EngineOptions

SEQUENCE: Any = 0


def sequence_state(model: Model) -> NDArray[np.uint8]:
    """What the model's context has cached, in llama.cpp's own format for a sequence."""
    context: Any = ctypes.cast(model.context_address, llama.llama_context_p_ctypes)
    state = np.empty(llama.llama_state_seq_get_size(context, SEQUENCE), dtype=np.uint8)
    if llama.llama_state_seq_get_data(context, _bytes(state), state.size, SEQUENCE) != state.size:
        raise RuntimeFailure("llama.cpp could not export the cache")
    return state


class StockContext:
    """A second context on a loaded model's weights, on llama.cpp's own memory. Use as a context manager."""

    def __init__(self, model: Model, options: EngineOptions, n_ctx: int) -> None:
        """Raises ModelError when there can't be such a context."""
        self._context: Any = model.new_context(options, n_ctx)
        self._memory: Any = llama.llama_get_memory(self._context)
        self._n_vocab = model.n_vocab

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        llama.llama_free(self._context)

    @property
    def can_shift(self) -> bool:
        """Whether llama.cpp can shift this model's positions: it can't under M-RoPE."""
        return bool(llama.llama_memory_can_shift(self._memory))

    def load(self, state: NDArray[np.uint8]) -> None:
        """Cache what `sequence_state` gave, and nothing else."""
        self.clear()
        if not llama.llama_state_seq_set_data(self._context, _bytes(state), state.size, SEQUENCE):
            raise RuntimeFailure("llama.cpp could not import the cached rows")

    def clear(self) -> None:
        """Forget everything."""
        llama.llama_memory_clear(self._memory, False)

    def evict(self, first: int, count: int) -> None:
        """Drop positions [first, first + count) and close the gap; the rows are rotated by the next decode."""
        llama.llama_memory_seq_rm(self._memory, SEQUENCE, first, first + count)
        llama.llama_memory_seq_add(self._memory, SEQUENCE, first + count, -1, -count)

    def decode(self, tokens: int) -> float:
        """Milliseconds to prefill this many tokens of text, without logits, as updates are measured."""
        begin, ms = llama.llama_memory_seq_pos_max(self._memory, SEQUENCE) + 1, 0.0
        most = llama.llama_n_batch(self._context)
        for done in range(0, tokens, most):
            ms += self._decode(begin + done, min(most, tokens - done))
        return ms

    def _decode(self, begin: int, tokens: int) -> float:
        batch = llama.llama_batch_init(tokens, 0, 1)
        try:
            batch.n_tokens = tokens
            for index in range(tokens):
                batch.token[index] = index % self._n_vocab
                batch.pos[index] = begin + index
                batch.n_seq_id[index] = 1
                batch.seq_id[index][0] = 0
                batch.logits[index] = 0
            began = time.perf_counter()
            status = llama.llama_decode(self._context, batch)
            llama.llama_synchronize(self._context)
            if status:
                raise RuntimeFailure(f"llama.cpp could not decode {tokens} tokens (status {status})")
            return (time.perf_counter() - began) * 1000
        finally:
            llama.llama_batch_free(batch)


def stock_sound_tokens(model: Model, pcm: NDArray[np.float32]) -> int:
    """Have libmtmd prepare and encode a sound; the number of tokens it makes of it. Raises ModelError."""
    context: Any = ctypes.cast(model.mtmd_address, mtmd.mtmd_context_p_ctypes)
    samples = np.ascontiguousarray(pcm, dtype=np.float32)
    data: Any = samples.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    bitmap: Any = mtmd.mtmd_bitmap_init_from_audio(samples.size, data)
    chunks: Any = mtmd.mtmd_input_chunks_init()
    try:
        marker = mtmd.mtmd_default_marker()
        words = mtmd.mtmd_input_text(text=marker, text_len=len(marker), add_special=False, parse_special=True)
        if mtmd.mtmd_tokenize(context, chunks, ctypes.pointer(words), (mtmd.mtmd_bitmap_p_ctypes * 1)(bitmap), 1):
            raise ModelError("libmtmd can't prepare sound for this model", "choose a model with an audio encoder")
        found: list[Any] = [
            mtmd.mtmd_input_chunks_get(chunks, index) for index in range(mtmd.mtmd_input_chunks_size(chunks))
        ]
        sounds = [chunk for chunk in found if mtmd.mtmd_input_chunk_get_type(chunk) == mtmd.MTMD_INPUT_CHUNK_TYPE_AUDIO]
        for chunk in sounds:
            if mtmd.mtmd_encode_chunk(context, chunk):
                raise RuntimeFailure("libmtmd could not encode the sound")
        return sum(mtmd.mtmd_input_chunk_get_n_tokens(chunk) for chunk in sounds)
    finally:
        mtmd.mtmd_input_chunks_free(chunks)
        mtmd.mtmd_bitmap_free(bitmap)


def _bytes(array: NDArray[np.uint8]) -> Any:
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))

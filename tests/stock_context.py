"""llama.cpp as it comes, beside ours: plain decodes on its own memory, removals and shifts by position."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.common.replay import Piece as Part
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import llama as typed_llama
from omnitide_cli.runtime.options import EngineOptions

llama: Any = typed_llama  # its declarations ask for a check of every pointer
MROPE = (8, 40)  # llama_rope_type, plain and interleaved


class StockContext:
    """A context of its own on a loaded model; `close` before the model."""

    def __init__(self, model: Model, options: EngineOptions, n_ctx: int) -> None:
        self._model = model
        self.context = model.new_context(options, n_ctx)
        self._memory = llama.llama_get_memory(self.context)
        self._mrope = llama.llama_model_rope_type(llama.llama_get_model(self.context)) in MROPE

    def decode(self, part: Part, places: NDArray[np.int64], *, causal: bool = True) -> None:
        """One batch; `places` [n, 3]: t, y, x. The last token has logits."""
        n = len(part)
        by_rows = part.rows is not None
        positions = places[:, :1].T
        if by_rows and self._mrope:
            positions = np.vstack([places.T, np.zeros(n)])
        flat = np.ascontiguousarray(positions, np.int32)
        zero = (llama.llama_seq_id * 1)(0)
        output = (ctypes.c_int8 * n)()
        output[n - 1] = 1
        data = np.ascontiguousarray(part.rows, np.float32) if by_rows else np.asarray(part.tokens, np.int32)
        batch = llama.llama_batch()
        batch.n_tokens = n
        if by_rows:
            batch.embd = data.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        else:
            batch.token = data.ctypes.data_as(ctypes.POINTER(llama.llama_token))
        batch.pos = flat.ctypes.data_as(ctypes.POINTER(llama.llama_pos))
        batch.n_seq_id = (ctypes.c_int32 * n)(*[1] * n)
        batch.seq_id = (ctypes.POINTER(llama.llama_seq_id) * n)(*[zero] * n)
        batch.logits = output
        llama.llama_set_causal_attn(self.context, causal)
        status = llama.llama_decode(self.context, batch)
        llama.llama_set_causal_attn(self.context, True)
        assert status == 0

    def remove(self, begin: int, end: int) -> None:
        assert llama.llama_memory_seq_rm(self._memory, 0, begin, end)

    def shift(self, begin: int, end: int, by: int) -> None:
        llama.llama_memory_seq_add(self._memory, 0, begin, end, by)

    def logits(self) -> NDArray[np.float32]:
        found = llama.llama_get_logits_ith(self.context, -1)
        return np.ctypeslib.as_array(found, (self._model.n_vocab,)).copy()

    def close(self) -> None:
        llama.llama_free(self.context)

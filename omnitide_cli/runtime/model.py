"""A loaded model: llama.cpp's weights and context, and the encoders on libmtmd.

Uses llama-cpp-python's ctypes declarations of the C API: its `Llama` class would own the memory that we take over.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any

from omnitide_cli.errors import ModelError, RuntimeFailure
from omnitide_cli.runtime.costs import Costs, cost_key, kernel_of, load_costs, load_unit_ms, scaled
from omnitide_cli.runtime.gguf_file import GgufFile, check_gguf
from omnitide_cli.runtime.limits import cores
from omnitide_cli.runtime.marks import Kind, Marks, marks_of
from omnitide_cli.runtime.native import ffi, lib, llama, mtmd, text
from omnitide_cli.runtime.options import EngineOptions, ModelFiles, check_policy, reads_attention
from omnitide_cli.runtime.parts import parts_of
from omnitide_cli.runtime.typed_text import tokenize_typed

CACHE_TYPES = {"f32": llama.GGML_TYPE_F32, "f16": llama.GGML_TYPE_F16, "q8_0": llama.GGML_TYPE_Q8_0}
BYTES_PER_VALUE = {"f32": 4.0, "f16": 2.0, "q8_0": 34 / 32}
FLASH_ATTENTION = {
    "auto": llama.LLAMA_FLASH_ATTN_TYPE_AUTO,
    "on": llama.LLAMA_FLASH_ATTN_TYPE_ENABLED,
    "off": llama.LLAMA_FLASH_ATTN_TYPE_DISABLED,
}
NO_FLASH_ATTENTION = ("plm",)
"""Architectures whose graphs hand over values in a shape at which flash attention aborts the process."""
_MARK = re.compile(r"<\|[^|\s]+\|>")
SPM_SPACE = "\u2581"  # as some vocabularies write a space
GGUF_UINT32 = 4
BATCH = 2048  # tokens that llama.cpp takes with one call
UBATCH = 512  # tokens that go through the model at once


def has_amx() -> bool:
    """Whether the processor has matrix tiles (AMX), which llama.cpp's quantised weights must keep off.

    Compilers up to GCC 12 drop most of the tile configuration that ggml sets up: the first batch then dies of a
    segmentation fault (ggml-org/llama.cpp#20824). Nothing tells which compiler made the user's llama.cpp.
    """
    try:
        return b"amx_int8" in Path("/proc/cpuinfo").read_bytes()
    except OSError:
        return False


def is_unquantised(path: Path) -> bool:
    """Whether a GGUF file says that its weights are f32 or f16; they don't use tiles. False where it doesn't say."""
    key = b"general.file_type"
    with path.open("rb") as file:
        head = file.read(1 << 16)
    place = head.find(key) + len(key)
    if place < len(key) or len(head) < place + 8:
        return False
    kind, file_type = struct.unpack_from("<II", head, place)
    return kind == GGUF_UINT32 and file_type in (0, 1)


@cache
def start_llama() -> None:
    """Start llama.cpp in this process, its log kept out of the terminal."""
    lib.ot_log_take()
    llama.llama_backend_init()


class Model:
    """Owns the model, its context and the encoders; `close` frees them in the right order.

    Raises ModelError for files that are missing, empty, damaged or of another kind.
    """

    def __init__(
        self, files: ModelFiles, options: EngineOptions, progress: Callable[[float], None] | None = None
    ) -> None:
        """Loads weights and encoders; `open_context` makes the cache."""
        start_llama()
        self._file = files.model
        self._model: Any = None
        self._context: Any = None
        self._others: list[Any] = []
        self._mtmd: Any = None
        self._reserved: set[int] = set()
        self.threads = options.threads or cores().usable
        self.caches_on_gpu = options.gpu_layers != 0 and bool(llama.llama_supports_gpu_offload())
        try:
            self._load_model(files.model, options, progress)
            if files.mmproj is not None:
                self._load_encoders(files.mmproj, options)
        except BaseException:
            self.close()
            raise

    def _load_model(self, path: Path, options: EngineOptions, progress: Callable[[float], None] | None) -> None:
        check_gguf(path)
        for part in parts_of(path):
            check_gguf(part)
        params = llama.llama_model_default_params()
        params.n_gpu_layers = options.gpu_layers
        params.use_extra_bufts = not has_amx() or is_unquantised(path)
        watcher = _Progress(progress)
        params.progress_callback = watcher.callback
        lib.ot_log_take_error()  # forget older ones
        self._model = llama.llama_model_load_from_file(os.fsencode(path), params)
        watcher.reraise()
        if not self._model:
            raise ModelError(
                f"{path} can't be loaded: {self._why()}",
                "check that the file is complete and a language model in GGUF format",
            )
        if llama.llama_model_has_encoder(self._model) or not llama.llama_model_has_decoder(self._model):
            raise ModelError(f"{path} is not a decoder-only language model", "choose a model that generates text")
        if GgufFile.read(path).is_embedding_model:  # llama.cpp would load it, and answer with noise
            raise ModelError(f"{path} is an embedding model: it can't answer", "choose a model that generates text")

    def open_context(self, options: EngineOptions, n_ctx: int) -> None:
        """Make the context with a cache of `n_ctx` cells (llama.cpp rounds up), in place of an earlier one."""
        if self._context:
            llama.llama_free(self._context)
            self._context = None
        self._context = self.new_context(options, n_ctx)

    def add_context(self, options: EngineOptions, n_ctx: int) -> int:
        """Make one more context, which lives as long as the model. Address of the `struct llama_context`."""
        self._others.append(self.new_context(options, n_ctx))
        return _address(self._others[-1])

    def new_context(self, options: EngineOptions, n_ctx: int) -> Any:
        """A context of `n_ctx` cells for the caller, who must free it before the model is closed."""
        params = llama.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = min(n_ctx, max(BATCH, self._at_once))
        params.n_ubatch = min(n_ctx, self._at_once)
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = self.threads
        params.type_k = params.type_v = CACHE_TYPES[options.cache_type]
        params.flash_attn_type = FLASH_ATTENTION[self.flash_attention(options)]
        params.no_perf = True
        if params.flash_attn_type != llama.LLAMA_FLASH_ATTN_TYPE_DISABLED and self._architecture in NO_FLASH_ATTENTION:
            raise ModelError(
                f"llama.cpp's flash attention doesn't work with models of the family {self._architecture}",
                "use --flash-attn off and a --cache-type other than q8_0",
            )
        lib.ot_log_take_error()  # forget older ones
        context = llama.llama_init_from_model(self._model, params)
        if not context:
            raise ModelError(
                f"a context of {n_ctx} cells can't be created: {self._why()}",
                "lower --ctx or the watermarks, or choose another --cache-type or --flash-attn",
            )
        return context

    def flash_attention(self, options: EngineOptions) -> str:
        """on, off, or auto where it is llama.cpp's choice.

        `auto` is what `bench calibrate` measured to be faster for this model here. Before that: off on a CPU, where the
        plain kernels are faster for small units, and llama.cpp's choice on a GPU, and for a quantised cache, which
        plain kernels can't read. Policies that read attention (h2o) need it off anywhere.
        """
        if reads_attention(options.policy):
            check_policy(options)
            return "off"
        if options.flash_attn != "auto" or options.cache_type == "q8_0":
            return options.flash_attn
        faster = self._flash_is_faster(options)
        if faster is None and self.caches_on_gpu:
            return "auto"
        return "on" if faster else "off"

    def _flash_is_faster(self, options: EngineOptions) -> bool | None:
        """None: not measured."""
        if options.costs_file is None:
            return None
        keys = (cost_key(self._file, options.cache_type, flash, self.threads) for flash in (True, False))
        flash, plain = (load_unit_ms(options.costs_file, key) for key in keys)
        return None if flash is None or plain is None else flash < plain

    def _load_encoders(self, path: Path, options: EngineOptions) -> None:
        check_gguf(path)
        params = mtmd.mtmd_context_params_default()
        params.print_timings = False
        params.warmup = False
        params.flash_attn_type = FLASH_ATTENTION[options.flash_attn]
        params.n_threads = self.threads
        lib.ot_log_take_error()  # forget older ones
        self._mtmd = mtmd.mtmd_init_from_file(os.fsencode(path), self._model, params)
        if not self._mtmd:
            raise ModelError(f"{path} can't be loaded: {self._why()}", "check that it is this model's mmproj file")

    def marks(self, kind: Kind) -> Marks:
        """What libmtmd writes around a picture or a sound; nothing where there are no such encoders."""
        return marks_of(self._mtmd, self._model, kind) if self._mtmd else Marks()

    def reserve(self, tokens: Collection[int]) -> None:
        """Take these tokens for marks, so that no typed text becomes one, whatever the file says that they are."""
        self._reserved.update(tokens)

    def _why(self) -> str:
        line = text(lib.ot_log_take_error())
        return line.partition(": ")[2] or line or "llama.cpp gave no reason"

    @property
    def context_address(self) -> int:
        """Address of the `struct llama_context`."""
        return _address(self._context)

    @property
    def mtmd_address(self) -> int:
        """Address of the `struct mtmd_context`, 0 when the model knows text alone."""
        return _address(self._mtmd) if self._mtmd else 0

    @property
    def _architecture(self) -> str:
        name: Any = ctypes.create_string_buffer(64)
        llama.llama_model_meta_val_str(self._model, b"general.architecture", name, len(name))
        return name.value.decode("utf-8", "replace")

    @property
    def n_ctx_train(self) -> int:
        """Positions the model was trained for."""
        return llama.llama_model_n_ctx_train(self._model)

    def costs(self, options: EngineOptions) -> Costs:
        """What attention and moving cost: as calibrated on this machine, else estimated from the shape."""
        kept = load_costs(options.costs_file, self.cost_key(options)) if options.costs_file else None
        kernel = kernel_of(options.cache_type, flash_attention=self._is_flash(options), on_gpu=self.caches_on_gpu)
        layers, heads = llama.llama_model_n_layer(self._model), llama.llama_model_n_head(self._model)
        queries = layers * llama.llama_model_n_embd(self._model)
        return kept or scaled(kernel, queries, queries * llama.llama_model_n_head_kv(self._model) // max(heads, 1))

    def cost_key(self, options: EngineOptions) -> str:
        """What a calibration of this model under these options is kept under."""
        return cost_key(self._file, options.cache_type, self._is_flash(options), self.threads)

    def _is_flash(self, options: EngineOptions) -> bool:
        return self.flash_attention(options) != "off"

    def bytes_per_cell(self, cache_type: str) -> int:
        """Estimate of a cell's bytes over all layers, before there is a context (all heads are taken as alike)."""
        head_dim = llama.llama_model_n_embd(self._model) // max(llama.llama_model_n_head(self._model), 1)
        values = 2 * llama.llama_model_n_layer(self._model) * llama.llama_model_n_head_kv(self._model) * head_dim
        return max(1, int(values * BYTES_PER_VALUE[cache_type]))

    def scratch_per_cell(self, options: EngineOptions) -> int:
        """Bytes of scratch of a cell: attention's mask and, without flash attention, all heads' scores."""
        if self.flash_attention(options) == "off":
            return self._at_once * 4 * (llama.llama_model_n_head(self._model) + 1)
        return self._at_once * 2

    @property
    def _at_once(self) -> int:
        """Tokens that go through the model at once: a picture that it must see as a whole among them."""
        return max(UBATCH, lib.ot_largest_whole_picture(ffi.cast("void *", self.mtmd_address)))

    @property
    def n_embd(self) -> int:
        """Floats in a row of embeddings."""
        return llama.llama_model_n_embd_inp(self._model)

    @property
    def n_vocab(self) -> int:
        """Size of the vocabulary."""
        return llama.llama_vocab_n_tokens(self._vocab)

    @property
    def _vocab(self) -> Any:
        if self._model is None:
            raise RuntimeFailure("the model is closed")
        return llama.llama_model_get_vocab(self._model)

    def tokenize(self, words: str, *, special: bool) -> list[int]:
        """Tokens of `words`. `special`: names such as <|im_end|> are tokens; else they stay text, with every GGUF."""
        if llama.llama_vocab_type(self._vocab) == llama.LLAMA_VOCAB_TYPE_NONE:
            raise ModelError("the model has no tokenizer", "choose a GGUF file that has one")
        if special:
            return self._tokenize(words, special=True)
        return tokenize_typed(words, lambda piece: self._tokenize(piece, special=False), self._name_of_mark)

    def _tokenize(self, words: str, *, special: bool) -> list[int]:
        data = words.encode("utf-8", "replace")
        capacity = len(data) + 8
        tokens = (llama.llama_token * capacity)()
        n = llama.llama_tokenize(self._vocab, data, len(data), tokens, capacity, False, special)
        return list(tokens[: max(n, 0)])

    def _name_of_mark(self, token: int) -> str | None:
        """The name of a token that means something beside its text; None for text, runs of spaces among it."""
        kind = llama.llama_vocab_get_attr(self._vocab, token)
        name = llama.llama_vocab_get_text(self._vocab, token).decode("utf-8", "replace").replace(SPM_SPACE, " ")
        is_mark = (
            token in self._reserved
            or bool(kind & llama.LLAMA_TOKEN_ATTR_CONTROL)
            or llama.llama_vocab_is_eog(self._vocab, token)
            or _MARK.fullmatch(name) is not None
            or (bool(kind & llama.LLAMA_TOKEN_ATTR_USER_DEFINED) and len(name) > 1 and not name.isspace())
        )
        return name if is_mark else None

    def close(self) -> None:
        """Free everything; harmless when called twice."""
        if self._mtmd:
            mtmd.mtmd_free(self._mtmd)
        for context in (self._context, *self._others):
            if context:
                llama.llama_free(context)
        if self._model:
            llama.llama_model_free(self._model)
        self._mtmd = self._context = self._model = None
        self._others = []


def _address(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


class _Progress:
    """Carries an exception of the caller's progress function (a Ctrl-C, say) through llama.cpp, which ends the load."""

    def __init__(self, progress: Callable[[float], None] | None) -> None:
        self._progress = progress
        self._error: BaseException | None = None
        self.callback = llama.llama_progress_callback(self._advance)

    def _advance(self, done: float, _: object) -> bool:
        try:
            if self._progress is not None:
                self._progress(done)
        except BaseException as error:
            self._error = error
            return False
        return True

    def reraise(self) -> None:
        if self._error is not None:
            raise self._error

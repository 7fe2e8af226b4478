"""Language models of today's families: what their files say, and weights of the right names and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from tiny_models.common import HEAD_DIM, N_EMBD, N_FF, N_HEAD, N_HEAD_KV, N_VOCAB, TinyWriter, add_tokenizer, finish


@dataclass(frozen=True)
class Vocabulary:
    """Control tokens by name, which of them ends an answer and which begins a text, and the chat template (jinja2)."""

    names: Sequence[str]
    eos: str
    bos: str = ""
    chat: str = ""


class Decoder(TinyWriter):
    """A language model under way. `key` writes one of its architecture's own fields."""

    def __init__(
        self, path: Path, arch: str, vocabulary: Vocabulary, *, layers: int, n_embd: int = N_EMBD, base: float = 1e6
    ) -> None:
        gguf.GGUFWriter.__init__(self, path, arch)
        self.random = np.random.default_rng(0)
        self.n_vocab, self.n_embd, self.layers = N_VOCAB, n_embd, layers
        self.add_context_length(32768)
        self.add_embedding_length(n_embd)
        self.add_block_count(layers)
        self.add_feed_forward_length(N_FF)
        self.add_head_count(N_HEAD)
        self.add_layer_norm_rms_eps(1e-6)
        self.add_rope_freq_base(base)
        self.add_vocab_size(N_VOCAB)
        self.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
        add_tokenizer(self, vocabulary.names, eos=vocabulary.eos, bos=vocabulary.bos)
        if vocabulary.chat:
            self.add_chat_template(vocabulary.chat)

    def key(self, name: str, value: float | str | list[Any]) -> None:
        """Counts as 32-bit numbers, as converters write them."""
        write_key(self, f"{self.arch}.{name}", value)

    def heads(self, length: int = HEAD_DIM) -> None:
        """What a head holds, where it isn't the width over their number."""
        self.add_key_length(length)
        self.add_value_length(length)

    def attention(
        self,
        layer: int,
        *,
        head_dim: int = HEAD_DIM,
        bias: bool = False,
        norms: bool = False,
        gated: bool = False,
        own_kv: bool = True,
    ) -> None:
        """Grouped heads. `norms`: of each head; `gated`: queries bring a gate; without `own_kv` it reads another's."""
        prefix, scale = f"blk.{layer}.", self.n_embd**-0.5
        rows = {"attn_q": N_HEAD * head_dim * (2 if gated else 1)}
        if own_kv:
            rows |= {"attn_k": N_HEAD_KV * head_dim, "attn_v": N_HEAD_KV * head_dim}
        for name, size in rows.items():
            self.matrix(prefix + name, size, self.n_embd, scale=scale if name == "attn_v" else 2 * scale)
            if bias:
                self.vector(f"{prefix}{name}.bias", size)
        self.matrix(prefix + "attn_output", self.n_embd, N_HEAD * head_dim)
        if norms:
            for name in ("attn_q_norm", "attn_k_norm")[: 2 if own_kv else 1]:
                self.norm(prefix + name, head_dim)

    def feed_forward(self, layer: int) -> None:
        """Gate, up, down."""
        prefix = f"blk.{layer}."
        self.matrix(prefix + "ffn_gate", N_FF, self.n_embd)
        self.matrix(prefix + "ffn_up", N_FF, self.n_embd)
        self.matrix(prefix + "ffn_down", self.n_embd, N_FF)

    def layer_norms(self, layer: int, *names: str) -> None:
        """Norms of the model's width."""
        for name in names:
            self.norm(f"blk.{layer}.{name}", self.n_embd)

    def finish(self) -> None:
        finish(self)


def write_plain(
    path: Path, arch: str, vocabulary: Vocabulary, *, n_embd: int = N_EMBD, layers: int = 3, bias: bool = False
) -> None:
    """The common shape: "llama", "qwen2", "qwen2vl", "qwen3", "qwen3vl"."""
    norms = arch.startswith("qwen3")
    writer = Decoder(path, arch, vocabulary, layers=layers, n_embd=n_embd)
    writer.add_head_count_kv(N_HEAD_KV)
    if norms:
        writer.heads()
    if arch == "llama":
        writer.add_rope_dimension_count(HEAD_DIM)
    if arch == "qwen2vl":
        writer.add_rope_dimension_sections([8, 12, 12, 0])
    if arch == "qwen3vl":
        writer.add_rope_dimension_sections([12, 10, 10, 0])
        writer.key("n_deepstack_layers", 2)
    writer.embeddings(n_embd)
    writer.norm("output_norm", n_embd)
    for layer in range(layers):
        writer.layer_norms(layer, "attn_norm", "ffn_norm")
        writer.attention(layer, bias=bias, norms=norms)
        writer.feed_forward(layer)
    writer.finish()


def write_key(writer: gguf.GGUFWriter, name: str, value: float | str | list[Any]) -> None:
    """One field, by the type of its value; counts as 32-bit numbers, as converters write them."""
    match value:
        case bool():
            writer.add_bool(name, value)
        case int():
            writer.add_uint32(name, value)
        case float():
            writer.add_float32(name, value)
        case str():
            writer.add_string(name, value)
        case _:
            writer.add_array(name, value)

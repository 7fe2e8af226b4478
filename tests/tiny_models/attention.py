"""Decoders of the common shape: rotated keys of grouped heads, a gated feed-forward part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np

from tiny_models.common import HEAD_DIM, N_EMBD, N_FF, N_HEAD, N_HEAD_KV, N_VOCAB, add_tokenizer, finish

HEAD_NORMS = ("qwen3", "qwen3vl", "hunyuan-dense", "hunyuan_vl", "maincoder")
"""Families with a norm of each head's queries and keys."""


def write_attention_model(
    path: Path,
    arch: str,
    *,
    layers: int = 3,
    context: int = 32768,
    names: Sequence[str] = (),
    words: Sequence[str] = (),
    seed: int = 0,
) -> Path:
    """A decoder: `arch` is "qwen2vl" (M-RoPE), "qwen2", "qwen3" or "llama" (plain), "qwen3vl" (M-RoPE, and rows
    of embeddings that hold more for later layers), or "gemma2" (sliding window).

    Or one whose keys don't shift as it describes them: "smollm3" (no rotation in every fourth layer), "baichuan" of 40
    layers (none at all), "hunyuan-dense", "hunyuan_vl", "maincoder" (a norm behind the rotation).

    With either of `names` and `words` it has a tokenizer: bytes, control tokens of
    these names, and plain ones of these words.
    """
    random = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, arch)
    writer.add_context_length(context)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    if arch == "qwen2vl":
        writer.add_rope_dimension_sections([8, 12, 12, 0])
    if arch == "qwen3vl":
        writer.add_rope_dimension_sections([12, 10, 10, 0])
        writer.add_uint32("qwen3vl.n_deepstack_layers", 2)
    if arch == "gemma2":
        writer.add_sliding_window(128)
        writer.add_key_length(HEAD_DIM)
        writer.add_value_length(HEAD_DIM)
    if arch == "llama":
        writer.add_rope_dimension_count(HEAD_DIM)
    if arch == "hunyuan_vl":
        writer.add_rope_dimension_sections([8, 8, 8, 8])
    if arch in HEAD_NORMS:
        writer.add_key_length(HEAD_DIM)
        writer.add_value_length(HEAD_DIM)
    writer.add_vocab_size(N_VOCAB)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    if names or words:
        add_tokenizer(writer, names, words)
    else:
        writer.add_tokenizer_model("none")

    def matrix(name: str, rows: int, columns: int, scale: float) -> None:
        writer.add_tensor(name, (random.standard_normal((rows, columns)) * scale).astype(np.float16))

    def vector(name: str, size: int, mean: float = 0.0, spread: float = 0.05) -> None:
        writer.add_tensor(name, (mean + random.standard_normal(size) * spread).astype(np.float32))

    matrix("token_embd.weight", N_VOCAB, N_EMBD, 1.0)
    vector("output_norm.weight", N_EMBD, 1.0)
    if arch != "gemma2":  # which ties it to the embeddings
        matrix("output.weight", N_VOCAB, N_EMBD, 0.05)
    scale = N_EMBD**-0.5
    for layer in range(layers):
        prefix = f"blk.{layer}."
        vector(prefix + "attn_norm.weight", N_EMBD, 1.0)
        vector(prefix + "ffn_norm.weight", N_EMBD, 1.0)
        if arch == "gemma2":
            vector(prefix + "post_attention_norm.weight", N_EMBD, 1.0)
            vector(prefix + "post_ffw_norm.weight", N_EMBD, 1.0)
        matrix(prefix + "attn_q.weight", N_EMBD, N_EMBD, 2 * scale)
        matrix(prefix + "attn_k.weight", N_HEAD_KV * HEAD_DIM, N_EMBD, 2 * scale)
        matrix(prefix + "attn_v.weight", N_HEAD_KV * HEAD_DIM, N_EMBD, scale)
        matrix(prefix + "attn_output.weight", N_EMBD, N_EMBD, scale)
        if arch in ("qwen2", "qwen2vl"):
            vector(prefix + "attn_q.bias", N_EMBD)
            vector(prefix + "attn_k.bias", N_HEAD_KV * HEAD_DIM)
            vector(prefix + "attn_v.bias", N_HEAD_KV * HEAD_DIM)
        if arch in HEAD_NORMS:
            vector(prefix + "attn_q_norm.weight", HEAD_DIM, 1.0)
            vector(prefix + "attn_k_norm.weight", HEAD_DIM, 1.0)
        matrix(prefix + "ffn_gate.weight", N_FF, N_EMBD, scale)
        matrix(prefix + "ffn_up.weight", N_FF, N_EMBD, scale)
        matrix(prefix + "ffn_down.weight", N_EMBD, N_FF, N_FF**-0.5)
    finish(writer)
    return path

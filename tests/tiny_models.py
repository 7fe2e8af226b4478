"""Tiny random language models as GGUF files: the architectures the runtime must handle or refuse, in milliseconds.

Weights are random but scaled so that logits depend on every cached row; there is no tokenizer, token ids are given.
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

N_VOCAB = 512
N_EMBD = 256
TOKENIZER_PREFIX = "tokenizer."
N_HEAD = 4
N_HEAD_KV = 2
HEAD_DIM = N_EMBD // N_HEAD
N_FF = 384


def write_attention_model(path: Path, arch: str, *, layers: int = 3, context: int = 32768, seed: int = 0) -> Path:
    """A decoder: `arch` is "qwen2vl" (M-RoPE), "qwen2" or "llama" (plain), or "gemma2" (sliding window)."""
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
    if arch == "gemma2":
        writer.add_sliding_window(128)
        writer.add_key_length(HEAD_DIM)
        writer.add_value_length(HEAD_DIM)
    if arch == "llama":
        writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_vocab_size(N_VOCAB)
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
        matrix(prefix + "ffn_gate.weight", N_FF, N_EMBD, scale)
        matrix(prefix + "ffn_up.weight", N_FF, N_EMBD, scale)
        matrix(prefix + "ffn_down.weight", N_EMBD, N_FF, N_FF**-0.5)
    _finish(writer)
    return path


def write_recurrent_model(
    path: Path, *, layers: int = 2, n_embd: int = N_EMBD, tokenizer_of: Path | None = None, seed: int = 0
) -> Path:
    """A Mamba: its memory is a recurrent state, not a KV cache. `tokenizer_of`: a model whose tokenizer it borrows."""
    random = np.random.default_rng(seed)
    inner, state, rank, kernel = 2 * n_embd, 16, 16, 4
    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_context_length(4096)
    writer.add_embedding_length(n_embd)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(layers)
    writer.add_ssm_conv_kernel(kernel)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(rank)
    writer.add_layer_norm_rms_eps(1e-5)
    n_vocab = N_VOCAB
    if tokenizer_of is None:
        writer.add_vocab_size(n_vocab)
        writer.add_tokenizer_model("none")
    else:
        n_vocab = _copy_tokenizer(tokenizer_of, writer)

    def tensor(name: str, *shape: int, scale: float = 0.05, mean: float = 0.0, kind: type = np.float32) -> None:
        writer.add_tensor(name, (mean + random.standard_normal(shape) * scale).astype(kind))

    tensor("token_embd.weight", n_vocab, n_embd, scale=1.0, kind=np.float16)
    tensor("output_norm.weight", n_embd, mean=1.0)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        tensor(prefix + "attn_norm.weight", n_embd, mean=1.0)
        tensor(prefix + "ssm_in.weight", 2 * inner, n_embd, kind=np.float16)
        tensor(prefix + "ssm_conv1d.weight", inner, kernel)
        tensor(prefix + "ssm_conv1d.bias", inner)
        tensor(prefix + "ssm_x.weight", rank + 2 * state, inner, kind=np.float16)
        tensor(prefix + "ssm_dt.weight", inner, rank)
        tensor(prefix + "ssm_dt.bias", inner)
        tensor(prefix + "ssm_a", inner, state, mean=-1.0)
        tensor(prefix + "ssm_d", inner)
        tensor(prefix + "ssm_out.weight", n_embd, inner, kind=np.float16)
    _finish(writer)
    return path


def _copy_tokenizer(source: Path, writer: gguf.GGUFWriter) -> int:
    """Copy every tokenizer field; the size of the vocabulary."""
    fields = gguf.GGUFReader(source).fields
    for name, field in fields.items():
        if name.startswith(TOKENIZER_PREFIX):
            kind = field.types[0]
            sub_type = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub_type)
    return len(fields["tokenizer.ggml.tokens"].data)


def _finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

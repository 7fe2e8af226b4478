"""Decoders of attention layers and layers with a recurrent state: the Qwen3.5 and LFM2 families."""

from __future__ import annotations

from pathlib import Path

import gguf

from tiny_models.common import HEAD_DIM, N_EMBD, N_FF, N_HEAD, N_HEAD_KV, TinyWriter

STATE = 32
GROUPS = 2
RANK = 4
KERNEL = 4


def write_qwen35(path: Path, *, layers: int = 8, seed: int = 0, tokenizer_of: Path | None = None) -> Path:
    """Three gated delta nets, then one layer of attention; M-RoPE on half a head."""
    writer = _writer(path, "qwen35", layers, [N_HEAD_KV] * layers, seed, tokenizer_of)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_rope_dimension_count(HEAD_DIM // 2)
    writer.add_rope_dimension_sections([6, 5, 5, 0])
    writer.add_uint32("qwen35.full_attention_interval", 4)
    inner = RANK * STATE
    sizes = {"conv_kernel": KERNEL, "inner_size": inner, "state_size": STATE, "time_step_rank": RANK}
    for name, value in {**sizes, "group_count": GROUPS}.items():
        writer.add_uint32(f"qwen35.ssm.{name}", value)
    writer.embeddings()
    writer.norm("output_norm", N_EMBD)
    mixed = 2 * GROUPS * STATE + inner
    for layer in range(layers):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", N_EMBD)
        writer.norm(prefix + "post_attention_norm", N_EMBD)
        if layer % 4 == 3:
            _attention(writer, prefix, n_query=2 * N_HEAD)  # each query head with a gate
        else:
            writer.matrix(prefix + "attn_qkv", mixed, N_EMBD)
            writer.matrix(prefix + "attn_gate", inner, N_EMBD)
            writer.vector(prefix + "ssm_conv1d.weight", mixed, KERNEL, spread=0.5)
            writer.vector(prefix + "ssm_dt.bias", RANK)
            writer.vector(prefix + "ssm_a", RANK, mean=-0.5)
            writer.matrix(prefix + "ssm_beta", RANK, N_EMBD)
            writer.matrix(prefix + "ssm_alpha", RANK, N_EMBD)
            writer.norm(prefix + "ssm_norm", STATE)
            writer.matrix(prefix + "ssm_out", N_EMBD, inner)
        _feed_forward(writer, prefix)
    writer.finish()
    return path


def write_lfm2(
    path: Path, *, layers: int = 6, window: int = 0, seed: int = 0, tokenizer_of: Path | None = None
) -> Path:
    """Two short convolutions, then one layer of attention, which may see a `window` alone.

    With a window llama.cpp describes those layers' rotary base as 10,000, whatever the file says; its graph doesn't.
    """
    heads = [N_HEAD_KV if layer % 3 == 2 else 0 for layer in range(layers)]
    writer = _writer(path, "lfm2", layers, heads, seed, tokenizer_of, base=1e4 if window else 1e6)
    writer.add_uint32("lfm2.shortconv.l_cache", 3)
    if window:
        writer.add_sliding_window(window)
    writer.embeddings()
    writer.norm("token_embd_norm", N_EMBD)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", N_EMBD)
        writer.norm(prefix + "ffn_norm", N_EMBD)
        if heads[layer]:
            _attention(writer, prefix, n_query=N_HEAD)
        else:
            writer.vector(prefix + "shortconv.conv.weight", N_EMBD, 3, spread=0.5)
            writer.matrix(prefix + "shortconv.in_proj", 3 * N_EMBD, N_EMBD)
            writer.matrix(prefix + "shortconv.out_proj", N_EMBD, N_EMBD)
        _feed_forward(writer, prefix)
    writer.finish()
    return path


def _writer(
    path: Path, arch: str, layers: int, heads: list[int], seed: int, tokenizer_of: Path | None, *, base: float = 1e6
) -> TinyWriter:
    writer = TinyWriter(path, arch, seed=seed, tokenizer_of=tokenizer_of)
    writer.add_context_length(32768)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(base)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    return writer


def _attention(writer: TinyWriter, prefix: str, *, n_query: int) -> None:
    scale = 2 * N_EMBD**-0.5
    writer.matrix(prefix + "attn_q", n_query * HEAD_DIM, N_EMBD, scale=scale)
    writer.matrix(prefix + "attn_k", N_HEAD_KV * HEAD_DIM, N_EMBD, scale=scale)
    writer.matrix(prefix + "attn_v", N_HEAD_KV * HEAD_DIM, N_EMBD)
    writer.matrix(prefix + "attn_output", N_EMBD, N_HEAD * HEAD_DIM)
    writer.norm(prefix + "attn_q_norm", HEAD_DIM)
    writer.norm(prefix + "attn_k_norm", HEAD_DIM)


def _feed_forward(writer: TinyWriter, prefix: str) -> None:
    writer.matrix(prefix + "ffn_gate", N_FF, N_EMBD)
    writer.matrix(prefix + "ffn_up", N_FF, N_EMBD)
    writer.matrix(prefix + "ffn_down", N_EMBD, N_FF)

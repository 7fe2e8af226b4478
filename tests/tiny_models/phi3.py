"""Phi-3 with longrope: two sets of rotary factors, chosen by the size of the context, and keys that are scaled."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tiny_models.common import HEAD_DIM, N_EMBD, N_FF, N_HEAD, N_HEAD_KV, TinyWriter

ORIGINAL_CONTEXT = 1024
"""Up to here a context takes the short factors."""


def write_phi3(path: Path, *, layers: int = 3, seed: int = 0) -> Path:
    """Scaled as a Phi-3 of 128k positions."""
    writer = TinyWriter(path, "phi3", seed=seed)
    writer.add_context_length(32 * ORIGINAL_CONTEXT)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
    writer.add_rope_scaling_attn_factors(1.19)
    writer.add_rope_scaling_orig_ctx_len(ORIGINAL_CONTEXT)
    writer.embeddings()
    writer.norm("output_norm", N_EMBD)
    writer.add_tensor("rope_factors_long.weight", np.linspace(1, 32, HEAD_DIM // 2).astype(np.float32))
    writer.add_tensor("rope_factors_short.weight", np.linspace(1, 1.5, HEAD_DIM // 2).astype(np.float32))
    for layer in range(layers):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", N_EMBD)
        writer.norm(prefix + "ffn_norm", N_EMBD)
        writer.matrix(prefix + "attn_qkv", N_EMBD + 2 * N_HEAD_KV * HEAD_DIM, N_EMBD)
        writer.matrix(prefix + "attn_output", N_EMBD, N_EMBD)
        writer.matrix(prefix + "ffn_up", 2 * N_FF, N_EMBD)
        writer.matrix(prefix + "ffn_down", N_EMBD, N_FF)
    writer.finish()
    return path

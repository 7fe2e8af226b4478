"""DeepSeek-OCR's language model: its graph rotates halves of heads, its rope type says neighbours."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_EMBD, N_FF, N_HEAD, TinyWriter


def write_deepseek_ocr(path: Path, *, layers: int = 3, seed: int = 0) -> Path:
    """All layers dense."""
    writer = TinyWriter(path, "deepseek2-ocr", seed=seed)
    writer.add_context_length(4096)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_leading_dense_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_expert_feed_forward_length(N_FF)
    writer.add_expert_shared_count(1)
    writer.add_head_count(N_HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.embeddings()
    writer.norm("output_norm", N_EMBD)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", N_EMBD)
        writer.norm(prefix + "ffn_norm", N_EMBD)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.matrix(prefix + name, N_EMBD, N_EMBD)
        writer.matrix(prefix + "ffn_gate", N_FF, N_EMBD)
        writer.matrix(prefix + "ffn_up", N_FF, N_EMBD)
        writer.matrix(prefix + "ffn_down", N_EMBD, N_FF)
    writer.finish()
    return path

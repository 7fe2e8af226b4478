"""DeepSeek-OCR's language model: its graph rotates halves of heads, its rope type says neighbours."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_EMBD, N_FF, N_HEAD, TinyWriter


def write_deepseek_ocr(
    path: Path, *, layers: int = 3, n_embd: int = N_EMBD, tokenizer_of: Path | None = None, seed: int = 0
) -> Path:
    """All layers dense. `tokenizer_of`: a model whose tokenizer it borrows."""
    writer = TinyWriter(path, "deepseek2-ocr", seed=seed, tokenizer_of=tokenizer_of)
    writer.add_context_length(4096)
    writer.add_embedding_length(n_embd)
    writer.add_block_count(layers)
    writer.add_leading_dense_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_expert_feed_forward_length(N_FF)
    writer.add_expert_shared_count(1)
    writer.add_head_count(N_HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.embeddings(n_embd)
    writer.norm("output_norm", n_embd)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", n_embd)
        writer.norm(prefix + "ffn_norm", n_embd)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.matrix(prefix + name, n_embd, n_embd)
        writer.matrix(prefix + "ffn_gate", N_FF, n_embd)
        writer.matrix(prefix + "ffn_up", N_FF, n_embd)
        writer.matrix(prefix + "ffn_down", n_embd, N_FF)
    writer.finish()
    return path

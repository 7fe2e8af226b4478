"""CogVLM's language model: rows of embeddings go through other weights than tokens, in every layer."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_EMBD, N_FF, N_HEAD, TinyWriter


def write_cogvlm(path: Path, *, layers: int = 3, seed: int = 0) -> Path:
    """As many key heads as query heads; rotation over whole heads."""
    writer = TinyWriter(path, "cogvlm", seed=seed)
    writer.add_context_length(4096)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.embeddings()
    writer.norm("output_norm", N_EMBD)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", N_EMBD)
        writer.norm(prefix + "ffn_norm", N_EMBD)
        for attention, ffn in (("attn_", "ffn_"), ("vis_attn_", "vis_")):
            writer.matrix(f"{prefix}{attention}qkv", 3 * N_EMBD, N_EMBD)
            writer.matrix(f"{prefix}{attention}output", N_EMBD, N_EMBD)
            writer.matrix(f"{prefix}{ffn}gate", N_FF, N_EMBD)
            writer.matrix(f"{prefix}{ffn}up", N_FF, N_EMBD)
            writer.matrix(f"{prefix}{ffn}down", N_EMBD, N_FF)
    writer.finish()
    return path

"""StarCoder and GPT-2: positions are learned embeddings, of which there are as many as the window has tokens."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_EMBD, N_FF, N_HEAD, TinyWriter


def write_learned_model(path: Path, arch: str, *, context: int = 256, layers: int = 3, seed: int = 0) -> Path:
    """`arch`: "starcoder" or "gpt2"; `context`: positions that there are."""
    writer = TinyWriter(path, arch, seed=seed)
    writer.add_context_length(context)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_layer_norm_eps(1e-5)
    writer.embeddings()
    writer.matrix("position_embd", context, N_EMBD, scale=1.0)
    writer.norm("output_norm", N_EMBD, bias=True)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", N_EMBD, bias=True)
        writer.norm(prefix + "ffn_norm", N_EMBD, bias=True)
        for name, rows, columns in (
            ("attn_qkv", 3 * N_EMBD, N_EMBD),
            ("attn_output", N_EMBD, N_EMBD),
            ("ffn_up", N_FF, N_EMBD),
            ("ffn_down", N_EMBD, N_FF),
        ):
            writer.matrix(prefix + name, rows, columns)
            writer.vector(f"{prefix}{name}.bias", rows)
    writer.finish()
    return path

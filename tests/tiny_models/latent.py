"""MiniCPM3 and PLM: keys and values come from a latent, and a key ends in its rotary part."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_EMBD, N_FF, N_HEAD, TinyWriter

PLAIN, ROTARY, VALUE = 48, 16, 32  # dimensions of a head
LATENT = 48


def write_latent_model(path: Path, arch: str, *, layers: int = 3, seed: int = 0) -> Path:
    """`arch`: "minicpm3", whose queries come from a latent, too, or "plm"."""
    writer = TinyWriter(path, arch, seed=seed)
    writer.add_context_length(4096)
    writer.add_embedding_length(N_EMBD)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(N_FF)
    writer.add_head_count(N_HEAD)
    writer.add_head_count_kv(N_HEAD)
    writer.add_key_length(PLAIN + ROTARY)
    writer.add_value_length(VALUE)
    writer.add_rope_dimension_count(ROTARY)
    writer.add_kv_lora_rank(LATENT)
    if arch == "minicpm3":
        writer.add_q_lora_rank(LATENT)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.embeddings(tied=arch == "plm")
    writer.norm("output_norm", N_EMBD)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", N_EMBD)
        writer.norm(prefix + "attn_kv_a_norm", LATENT)
        writer.norm(prefix + "ffn_norm", N_EMBD)
        if arch == "minicpm3":
            writer.norm(prefix + "attn_q_a_norm", LATENT)
            writer.matrix(prefix + "attn_q_a", LATENT, N_EMBD)
            writer.matrix(prefix + "attn_q_b", N_HEAD * (PLAIN + ROTARY), LATENT)
            writer.matrix(prefix + "ffn_gate", N_FF, N_EMBD)
        else:
            writer.matrix(prefix + "attn_q", N_HEAD * (PLAIN + ROTARY), N_EMBD)
        writer.matrix(prefix + "attn_kv_a_mqa", LATENT + ROTARY, N_EMBD)
        writer.matrix(prefix + "attn_kv_b", N_HEAD * (PLAIN + VALUE), LATENT)
        writer.matrix(prefix + "attn_output", N_EMBD, N_HEAD * VALUE)
        writer.matrix(prefix + "ffn_up", N_FF, N_EMBD)
        writer.matrix(prefix + "ffn_down", N_EMBD, N_FF)
    writer.finish()
    return path

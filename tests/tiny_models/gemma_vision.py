"""Gemma 3's vision encoder: one size for every picture, whose tokens must see each other."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_EMBD, TinyWriter

PATCH = 14
MERGE = 4
WIDTH, N_FF = 64, 96


def write_gemma3_encoder(path: Path, *, side: int = 224, n_embd: int = N_EMBD, seed: int = 0) -> Path:
    """Pictures of `side` x `side` pixels, a row of `n_embd` for every 4 x 4 patches of 14 pixels a side."""
    writer = TinyWriter(path, "clip", seed=seed)
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "gemma3")
    writer.add_bool("clip.use_gelu", True)
    for name, value in {
        "image_size": side,
        "patch_size": PATCH,
        "embedding_length": WIDTH,
        "feed_forward_length": N_FF,
        "projection_dim": n_embd,
        "block_count": 1,
        "attention.head_count": 2,
        "projector.scale_factor": MERGE,
    }.items():
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
    writer.matrix("v.patch_embd", WIDTH, 3, PATCH, PATCH, scale=(3 * PATCH * PATCH) ** -0.5)
    writer.vector("v.patch_embd.bias", WIDTH)
    writer.vector("v.position_embd.weight", (side // PATCH) ** 2, WIDTH, spread=0.5)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        writer.matrix(f"v.blk.0.{name}", WIDTH, WIDTH)
        writer.vector(f"v.blk.0.{name}.bias", WIDTH)
    for name, rows, columns in (("ffn_up", N_FF, WIDTH), ("ffn_down", WIDTH, N_FF)):
        writer.matrix(f"v.blk.0.{name}", rows, columns)
        writer.vector(f"v.blk.0.{name}.bias", rows)
    for name in ("v.blk.0.ln1", "v.blk.0.ln2", "v.post_ln"):
        writer.norm(name, WIDTH, bias=True)
    writer.matrix("mm.input_projection", WIDTH, n_embd, scale=WIDTH**-0.5)
    writer.norm("mm.soft_emb_norm", WIDTH)
    writer.finish()
    return path

"""Tiny random vision encoders that cut pictures."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tiny_models.common import N_EMBD, finish


def write_cutting_encoder(
    path: Path, *, version: int = 6, side: int = 56, queries: int = 8, n_embd: int = N_EMBD, seed: int = 0
) -> Path:
    """MiniCPM-V's vision encoder: images of about `side` x `side` pixels, each `queries` rows of `n_embd`.

    `version` is libmtmd's number for the model: 6 is MiniCPM-V 4.5, 100045 MiniCPM-o 4.5.
    """
    random = np.random.default_rng(seed)
    width, n_ff, patch, buckets = 64, 96, 14, 70
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "resampler")
    writer.add_int32("clip.minicpmv_version", version)
    writer.add_uint32("clip.minicpmv_query_num", queries)
    writer.add_bool("clip.use_gelu", True)
    _add_vision(writer, side=side, patch=patch, width=width, n_ff=n_ff)

    def matrix(name: str, *shape: int, scale: float, kind: type = np.float16) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * scale).astype(kind))

    def norm(name: str, size: int) -> None:
        writer.add_tensor(name + ".weight", (1 + random.standard_normal(size) * 0.05).astype(np.float32))
        writer.add_tensor(name + ".bias", (random.standard_normal(size) * 0.05).astype(np.float32))

    def linear(name: str, rows: int, columns: int) -> None:
        matrix(name + ".weight", rows, columns, scale=columns**-0.5)
        matrix(name + ".bias", rows, scale=0.05, kind=np.float32)

    matrix("v.patch_embd.weight", width, 3, patch, patch, scale=(3 * patch * patch) ** -0.5)
    matrix("v.patch_embd.bias", width, scale=0.05, kind=np.float32)
    matrix("v.position_embd.weight", buckets * buckets, width, scale=0.5)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        linear(f"v.blk.0.{name}", width, width)
    norm("v.blk.0.ln1", width)
    norm("v.blk.0.ln2", width)
    linear("v.blk.0.ffn_down", n_ff, width)  # named the other way round, as the converter does
    linear("v.blk.0.ffn_up", width, n_ff)
    norm("v.post_ln", width)
    matrix("resampler.pos_embed_k", buckets * buckets, n_embd, scale=0.5)
    matrix("resampler.query", queries, n_embd, scale=1.0, kind=np.float32)
    matrix("resampler.kv.weight", n_embd, width, scale=width**-0.5)
    for name in ("q", "k", "v", "out"):
        linear(f"resampler.attn.{name}", n_embd, n_embd)
    for name in ("q", "kv", "post"):
        norm(f"resampler.ln_{name}", n_embd)
    matrix("resampler.proj.weight", n_embd, n_embd, scale=n_embd**-0.5)
    finish(writer)
    return path


def write_tiling_encoder(path: Path, *, side: int = 56, n_embd: int = N_EMBD, seed: int = 0) -> Path:
    """LLaVA 1.6's vision encoder: pictures are cut into tiles by a table of resolutions."""
    random = np.random.default_rng(seed)
    width, n_ff, patch = 64, 96, 14
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    writer.add_array("clip.vision.image_grid_pinpoints", [side, 2 * side, 2 * side, side, 2 * side, 2 * side])
    _add_vision(writer, side=side, patch=patch, width=width, n_ff=n_ff)

    def matrix(name: str, *shape: int, kind: type = np.float16) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * 0.1).astype(kind))

    matrix("v.patch_embd.weight", width, 3, patch, patch)
    matrix("v.position_embd.weight", (side // patch) ** 2, width)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        matrix(f"v.blk.0.{name}.weight", width, width)
    for name in ("ln1", "ln2"):
        matrix(f"v.blk.0.{name}.weight", width, kind=np.float32)
        matrix(f"v.blk.0.{name}.bias", width, kind=np.float32)
    matrix("v.blk.0.ffn_down.weight", n_ff, width)
    matrix("v.blk.0.ffn_up.weight", width, n_ff)
    for layer, size in ((0, width), (2, n_embd)):
        matrix(f"mm.{layer}.weight", n_embd, size)
        matrix(f"mm.{layer}.bias", n_embd, kind=np.float32)
    finish(writer)
    return path


def _add_vision(writer: gguf.GGUFWriter, *, side: int, patch: int, width: int, n_ff: int) -> None:
    writer.add_uint32("clip.vision.image_size", side)
    writer.add_uint32("clip.vision.patch_size", patch)
    writer.add_uint32("clip.vision.embedding_length", width)
    writer.add_uint32("clip.vision.feed_forward_length", n_ff)
    writer.add_uint32("clip.vision.projection_dim", 0)
    writer.add_uint32("clip.vision.block_count", 1)
    writer.add_uint32("clip.vision.attention.head_count", 2)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-6)
    writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
    writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])

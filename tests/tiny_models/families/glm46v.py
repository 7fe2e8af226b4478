"""GLM-4.6V-Flash: half of each head is rotated, by M-RoPE, and there are norms behind attention and feed-forward."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import HEAD_DIM, N_FF, N_HEAD_KV
from tiny_models.families.base import Family
from tiny_models.families.chat import GLM
from tiny_models.families.decoders import Decoder, Vocabulary
from tiny_models.families.encoders import EncoderFile

NAMES = (
    "[gMASK]",
    "<sop>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|begin_of_image|>",
    "<|end_of_image|>",
    "<think>",
    "</think>",
)
LAYERS, PATCH = 3, 14


def _model(path: Path) -> None:
    writer = Decoder(path, "glm4", Vocabulary(NAMES, "<|user|>", chat=GLM), layers=LAYERS)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.heads()
    writer.add_rope_dimension_count(HEAD_DIM // 2)
    writer.add_rope_dimension_sections([4, 6, 6, 0])
    writer.embeddings()
    writer.norm("output_norm", writer.n_embd)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        writer.layer_norms(layer, "attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm")
        writer.attention(layer)
        writer.matrix(prefix + "ffn_up", 2 * N_FF, writer.n_embd)
        writer.matrix(prefix + "ffn_down", writer.n_embd, N_FF)
    writer.finish()


def _encoders(writer: EncoderFile) -> None:
    writer.vision("glm4v", size=224, patch=PATCH, act="silu", spatial_merge_size=2)
    writer.patches(PATCH, two=True, positions=256)
    writer.blocks("v", fused=True, bias=False, norm_bias=False, gated=True)
    writer.norm("v.norm_embd", writer.width)
    writer.norm("v.post_ln", writer.width)
    writer.full("mm.patch_merger.weight", writer.n_embd, writer.width, 2, 2, scale=(4 * writer.width) ** -0.5)
    writer.vector("mm.patch_merger.bias", writer.n_embd)
    writer.matrix("mm.model.fc", writer.n_embd, writer.n_embd)
    writer.norm("mm.post_norm", writer.n_embd, bias=True)
    writer.matrix("mm.up", N_FF, writer.n_embd)
    writer.matrix("mm.gate", N_FF, writer.n_embd)
    writer.matrix("mm.down", writer.n_embd, N_FF)


GLM_46V = Family("glm-4.6v", _model, _encoders, image_marks=("<|begin_of_image|>", "<|end_of_image|>"))

"""LFM2-VL: short convolutions between layers that attend; pictures of more than two squares are cut into tiles."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import HEAD_DIM, N_HEAD_KV
from tiny_models.families.base import Family
from tiny_models.families.chat import CHATML, CHATML_NAMES
from tiny_models.families.decoders import Decoder, Vocabulary
from tiny_models.families.encoders import EncoderFile

NAMES = (
    *CHATML_NAMES,
    "<|startoftext|>",
    "<|image_start|>",
    "<|image_end|>",
    "<|img_thumbnail|>",
    *(f"<|img_row_{row}_col_{column}|>" for row in range(1, 4) for column in range(1, 4)),
)
LAYERS, KERNEL, PATCH = 6, 3, 16


def _model(path: Path) -> None:
    vocabulary = Vocabulary(NAMES, "<|im_end|>", "<|startoftext|>", "{{- bos_token -}}" + CHATML)
    heads = [N_HEAD_KV if layer % 3 == 2 else 0 for layer in range(LAYERS)]
    writer = Decoder(path, "lfm2", vocabulary, layers=LAYERS)
    writer.add_head_count_kv(heads)
    writer.key("shortconv.l_cache", KERNEL)
    writer.embeddings()
    writer.norm("token_embd_norm", writer.n_embd)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        writer.layer_norms(layer, "attn_norm", "ffn_norm")
        if heads[layer]:
            writer.attention(layer, head_dim=HEAD_DIM, norms=True)
        else:
            writer.vector(f"{prefix}shortconv.conv.weight", writer.n_embd, KERNEL, spread=0.5)
            writer.matrix(prefix + "shortconv.in_proj", 3 * writer.n_embd, writer.n_embd)
            writer.matrix(prefix + "shortconv.out_proj", writer.n_embd, writer.n_embd)
        writer.feed_forward(layer)
    writer.finish()


def _encoders(writer: EncoderFile) -> None:
    writer.vision("lfm2", size=256, patch=PATCH, projector__scale_factor=2)
    writer.patches(PATCH, positions=256)
    writer.blocks("v")
    writer.norm("v.post_ln", writer.width, bias=True)
    writer.norm("mm.input_norm", 4 * writer.width, bias=True)
    writer.linear("mm.1", writer.n_embd, 4 * writer.width)
    writer.linear("mm.2", writer.n_embd, writer.n_embd)


LFM2_VL = Family("lfm2-vl", _model, _encoders, image_marks=("<|image_start|>", "<|image_end|>"))

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


def write_lfm2(path: Path, *, window: int = 0) -> None:
    """With a `window`, layers that attend see that many tokens of the past.

    llama.cpp describes those layers' rotary base as 10,000 then, whatever the file says; its graph doesn't.
    """
    vocabulary = Vocabulary(NAMES, "<|im_end|>", "<|startoftext|>", "{{- bos_token -}}" + CHATML)
    heads = [N_HEAD_KV if layer % 3 == 2 else 0 for layer in range(LAYERS)]
    writer = Decoder(path, "lfm2", vocabulary, layers=LAYERS, base=1e4 if window else 1e6)
    writer.add_head_count_kv(heads)
    writer.key("shortconv.l_cache", KERNEL)
    if window:
        writer.add_sliding_window(window)
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


LFM2_VL = Family("lfm2-vl", write_lfm2, _encoders, image_marks=("<|image_start|>", "<|image_end|>"))

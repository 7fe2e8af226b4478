"""Gemma 3: five layers of six see a window of the past; a picture's rows all see each other."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_HEAD_KV
from tiny_models.families.base import Family
from tiny_models.families.chat import GEMMA
from tiny_models.families.decoders import Decoder, Vocabulary
from tiny_models.families.encoders import EncoderFile

NAMES = ("<bos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>")
LAYERS, WINDOW = 8, 64
SIZE, PATCH, MERGED = 224, 14, 4


def _model(path: Path) -> None:
    writer = Decoder(path, "gemma3", Vocabulary(NAMES, "<end_of_turn>", "<bos>", GEMMA), layers=LAYERS)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.heads()
    writer.add_sliding_window(WINDOW)
    writer.key("rope.freq_base_swa", 10000.0)
    writer.matrix("token_embd", writer.n_vocab, writer.n_embd, scale=writer.n_embd**-0.5)  # scaled by its root
    writer.norm("output_norm", writer.n_embd)
    for layer in range(LAYERS):
        writer.layer_norms(layer, "attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm")
        writer.attention(layer, norms=True)
        writer.feed_forward(layer)
    writer.finish()


def write_gemma3_encoders(writer: EncoderFile, *, side: int = SIZE) -> None:
    """Pictures of `side` x `side` pixels, a row for every 4 x 4 patches of 14 pixels a side."""
    writer.vision("gemma3", size=side, patch=PATCH, projector__scale_factor=MERGED)
    writer.patches(PATCH, positions=(side // PATCH) ** 2)
    writer.blocks("v")
    writer.norm("v.post_ln", writer.width, bias=True)
    writer.matrix("mm.input_projection", writer.width, writer.n_embd, scale=writer.width**-0.5)
    writer.norm("mm.soft_emb_norm", writer.width)


GEMMA3 = Family("gemma3", _model, write_gemma3_encoders, image_marks=("<start_of_image>", "<end_of_image>"))

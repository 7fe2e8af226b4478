"""Pixtral: pictures of any ratio whose rows each end in a row of their own."""

from __future__ import annotations

from functools import partial

from tiny_models.families.base import Family
from tiny_models.families.chat import MISTRAL
from tiny_models.families.decoders import Vocabulary, write_plain
from tiny_models.families.encoders import EncoderFile

NAMES = ("<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[IMG_END]")
PATCH = 14


def _encoders(writer: EncoderFile) -> None:
    writer.vision("pixtral", size=224, patch=PATCH, act="silu", spatial_merge_size=2)
    writer.patches(PATCH, bias=False)
    writer.blocks("v", bias=False, norm_bias=False, gated=True)
    writer.norm("v.pre_ln", writer.width)
    writer.linear("mm.1", writer.n_embd, writer.width, bias=False)
    writer.linear("mm.2", writer.n_embd, writer.n_embd, bias=False)
    writer.norm("mm.input_norm", writer.width)
    writer.matrix("mm.patch_merger", writer.width, 4 * writer.width)
    writer.vector("v.token_embd.img_break", writer.n_embd, spread=1.0)


PIXTRAL = Family(
    "pixtral",
    partial(write_plain, arch="llama", vocabulary=Vocabulary(NAMES, "</s>", "<s>", MISTRAL)),
    _encoders,
    image_marks=("", "[IMG_END]"),
)

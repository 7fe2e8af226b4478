"""InternVL3: pictures larger than its square are cut into tiles."""

from __future__ import annotations

from functools import partial

from tiny_models.families.base import Family
from tiny_models.families.chat import CHATML, CHATML_NAMES
from tiny_models.families.decoders import Vocabulary, write_plain
from tiny_models.families.encoders import EncoderFile

NAMES = (*CHATML_NAMES, "<img>", "</img>")
SIZE, PATCH = 112, 14


def _encoders(writer: EncoderFile) -> None:
    writer.vision("internvl", size=SIZE, patch=PATCH, projector__scale_factor=2)
    writer.patches(PATCH, positions=(SIZE // PATCH) ** 2 + 1)
    writer.vector("v.class_embd", 1, writer.width, spread=0.5)
    writer.blocks("v")
    for layer in range(2):
        for name in ("ls1", "ls2"):
            writer.norm(f"v.blk.{layer}.{name}", writer.width)
    writer.norm("mm.model.mlp.0", 4 * writer.width, bias=True)
    writer.linear("mm.model.mlp.1", writer.n_embd, 4 * writer.width)
    writer.linear("mm.model.mlp.3", writer.n_embd, writer.n_embd)


INTERNVL3 = Family(
    "internvl3",
    partial(write_plain, arch="qwen2", vocabulary=Vocabulary(NAMES, "<|im_end|>", chat=CHATML), bias=True),
    _encoders,
    image_marks=("<img>", "</img>"),
)

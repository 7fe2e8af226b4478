"""SmolVLM2: every picture is cut into tiles, an overview follows."""

from __future__ import annotations

from functools import partial

from tiny_models.families.base import Family
from tiny_models.families.chat import CHATML_NAMES, SMOL
from tiny_models.families.decoders import Vocabulary, write_plain
from tiny_models.families.encoders import EncoderFile

TILES = 4
NAMES = (
    *CHATML_NAMES,
    "<end_of_utterance>",
    "<fake_token_around_image>",
    "<global-img>",
    *(f"<row_{row}_col_{column}>" for row in range(1, TILES + 1) for column in range(1, TILES + 1)),
)
SIZE, PATCH = 128, 16


def _encoders(writer: EncoderFile) -> None:
    writer.vision("idefics3", size=SIZE, patch=PATCH, projector__scale_factor=2, preproc_image_size=TILES * SIZE)
    writer.patches(PATCH, positions=(SIZE // PATCH) ** 2)
    writer.blocks("v")
    writer.norm("v.post_ln", writer.width, bias=True)
    writer.matrix("mm.model.fc", writer.n_embd, 4 * writer.width)


SMOLVLM2 = Family(
    "smolvlm2",
    partial(write_plain, arch="llama", vocabulary=Vocabulary(NAMES, "<end_of_utterance>", chat=SMOL)),
    _encoders,
    image_marks=("<fake_token_around_image><global-img>", "<fake_token_around_image>"),
)

"""Qwen2.5-Omni: M-RoPE, eyes with windows, Whisper's ears."""

from __future__ import annotations

from functools import partial

from tiny_models.families.base import Family
from tiny_models.families.chat import CHATML, CHATML_NAMES
from tiny_models.families.decoders import Vocabulary, write_plain
from tiny_models.families.encoders import MEL_BANDS, EncoderFile, qwen25_vision

NAMES = (*CHATML_NAMES, "<|vision_bos|>", "<|vision_eos|>", "<|audio_bos|>", "<|audio_eos|>")


def _encoders(writer: EncoderFile) -> None:
    writer.key("projector_type", "qwen2.5o")
    writer.begin("audio", "qwen2a", both=True, num_mel_bins=MEL_BANDS)
    qwen25_vision(writer, both=True)
    writer.whisper()
    writer.linear("mm.a.fc", writer.n_embd, writer.width)


QWEN25_OMNI = Family(
    "qwen2.5-omni",
    partial(write_plain, arch="qwen2vl", vocabulary=Vocabulary(NAMES, "<|im_end|>", chat=CHATML), bias=True),
    _encoders,
    image_marks=("<|vision_bos|>", "<|vision_eos|>"),
    sound_marks=("<|audio_bos|>", "<|audio_eos|>"),
    hears=True,
)

"""Qwen2.5-VL: M-RoPE, eyes with windows in every other layer."""

from __future__ import annotations

from functools import partial

from tiny_models.families.base import Family
from tiny_models.families.chat import CHATML, CHATML_NAMES
from tiny_models.families.decoders import Vocabulary, write_plain
from tiny_models.families.encoders import qwen25_vision

NAMES = (*CHATML_NAMES, "<|vision_start|>", "<|vision_end|>")

QWEN25_VL = Family(
    "qwen2.5-vl",
    partial(write_plain, arch="qwen2vl", vocabulary=Vocabulary(NAMES, "<|im_end|>", chat=CHATML), bias=True),
    qwen25_vision,
    image_marks=("<|vision_start|>", "<|vision_end|>"),
)

"""Qwen3-VL: interleaved M-RoPE, and rows of pictures that go into the first layers once more (deepstack)."""

from __future__ import annotations

from functools import partial

from tiny_models.families.base import Family
from tiny_models.families.chat import CHATML_NAMES, THINKING_CHATML
from tiny_models.families.decoders import Vocabulary, write_plain
from tiny_models.families.encoders import qwen3_vision

NAMES = (*CHATML_NAMES, "<|vision_start|>", "<|vision_end|>", "<think>", "</think>")

QWEN3_VL = Family(
    "qwen3-vl",
    partial(write_plain, arch="qwen3vl", vocabulary=Vocabulary(NAMES, "<|im_end|>", chat=THINKING_CHATML), layers=4),
    partial(qwen3_vision, deepstack=2),
    image_marks=("<|vision_start|>", "<|vision_end|>"),
)

"""Qwen3-Omni: Qwen3-VL with experts and without deepstack, and ears of three convolutions over time and pitch."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_FF, N_HEAD_KV
from tiny_models.families.base import Family
from tiny_models.families.chat import CHATML, CHATML_NAMES
from tiny_models.families.decoders import Decoder, Vocabulary
from tiny_models.families.encoders import MEL_BANDS, POSITIONS, EncoderFile, qwen3_vision

NAMES = (*CHATML_NAMES, "<|vision_start|>", "<|vision_end|>", "<|audio_start|>", "<|audio_end|>")
LAYERS, EXPERTS, CHANNELS = 3, 4, 8
BANDS_LEFT = MEL_BANDS // 8  # three convolutions halve them


def _model(path: Path) -> None:
    writer = Decoder(path, "qwen3vlmoe", Vocabulary(NAMES, "<|im_end|>", chat=CHATML), layers=LAYERS)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.heads()
    writer.add_rope_dimension_sections([12, 10, 10, 0])
    writer.key("n_deepstack_layers", 0)  # as the converter writes it
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(2)
    writer.add_expert_feed_forward_length(N_FF)
    writer.embeddings()
    writer.norm("output_norm", writer.n_embd)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        writer.layer_norms(layer, "attn_norm", "ffn_norm")
        writer.attention(layer, norms=True)
        writer.vector(prefix + "ffn_gate_inp.weight", EXPERTS, writer.n_embd)
        writer.matrix(prefix + "ffn_gate_exps", EXPERTS, N_FF, writer.n_embd)
        writer.matrix(prefix + "ffn_up_exps", EXPERTS, N_FF, writer.n_embd)
        writer.matrix(prefix + "ffn_down_exps", EXPERTS, writer.n_embd, N_FF)
    writer.finish()


def _encoders(writer: EncoderFile) -> None:
    qwen3_vision(writer, both=True)
    writer.begin("audio", "qwen3a", both=True, num_mel_bins=MEL_BANDS)
    for index, channels in ((1, 1), (2, CHANNELS), (3, CHANNELS)):
        writer.full(f"a.conv2d.{index}.weight", CHANNELS, channels, 3, 3, scale=(9 * channels) ** -0.5)
        writer.vector(f"a.conv2d.{index}.bias", CHANNELS)
    writer.matrix("a.conv_out", writer.width, CHANNELS * BANDS_LEFT)
    writer.vector("a.position_embd.weight", POSITIONS, writer.width, spread=0.5)
    writer.blocks("a")
    writer.norm("a.post_ln", writer.width, bias=True)
    writer.linear("mm.a.mlp.1", writer.width, writer.width)
    writer.linear("mm.a.mlp.2", writer.n_embd, writer.width)


QWEN3_OMNI = Family(
    "qwen3-omni",
    _model,
    _encoders,
    image_marks=("<|vision_start|>", "<|vision_end|>"),
    sound_marks=("<|audio_start|>", "<|audio_end|>"),
    hears=True,
)

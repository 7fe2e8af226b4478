"""Gemma 4: windows in three layers of four, larger heads in the fourth, keys that layers share, inputs of each layer.

libmtmd tells the small ones, which attend to pictures causally, by their width: 1536 is E2B's.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from tiny_models.common import HEAD_DIM, N_EMBD, N_HEAD_KV
from tiny_models.families.base import Family
from tiny_models.families.chat import GEMMA_4
from tiny_models.families.decoders import Decoder, Vocabulary
from tiny_models.families.encoders import MEL_BANDS, N_FF, EncoderFile

NAMES = ("<bos>", "<|turn>", "<turn|>", "<|image>", "<image|>", "<|audio>", "<audio|>")
LAYERS, SHARED, WINDOW, PER_LAYER = 8, 4, 64, 32
PATCH, KERNEL, CHANNELS = 16, 5, (8, 4)
E2B_WIDTH = 1536


def _model(path: Path, n_embd: int) -> None:
    windowed = [layer % 4 < 3 for layer in range(LAYERS)]
    vocabulary = Vocabulary(NAMES, "<turn|>", "<bos>", GEMMA_4)
    writer = Decoder(path, "gemma4", vocabulary, layers=LAYERS, n_embd=n_embd)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.heads(2 * HEAD_DIM)
    writer.add_sliding_window(WINDOW)
    writer.key("attention.sliding_window_pattern", windowed)
    writer.key("attention.shared_kv_layers", SHARED)  # the last layer with keys of its own is a full one, as in E2B
    writer.key("attention.key_length_swa", HEAD_DIM)
    writer.key("attention.value_length_swa", HEAD_DIM)
    writer.key("rope.freq_base_swa", 10000.0)
    writer.key("rope.dimension_count_swa", HEAD_DIM)
    writer.add_rope_dimension_count(2 * HEAD_DIM)
    writer.key("embedding_length_per_layer_input", PER_LAYER)
    writer.key("final_logit_softcapping", 30.0)
    writer.matrix("token_embd", writer.n_vocab, n_embd, scale=n_embd**-0.5)  # scaled by its root
    writer.norm("output_norm", n_embd)
    writer.matrix("per_layer_token_embd", writer.n_vocab, PER_LAYER * LAYERS, scale=0.2)
    writer.matrix("per_layer_model_proj", PER_LAYER * LAYERS, n_embd)
    writer.norm("per_layer_proj_norm", PER_LAYER)
    turning = HEAD_DIM // 4  # of the full layers' pairs; the others stand still
    writer.add_tensor("rope_freqs.weight", np.array([1] * turning + [1e30] * (HEAD_DIM - turning), np.float32))
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        writer.layer_norms(layer, "attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm", "post_norm")
        head_dim = HEAD_DIM if windowed[layer] else 2 * HEAD_DIM
        writer.attention(layer, head_dim=head_dim, norms=True, own_kv=layer < LAYERS - SHARED)
        writer.feed_forward(layer)
        writer.matrix(prefix + "inp_gate", PER_LAYER, n_embd)
        writer.matrix(prefix + "proj", n_embd, PER_LAYER)
        writer.norm(prefix + "layer_output_scale", 1)
    writer.finish()


def _encoders(writer: EncoderFile) -> None:
    writer.vision("gemma4v", size=224, patch=PATCH, both=True, projector__scale_factor=3)
    writer.patches(PATCH, bias=False)
    writer.vector("v.position_embd.weight", 2, 128, writer.width, spread=0.5)
    writer.blocks("v", bias=False, norm_bias=False, gated=True)
    head_dim = writer.width // 2
    for layer in range(2):
        for name, size in (
            ("attn_q_norm", head_dim),
            ("attn_k_norm", head_dim),
            ("attn_post_norm", writer.width),
            ("ffn_post_norm", writer.width),
        ):
            writer.norm(f"v.blk.{layer}.{name}", size)
    writer.matrix("mm.input_projection", writer.n_embd, writer.width)
    _ears(writer, head_dim)


def _ears(writer: EncoderFile, head_dim: int) -> None:
    width = writer.width
    writer.begin("audio", "gemma4a", both=True, num_mel_bins=MEL_BANDS)
    for index, (out, into) in enumerate(((CHANNELS[0], 1), (CHANNELS[1], CHANNELS[0]))):
        writer.full(f"a.conv1d.{index}.weight", out, into, 3, 3, scale=(9 * into) ** -0.5)
        writer.norm(f"a.conv1d.{index}.norm", out)
    writer.matrix("a.input_projection", width, CHANNELS[1] * MEL_BANDS // 4)
    for layer in range(2):
        block = f"a.blk.{layer}."
        for name in ("ffn_norm", "ffn_norm_1", "ln1", "ln2", "conv_norm", "norm_conv"):
            writer.norm(block + name, width)
        for name in ("attn_q", "attn_k", "attn_v", "attn_out", "attn_k_rel", "conv_pw2"):
            writer.matrix(block + name, width, width)
        writer.norm(block + "per_dim_scale", head_dim)
        for suffix in ("", "_1"):
            writer.matrix(f"{block}ffn_up{suffix}", N_FF, width)
            writer.matrix(f"{block}ffn_down{suffix}", width, N_FF)
        writer.matrix(block + "conv_pw1", 2 * width, width)
        writer.vector(f"{block}conv_dw.weight", width, KERNEL, spread=KERNEL**-0.5)
    writer.matrix("mm.a.input_projection", writer.n_embd, width)


def _gemma4(name: str, n_embd: int) -> Family:
    return Family(
        name,
        partial(_model, n_embd=n_embd),
        _encoders,
        image_marks=("<|image>", "<image|>"),
        sound_marks=("<|audio>", "<audio|>"),
        hears=True,
        n_embd=n_embd,
    )


GEMMA4 = _gemma4("gemma4", N_EMBD)
GEMMA4_E2B = _gemma4("gemma4-e2b", E2B_WIDTH)

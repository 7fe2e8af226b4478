"""Qwen3.5: three layers of four have a recurrent state (gated delta net), the fourth attends."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import HEAD_DIM, N_HEAD_KV
from tiny_models.families.base import Family
from tiny_models.families.chat import THINKING_CHATML
from tiny_models.families.decoders import Decoder, Vocabulary
from tiny_models.families.encoders import qwen3_vision
from tiny_models.families.qwen3_vl import NAMES

LAYERS, INTERVAL = 8, 4
STATE, GROUPS, HEADS, KERNEL = 32, 2, 4, 4


def _model(path: Path) -> None:
    vocabulary = Vocabulary(NAMES, "<|im_end|>", chat=THINKING_CHATML)
    writer = Decoder(path, "qwen35", vocabulary, layers=LAYERS)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.heads()
    writer.add_rope_dimension_count(HEAD_DIM // 2)
    writer.add_rope_dimension_sections([6, 5, 5, 0])
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(HEADS * STATE)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(HEADS)
    writer.add_ssm_group_count(GROUPS)
    writer.key("full_attention_interval", INTERVAL)
    writer.embeddings()
    writer.norm("output_norm", writer.n_embd)
    for layer in range(LAYERS):
        writer.layer_norms(layer, "attn_norm", "post_attention_norm")
        if (layer + 1) % INTERVAL == 0:
            writer.attention(layer, norms=True, gated=True)
        else:
            _delta_net(writer, f"blk.{layer}.")
        writer.feed_forward(layer)
    writer.finish()


def _delta_net(writer: Decoder, prefix: str) -> None:
    rows = 2 * GROUPS * STATE + HEADS * STATE
    writer.matrix(prefix + "attn_qkv", rows, writer.n_embd)
    writer.matrix(prefix + "attn_gate", HEADS * STATE, writer.n_embd)
    writer.vector(f"{prefix}ssm_conv1d.weight", rows, KERNEL, spread=0.5)
    writer.vector(f"{prefix}ssm_dt.bias", HEADS)
    writer.vector(f"{prefix}ssm_a", HEADS, mean=-0.5)
    writer.matrix(prefix + "ssm_beta", HEADS, writer.n_embd)
    writer.matrix(prefix + "ssm_alpha", HEADS, writer.n_embd)
    writer.norm(prefix + "ssm_norm", STATE)
    writer.matrix(prefix + "ssm_out", writer.n_embd, HEADS * STATE)


QWEN35 = Family("qwen3.5", _model, qwen3_vision, image_marks=("<|vision_start|>", "<|vision_end|>"))

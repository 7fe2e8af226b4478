"""Whisper-like audio encoders with the projectors of several families."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import N_EMBD, TinyWriter

WIDTH = 80  # no power of 2, as no large Whisper's is: libmtmd's rounding of rows comes out as theirs
N_FF = 96
STACKS = {"qwen2a": 1, "voxtral": 4, "ultravox": 8, "glma": 4, "meralion": 15}
AUDIO_PROJECTORS = tuple(STACKS)


def write_audio_encoder(path: Path, projector: str, *, seed: int = 0) -> Path:
    """`projector`: one of AUDIO_PROJECTORS, into rows of N_EMBD."""
    writer = TinyWriter(path, "clip", seed=seed)
    writer.add_bool("clip.has_audio_encoder", True)
    writer.add_string("clip.projector_type", projector)
    writer.add_bool("clip.use_gelu", True)
    for name, value in (
        ("num_mel_bins", 128),
        ("embedding_length", WIDTH),
        ("feed_forward_length", N_FF),
        ("projection_dim", N_EMBD),
        ("block_count", 1),
        ("attention.head_count", 2),
        ("projector.stack_factor", STACKS[projector]),
    ):
        writer.add_uint32(f"clip.audio.{name}", value)
    writer.add_float32("clip.audio.attention.layer_norm_epsilon", 1e-6)
    for index, bands in ((1, 128), (2, WIDTH)):
        writer.matrix(f"a.conv1d.{index}", WIDTH, bands, 3, scale=(3 * bands) ** -0.5)
        writer.vector(f"a.conv1d.{index}.bias", WIDTH, 1)
    writer.vector("a.position_embd.weight", 1500, WIDTH, spread=0.5)
    writer.norm("a.post_ln", WIDTH, bias=True)
    block = "a.blk.0."
    for name, rows, columns in (
        ("attn_q", WIDTH, WIDTH),
        ("attn_k", WIDTH, WIDTH),
        ("attn_v", WIDTH, WIDTH),
        ("attn_out", WIDTH, WIDTH),
        ("ffn_up", N_FF, WIDTH),
        ("ffn_down", WIDTH, N_FF),
    ):
        writer.matrix(block + name, rows, columns)
        if name != "attn_k":
            writer.vector(f"{block}{name}.bias", rows)
    writer.norm(block + "ln1", WIDTH, bias=True)
    writer.norm(block + "ln2", WIDTH, bias=True)
    _add_projector(writer, projector)
    writer.finish()
    return path


def _add_projector(writer: TinyWriter, projector: str) -> None:
    stacked = WIDTH * STACKS[projector]

    def layer(index: int, rows: int, columns: int, *, bias: bool) -> None:
        writer.matrix(f"mm.a.mlp.{index}", rows, columns)
        if bias:
            writer.vector(f"mm.a.mlp.{index}.bias", rows)

    match projector:
        case "qwen2a":
            writer.matrix("mm.a.fc", N_EMBD, WIDTH)
            writer.vector("mm.a.fc.bias", N_EMBD)
        case "voxtral":
            layer(1, N_EMBD, stacked, bias=False)
            layer(2, N_EMBD, N_EMBD, bias=False)
        case "ultravox":
            writer.norm("mm.a.norm_pre", stacked)
            layer(1, 2 * N_FF, stacked, bias=False)
            writer.norm("mm.a.norm_mid", N_FF)
            layer(2, N_EMBD, N_FF, bias=False)
        case "glma":
            writer.norm("mm.a.norm_pre", WIDTH, bias=True)
            layer(1, N_FF, stacked, bias=True)
            layer(2, N_EMBD, N_FF, bias=True)
            writer.vector("v.boi", 1, N_EMBD, spread=1.0)
            writer.vector("v.eoi", 1, N_EMBD, spread=1.0)
        case "meralion":
            writer.norm("mm.a.norm_pre", stacked, bias=True)
            layer(0, N_FF, stacked, bias=True)
            for index in (1, 2):
                layer(index, N_FF, N_FF, bias=True)
            layer(3, N_EMBD, N_FF, bias=True)

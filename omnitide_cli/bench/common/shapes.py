"""Language models with the exact shapes of real ones and random weights, made on this machine.

What a decode costs depends on shapes and types alone, and real weights are many gigabytes to fetch. The matrices are
quantised as in the GGUFs that people run: Q4_K, with Q6_K where llama.cpp's Q4_K_M has it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import UsageError

Q4_K_BYTES, Q6_K_BYTES = 144, 210  # of a block of 256 weights
BLOCK = 256
RECIPE = 2  # of the random weights; part of a file's name


@dataclass(frozen=True, slots=True)
class Shape:
    """A language model's sizes. sections: M-RoPE's halves of a head for t, y, x; None: plain rotary positions."""

    arch: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    feed_forward: int
    vocabulary: int
    context: int
    sections: tuple[int, ...] | None = None
    unit: tuple[int, int, int] = (256, 25, 4)  # image, audio and boundary tokens of a second

    @property
    def unit_tokens(self) -> int:
        """Tokens of one audiovisual second."""
        return sum(self.unit)


SHAPES = {
    "tiny": Shape("qwen2vl", 3, 256, 4, 2, 64, 512, 1024, 32768, (8, 12, 12, 0), (16, 25, 4)),
    "tiny-plain": Shape("qwen3", 3, 256, 4, 2, 64, 512, 1024, 32768, None, (16, 25, 4)),
    "qwen2.5-omni-3b": Shape("qwen2vl", 36, 2048, 16, 2, 128, 11008, 151936, 32768, (16, 24, 24, 0)),
    "qwen2.5-omni-7b": Shape("qwen2vl", 28, 3584, 28, 4, 128, 18944, 152064, 32768, (16, 24, 24, 0)),
    "minicpm-o-4.5": Shape("qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, None, (256, 25, 6)),
}
"""Sizes from the models' published configurations (config.json of Qwen2.5-Omni's thinker, of Qwen3-8B)."""


def shape_file(name: str, layers: int | None, folder: Path, say: Callable[[str], None]) -> Path:
    """The GGUF of a shape, made at the first call and kept in `folder`. `layers`: a shallower one.

    Raises UsageError for an unknown name, or without the package gguf.
    """
    shape = find_shape(name)
    depth = layers or shape.layers
    path = folder / f"{name}-{depth}-r{RECIPE}.gguf"
    if not path.exists():
        say(f"making {path.name}: random weights of this shape")
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.part")
        try:
            write_shape(partial, shape, depth)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    return path


def find_shape(name: str) -> Shape:
    """Raises UsageError for an unknown name."""
    try:
        return SHAPES[name]
    except KeyError as error:
        raise UsageError(f"--shape {name}: there is no such shape", f"choose from {', '.join(SHAPES)}") from error


def write_shape(path: Path, shape: Shape, layers: int, seed: int = 0) -> None:
    """Write the GGUF. Raises UsageError without the package gguf."""
    try:
        import gguf
    except ImportError as error:
        raise UsageError("--shape needs the package gguf", "pip install gguf, or uv sync --extra bench") from error
    writer = gguf.GGUFWriter(path, shape.arch)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(1e6)
    if shape.sections:
        writer.add_rope_dimension_sections(shape.sections)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_tokenizer_model("none")
    _add_weights(writer, shape, layers, np.random.default_rng(seed))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_weights(writer: Any, shape: Shape, layers: int, random: np.random.Generator) -> None:
    import gguf

    def matrix(name: str, rows: int, columns: int, *, fine: bool = False) -> None:
        kind = gguf.GGMLQuantizationType.Q6_K if fine else gguf.GGMLQuantizationType.Q4_K
        writer.add_tensor(name, _blocks(random, rows, columns, fine), raw_dtype=kind)

    def vector(name: str, size: int, mean: float = 0.0) -> None:
        writer.add_tensor(name, (mean + random.standard_normal(size) * 0.02).astype(np.float32))

    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    matrix("token_embd.weight", shape.vocabulary, shape.hidden)
    vector("output_norm.weight", shape.hidden, 1.0)
    matrix("output.weight", shape.vocabulary, shape.hidden, fine=True)
    for layer in range(layers):
        prefix = f"blk.{layer}."
        # Q4_K_M keeps values and the way down finer in the first and last eighth and in every third layer between.
        fine = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
        vector(prefix + "attn_norm.weight", shape.hidden, 1.0)
        vector(prefix + "ffn_norm.weight", shape.hidden, 1.0)
        matrix(prefix + "attn_q.weight", queries, shape.hidden)
        matrix(prefix + "attn_k.weight", keys, shape.hidden)
        matrix(prefix + "attn_v.weight", keys, shape.hidden, fine=fine)
        matrix(prefix + "attn_output.weight", shape.hidden, queries)
        if shape.arch == "qwen3":
            vector(prefix + "attn_q_norm.weight", shape.head_dim, 1.0)
            vector(prefix + "attn_k_norm.weight", shape.head_dim, 1.0)
        else:
            vector(prefix + "attn_q.bias", queries)
            vector(prefix + "attn_k.bias", keys)
            vector(prefix + "attn_v.bias", keys)
        matrix(prefix + "ffn_gate.weight", shape.feed_forward, shape.hidden)
        matrix(prefix + "ffn_up.weight", shape.feed_forward, shape.hidden)
        matrix(prefix + "ffn_down.weight", shape.hidden, shape.feed_forward, fine=fine)


def _blocks(random: np.random.Generator, rows: int, columns: int, fine: bool) -> NDArray[np.uint8]:
    """Random quantised weights [rows, bytes] of mean 0 that keep the variance of what they multiply.

    Attention's scores then are of order 1 as in trained models. Were they tens apart, softmax weights would be
    denormal numbers, which CPUs multiply many times slower, wherever a new token's own key comes before others.
    """
    size = Q6_K_BYTES if fine else Q4_K_BYTES
    blocks = np.frombuffer(random.bytes(rows * columns // BLOCK * size), dtype=np.uint8).reshape(-1, size).copy()
    spread = columns**-0.5
    if fine:  # weight = d x 8-bit scale x (6 bits - 32): the scale is the last half float
        blocks[:, 208:210] = np.array([spread / (74 * 18.5)], np.float16).view(np.uint8)
    else:  # weight = d x 6-bit scale x 4 bits - dmin x 6-bit minimum: scale and minimum alike, dmin = 7.5 d
        blocks[:, 0:2] = np.array([spread / (36.5 * 4.6)], np.float16).view(np.uint8)
        blocks[:, 2:4] = np.array([7.5 * spread / (36.5 * 4.6)], np.float16).view(np.uint8)
        blocks[:, 8:12] = blocks[:, 4:8]
        blocks[:, 12:16] = (blocks[:, 12:16] & 0x0F) * 0x11
    return blocks.reshape(rows, -1)

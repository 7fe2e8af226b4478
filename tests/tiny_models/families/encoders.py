"""Encoders of pictures and sound of today's families: the parts that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tiny_models.common import N_EMBD, TinyWriter
from tiny_models.families.decoders import write_key

N_FF = 96
N_HEAD = 2
MEL_BANDS = 128
POSITIONS = 1500
"""Of a Whisper: 30 seconds."""


class EncoderFile(TinyWriter):
    """An mmproj under way: `n_embd` is the language model's width, `width` the encoder's."""

    def __init__(self, path: Path, *, n_embd: int = N_EMBD, width: int = 64) -> None:
        super().__init__(path, "clip", seed=1)
        self.n_embd, self.width = n_embd, width

    def key(self, name: str, value: float | str | list[Any]) -> None:
        """A field of the encoder."""
        write_key(self, f"clip.{name}", value)

    def linear(self, name: str, rows: int, columns: int, *, bias: bool = True) -> None:
        """A matrix, and its bias."""
        self.matrix(name, rows, columns)
        if bias:
            self.vector(f"{name}.bias", rows)

    def begin(self, kind: str, projector: str, *, both: bool = False, layers: int = 2, **fields: float) -> None:
        """What is said of an encoder of `kind` "vision" or "audio". `both`: the file holds one of each.

        Fields' dots are written as two underscores.
        """
        self.key(f"has_{kind}_encoder", True)
        self.key(f"{kind}.projector_type" if both else "projector_type", projector)
        self.key(f"{kind}.embedding_length", self.width)
        self.key(f"{kind}.feed_forward_length", N_FF)
        self.key(f"{kind}.projection_dim", self.n_embd)
        self.key(f"{kind}.block_count", layers)
        self.key(f"{kind}.attention.head_count", N_HEAD)
        self.key(f"{kind}.attention.layer_norm_epsilon", 1e-6)
        for name, value in fields.items():
            self.key(f"{kind}.{name.replace('__', '.')}", value)

    def vision(
        self,
        projector: str,
        *,
        size: int,
        patch: int,
        both: bool = False,
        layers: int = 2,
        act: str = "gelu",
        **fields: float,
    ) -> None:
        """A vision encoder that was trained on pictures of `size` pixels a side, `act`: "gelu" or "silu"."""
        self.begin("vision", projector, both=both, layers=layers, image_size=size, patch_size=patch, **fields)
        self.key(f"use_{act}", True)
        self.key("vision.image_mean", [0.5, 0.5, 0.5])
        self.key("vision.image_std", [0.5, 0.5, 0.5])

    def patches(self, patch: int, *, positions: int = 0, two: bool = False, bias: bool = True) -> None:
        """From pixels to rows; `two`: of two frames that follow each other; with learned `positions`."""
        for name in ("v.patch_embd.weight", "v.patch_embd.weight.1")[: 2 if two else 1]:
            self.full(name, self.width, 3, patch, patch, scale=(3 * patch * patch) ** -0.5)
        if bias:
            self.vector("v.patch_embd.bias", self.width)
        if positions:
            self.vector("v.position_embd.weight", positions, self.width, spread=0.5)

    def full(self, name: str, *shape: int, scale: float) -> None:
        """f16, under its whole name."""
        self.add_tensor(name, (self.random.standard_normal(shape) * scale).astype("float16"))

    def blocks(
        self,
        kind: str,
        layers: int = 2,
        *,
        fused: bool = False,
        bias: bool = True,
        norm_bias: bool = True,
        key_bias: bool = True,
        gated: bool = False,
    ) -> None:
        """Transformer layers of `kind` "v" or "a"; `fused`: queries, keys and values from one matrix."""
        for layer in range(layers):
            block = f"{kind}.blk.{layer}."
            for name in ("ln1", "ln2"):
                self.norm(block + name, self.width, bias=norm_bias)
            if fused:
                self.linear(block + "attn_qkv", 3 * self.width, self.width, bias=bias)
            else:
                for letter in "qkv":
                    has_bias = bias and (key_bias or letter != "k")
                    self.linear(f"{block}attn_{letter}", self.width, self.width, bias=has_bias)
            self.linear(block + "attn_out", self.width, self.width, bias=bias)
            self.linear(block + "ffn_up", N_FF, self.width, bias=bias)
            self.linear(block + "ffn_down", self.width, N_FF, bias=bias)
            if gated:
                self.linear(block + "ffn_gate", N_FF, self.width, bias=bias)

    def whisper(self) -> None:
        """Whisper's convolutions, positions and layers."""
        for index, bands in ((1, MEL_BANDS), (2, self.width)):
            self.full(f"a.conv1d.{index}.weight", self.width, bands, 3, scale=(3 * bands) ** -0.5)
            self.vector(f"a.conv1d.{index}.bias", self.width, 1)
        self.vector("a.position_embd.weight", POSITIONS, self.width, spread=0.5)
        self.blocks("a", key_bias=False)
        self.norm("a.post_ln", self.width, bias=True)


def qwen_merger(writer: EncoderFile) -> None:
    """Four neighbours become one row, as Qwen's encoders end."""
    writer.linear("mm.0", 4 * writer.width, 4 * writer.width)
    writer.linear("mm.2", writer.n_embd, 4 * writer.width)


def qwen25_vision(writer: EncoderFile, *, both: bool = False) -> None:
    """Qwen2.5-VL's and Qwen2.5-Omni's eyes: windows in every other layer."""
    writer.vision("qwen2.5vl_merger", size=560, patch=14, both=both, act="silu", n_wa_pattern=2)
    writer.patches(14, two=True, bias=False)
    writer.blocks("v", norm_bias=False, gated=True)
    writer.norm("v.post_ln", writer.width)
    qwen_merger(writer)


def qwen3_vision(writer: EncoderFile, *, both: bool = False, deepstack: int = 0) -> None:
    """Qwen3-VL's eyes, and with no `deepstack` those of Qwen3-Omni and Qwen3.5."""
    writer.vision("qwen3vl_merger", size=256, patch=16, both=both, spatial_merge_size=2)
    writer.patches(16, two=True, positions=256)
    writer.blocks("v", fused=True)
    writer.norm("v.post_ln", writer.width, bias=True)
    qwen_merger(writer)
    for index in range(deepstack):
        name = f"v.deepstack.{index}."
        writer.norm(name + "norm", 4 * writer.width, bias=True)
        writer.linear(name + "fc1", 4 * writer.width, 4 * writer.width)
        writer.linear(name + "fc2", writer.n_embd, 4 * writer.width)

"""moondream2: Phi-2 with half-rotated heads; no control tokens, no chat template."""

from __future__ import annotations

from pathlib import Path

from tiny_models.common import HEAD_DIM, N_FF, N_HEAD_KV
from tiny_models.families.base import Family
from tiny_models.families.decoders import Decoder, Vocabulary
from tiny_models.families.encoders import EncoderFile

LAYERS, SIZE, PATCH = 3, 56, 14


def _model(path: Path) -> None:
    writer = Decoder(path, "phi2", Vocabulary(["<|endoftext|>"], "<|endoftext|>"), layers=LAYERS)
    writer.add_head_count_kv(N_HEAD_KV)
    writer.add_layer_norm_eps(1e-5)
    writer.add_rope_dimension_count(HEAD_DIM // 2)
    writer.embeddings()
    writer.vector("output.bias", writer.n_vocab)
    writer.norm("output_norm", writer.n_embd, bias=True)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        writer.norm(prefix + "attn_norm", writer.n_embd, bias=True)
        writer.attention(layer, bias=True)
        writer.vector(prefix + "attn_output.bias", writer.n_embd)
        for name, rows, columns in (("ffn_up", N_FF, writer.n_embd), ("ffn_down", writer.n_embd, N_FF)):
            writer.matrix(prefix + name, rows, columns)
            writer.vector(f"{prefix}{name}.bias", rows)
    writer.finish()


def _encoders(writer: EncoderFile) -> None:
    writer.vision("mlp", size=SIZE, patch=PATCH, layers=3)
    writer.patches(PATCH, positions=(SIZE // PATCH) ** 2)
    writer.blocks("v", 3)
    writer.linear("mm.0", writer.n_embd, writer.width)
    writer.linear("mm.2", writer.n_embd, writer.n_embd)


MOONDREAM2 = Family("moondream2", _model, _encoders)

"""What all writers of tiny models share: sizes, tokenizers, random tensors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np

N_VOCAB = 512
N_EMBD = 256
TOKENIZER_PREFIX = "tokenizer."
N_HEAD = 4
N_HEAD_KV = 2
HEAD_DIM = N_EMBD // N_HEAD
N_FF = 384


class TinyWriter(gguf.GGUFWriter):
    """Writes a model of random tensors. `tokenizer_of`: a model whose tokenizer it borrows; else it has none."""

    def __init__(self, path: Path, arch: str, *, seed: int = 0, tokenizer_of: Path | None = None) -> None:
        super().__init__(path, arch)
        self.random = np.random.default_rng(seed)
        self.n_vocab = N_VOCAB
        if tokenizer_of is not None:
            self.n_vocab = copy_tokenizer(tokenizer_of, self)
        elif arch != "clip":
            self.add_vocab_size(N_VOCAB)
            self.add_tokenizer_model("none")

    def matrix(self, name: str, *shape: int, scale: float | None = None) -> None:
        """f16, rows first; by default outputs are as large as inputs."""
        data = self.random.standard_normal(shape) * (shape[-1] ** -0.5 if scale is None else scale)
        self.add_tensor(f"{name}.weight", data.astype(np.float16))

    def vector(self, name: str, *shape: int, mean: float = 0.0, spread: float = 0.05) -> None:
        """f32; its name in full."""
        self.add_tensor(name, (mean + self.random.standard_normal(shape) * spread).astype(np.float32))

    def norm(self, name: str, size: int, *, bias: bool = False) -> None:
        """Weights around 1."""
        self.vector(f"{name}.weight", size, mean=1.0)
        if bias:
            self.vector(f"{name}.bias", size)

    def embeddings(self, n_embd: int = N_EMBD, *, tied: bool = False) -> None:
        """Token embeddings, and the output's unless it is tied to them."""
        self.matrix("token_embd", self.n_vocab, n_embd, scale=1.0)
        if not tied:
            self.matrix("output", self.n_vocab, n_embd, scale=0.05)

    def finish(self) -> None:
        """Write the file."""
        finish(self)


def add_tokenizer(
    writer: gguf.GGUFWriter, names: Sequence[str], words: Sequence[str] = (), *, eos: str = "<|im_end|>", bos: str = ""
) -> None:
    """Byte-level BPE with one merge (llama.cpp wants some), then names and words, then tokens that nothing makes.

    `eos` and `bos` count where they are among the names; with `bos` the file asks for one before every text.
    """
    shown = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokens = [letters[byte] for byte in range(256)] + ["th", *names, *words]
    kinds = [gguf.TokenType.NORMAL] * 257 + [gguf.TokenType.CONTROL] * len(names)
    kinds += [gguf.TokenType.NORMAL] * len(words)
    spare = N_VOCAB - len(tokens)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens + [f"[unused{i}]" for i in range(spare)])
    writer.add_token_types(kinds + [gguf.TokenType.UNUSED] * spare)
    writer.add_token_merges(["t h"])
    if eos in names:
        writer.add_eos_token_id(tokens.index(eos))
    if bos in names:
        writer.add_bos_token_id(tokens.index(bos))
        writer.add_add_bos_token(True)


def copy_tokenizer(source: Path, writer: gguf.GGUFWriter) -> int:
    """Copy every tokenizer field; the size of the vocabulary."""
    fields = gguf.GGUFReader(source).fields
    for name, field in fields.items():
        if name.startswith(TOKENIZER_PREFIX):
            kind = field.types[0]
            sub_type = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub_type)
    return len(fields["tokenizer.ggml.tokens"].data)


def finish(writer: gguf.GGUFWriter) -> None:
    """Write the file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

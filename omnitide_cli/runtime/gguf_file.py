"""What a GGUF file says of itself: its metadata, read without loading anything.

llama.cpp's own reader wants the whole vocabulary; this one steps over what nobody asks for. Format:
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from omnitide_cli.errors import ModelError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
TOKENS = "tokenizer.ggml.tokens"
STRING, ARRAY = 8, 9
FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
MOST_KEPT = 4096
"""Entries of arrays that are kept; vocabularies are longer."""

Value = TypeVar("Value", str, int, float, bool)


@dataclass(frozen=True, slots=True)
class GgufFile:
    """The metadata of a file. Long arrays are left out; of the vocabulary there are the names."""

    path: Path
    values: dict[str, Any] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path, *, with_tokens: bool = False) -> GgufFile:
        """Raises ModelError for what is damaged, or no GGUF file."""
        check_gguf(path)
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                reader = _Reader(data)
                return cls(path, *reader.read(with_tokens=with_tokens))
        except (struct.error, IndexError, KeyError, ValueError, OverflowError) as error:
            raise ModelError(f"{path} is damaged: its description can't be read", "download it again") from error

    def get(self, key: str, default: Value) -> Value:
        """A value of the default's type; the default where there is none of it."""
        value = self.values.get(key)
        return value if isinstance(value, type(default)) else default

    @property
    def architecture(self) -> str:
        """The family that llama.cpp loads it as."""
        return self.get("general.architecture", "")

    def of_architecture(self, key: str, default: Value) -> Value:
        """A value of the family's own fields."""
        return self.get(f"{self.architecture}.{key}", default)

    def token(self, key: str) -> str:
        """The name of the token that the tokenizer's field gives; "" where there is none."""
        number = self.get(f"tokenizer.ggml.{key}", -1)
        return self.tokens[number] if 0 <= number < len(self.tokens) else ""

    @property
    def is_mmproj(self) -> bool:
        """Whether it holds encoders, not a language model."""
        return self.architecture == "clip" or self.get("general.type", "") == "mmproj"

    @property
    def is_embedding_model(self) -> bool:
        """Whether it makes vectors of texts, and can't write."""
        return self.of_architecture("pooling_type", 0) > 0 or not self.of_architecture("attention.causal", True)


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = len(MAGIC)

    def read(self, *, with_tokens: bool) -> tuple[dict[str, Any], list[str]]:
        version, _, n_values = self._take("<I"), self._take("<Q"), self._take("<Q")
        if version not in VERSIONS:
            raise ValueError(f"version {version}")
        values: dict[str, Any] = {}
        tokens: list[str] = []
        for _ in range(n_values):
            key = self._string()
            kind = self._take("<I")
            if key == TOKENS and with_tokens:
                tokens = self._array(keep=1 << 24)
            elif kind == ARRAY:
                values[key] = self._array(keep=MOST_KEPT)
            else:
                values[key] = self._value(kind)
        return values, tokens

    def _value(self, kind: int) -> Any:
        return self._string() if kind == STRING else self._take(FORMATS[kind])

    def _take(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def _string(self) -> str:
        size = self._take("<Q")
        begin, self._at = self._at, self._at + size
        if self._at > len(self._data):
            raise ValueError("cut off")
        return self._data[begin : self._at].decode("utf-8", "replace")

    def _array(self, keep: int) -> list[Any]:
        """Its entries; none of one that is longer than what is kept."""
        kind, count = self._take("<I"), self._take("<Q")
        if kind == STRING:
            if count <= keep:
                return [self._string() for _ in range(count)]
            for _ in range(count):
                self._at += 8 + struct.unpack_from("<Q", self._data, self._at)[0]
            return []
        if count <= keep or kind == ARRAY:
            return [self._array(keep) if kind == ARRAY else self._take(FORMATS[kind]) for _ in range(count)]
        self._at += count * struct.calcsize(FORMATS[kind])
        return []


def check_gguf(path: Path) -> None:
    """Raise ModelError, with the reason, for what is no GGUF file. (llama.cpp says little about such files.)"""
    if not path.exists():
        raise ModelError(f"{path}: no such model file", "check the path, or name a known model")
    if path.is_dir():
        raise ModelError(f"{path} is a folder, not a .gguf file", "give the path of a .gguf file in it")
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise ModelError(f"{path} can't be read: {error.strerror}", "check its permissions") from error
    if magic != MAGIC:
        raise ModelError(f"{path} is not a GGUF file", "download it again, or convert the model with llama.cpp")

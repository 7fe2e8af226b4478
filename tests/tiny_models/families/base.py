"""A family: how to write a tiny random language model and its mmproj file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tiny_models.common import N_EMBD
from tiny_models.families.encoders import EncoderFile


@dataclass(frozen=True)
class Family:
    """`write_model` gets the path of the language model, `write_encoders` an open mmproj file."""

    name: str
    write_model: Callable[[Path], None]
    write_encoders: Callable[[EncoderFile], None]
    image_marks: tuple[str, str] = ("", "")
    """Before and after a picture, as libmtmd writes them."""
    sound_marks: tuple[str, str] = ("", "")
    sees: bool = True
    hears: bool = False
    n_embd: int = N_EMBD
    encoder_width: int = 64

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The language model and the mmproj file in `folder`; nothing is written twice."""
        model, mmproj = folder / f"{self.name}.gguf", folder / f"{self.name}-mmproj.gguf"
        for path, make in ((model, self.write_model), (mmproj, partial(self._write_mmproj))):
            if not path.exists():
                unfinished = path.with_suffix(".part")
                make(unfinished)
                unfinished.rename(path)
        return model, mmproj

    def _write_mmproj(self, path: Path) -> None:
        writer = EncoderFile(path, n_embd=self.n_embd, width=self.encoder_width)
        self.write_encoders(writer)
        writer.finish()

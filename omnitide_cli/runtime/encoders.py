"""What an mmproj file says of its encoders, before any weight is loaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.gguf_file import GgufFile
from omnitide_cli.runtime.options import SOUND_ENCODERS

FrameMode = Literal["none", "fixed", "patches", "slices", "unknown"]
MODES: tuple[FrameMode, ...] = ("none", "fixed", "patches", "slices", "unknown")


@dataclass(frozen=True, slots=True)
class Encoders:
    """Counts are tokens, sizes pixels; see `ot_encoders` in native/include/omnitide.h."""

    vision: str
    frames: FrameMode
    side: int
    multiple: int
    min_tokens: int
    max_tokens: int
    slice_tokens: int
    ends_rows: bool
    audio: str
    sound: str
    """One of SOUND_ENCODERS; "" where none takes these ears."""
    sound_tokens: int
    n_embd: int

    @classmethod
    def read(cls, path: Path) -> Encoders:
        """Raises ModelError for what is no mmproj file."""
        if not GgufFile.read(path).is_mmproj:
            raise ModelError(f"{path} is not an mmproj file: it holds a language model", "give the encoders' own file")
        from omnitide_cli.runtime.model import start_llama
        from omnitide_cli.runtime.native import check, ffi, lib, text

        start_llama()
        found = ffi.new("ot_encoders *")
        found.size = ffi.sizeof("ot_encoders")
        lib.ot_log_take_error()  # forget older ones
        try:
            check(lib.ot_encoders_read(os.fsencode(path), found))
        except ModelError as error:
            why = text(lib.ot_log_take_error())
            raise ModelError(f"{path} can't be loaded: {why or error.message}", "check that it is complete") from error
        return cls(
            vision=text(found.vision),
            frames=MODES[found.frames],
            side=found.side,
            multiple=found.multiple,
            min_tokens=found.min_tokens,
            max_tokens=found.max_tokens,
            slice_tokens=found.slice_tokens,
            ends_rows=bool(found.ends_rows),
            audio=text(found.audio),
            sound=next((name for name, entry in SOUND_ENCODERS.items() if entry.number == found.sound), ""),
            sound_tokens=found.sound_tokens,
            n_embd=found.n_embd,
        )

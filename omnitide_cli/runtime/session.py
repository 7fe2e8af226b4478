"""The native session as Python sees it: every call checked, every array typed.

A session belongs to one thread; only `interrupt` may be called from another. See native/include/omnitide.h.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.runtime.native import check, ffi, lib, text
from omnitide_cli.runtime.options import EngineOptions

POLICIES = {
    "full": lib.OT_POLICY_FULL,
    "omnipick": lib.OT_POLICY_OMNIPICK,
    "fifo": lib.OT_POLICY_FIFO,
    "token": lib.OT_POLICY_TOKEN,
    "streaming-llm": lib.OT_POLICY_STREAMING_LLM,
}
LAYOUTS = {
    "native": lib.OT_PLANNER_NATIVE,
    "eager": lib.OT_PLANNER_EAGER,
    "class-packing": lib.OT_PLANNER_CLASS_PACKING,
    "ordered-suffix": lib.OT_PLANNER_ORDERED_SUFFIX,
}
LAYOUT_NAMES = {value: name for name, value in LAYOUTS.items()}
POSITIONS = {"compact": lib.OT_POSITIONS_COMPACT, "sparse": lib.OT_POSITIONS_SPARSE}
ROLES = {
    "boundary": lib.OT_ROLE_BOUNDARY,
    "image-source": lib.OT_ROLE_IMAGE_SOURCE,
    "image": lib.OT_ROLE_IMAGE_SLICE,
    "audio": lib.OT_ROLE_AUDIO,
    "text": lib.OT_ROLE_TEXT,
    "response": lib.OT_ROLE_RESPONSE,
    "system": lib.OT_ROLE_SYSTEM,
}
UNIT_KINDS = {
    "system": lib.OT_UNIT_SYSTEM,
    "media": lib.OT_UNIT_MEDIA,
    "question": lib.OT_UNIT_QUESTION,
    "response": lib.OT_UNIT_RESPONSE,
}
UNIT_KIND_NAMES = {value: name for name, value in UNIT_KINDS.items()}
ROLE_NAMES = {value: name for name, value in ROLES.items()}

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Span:
    """A run of tokens of one role. Raster tokens [first, first + length) of an image `width` tokens wide are left."""

    role: str
    length: int
    first: int
    width: int
    continues: bool
    base: int
    rotations: int


@dataclass(frozen=True, slots=True)
class Unit:
    """One streaming event as the ledger has it."""

    id: int
    kind: str
    partial: bool
    tokens: int
    start_s: float
    end_s: float
    spans: tuple[Span, ...]


class Session:
    """An endless history in the KV cache of a llama.cpp context."""

    def __init__(
        self,
        context_address: int,
        mtmd_address: int,
        options: EngineOptions,
        *,
        threads: int,
        stock_memory: bool = False,
        page_size: int = 64,
        subblock_size: int = 32,
    ) -> None:
        """Raises ModelError when the context's memory can't be taken over."""
        params = lib.ot_session_default_params()
        params.policy = POLICIES[options.policy]
        params.high_watermark = options.high_watermark
        params.low_watermark = options.low_watermark
        params.recent_units = options.recent_units or 0
        params.image_sinks = options.image_sinks
        params.audio_sinks = options.audio_sinks
        params.text_budget = options.text_budget
        params.planner = LAYOUTS[options.layout]
        params.positions = POSITIONS[options.positions]
        params.page_size = page_size
        params.subblock_size = subblock_size
        params.threads = threads
        params.stock_memory = stock_memory
        params.temperature = options.temperature
        params.seed = options.seed & 0xFFFFFFFF
        out = ffi.new("ot_session **")
        check(
            lib.ot_session_create(
                ffi.cast("void *", context_address), ffi.cast("void *", mtmd_address), ffi.addressof(params), out
            )
        )
        self._session = out[0]

    def close(self) -> None:
        """Free the session; harmless when called twice. The context must still be alive."""
        if self._session != ffi.NULL:
            lib.ot_session_free(self._session)
            self._session = ffi.NULL

    def interrupt(self, on: bool = True) -> None:
        """Make a prefill in hand stop and be taken back. Any thread; callable from a signal handler."""
        if self._session != ffi.NULL:
            lib.ot_session_interrupt(self._session, on)

    # --- units

    def begin(self, kind: str, start_s: float = 0.0, end_s: float = 0.0) -> None:
        """Begin putting a unit together."""
        check(lib.ot_unit_begin(self._session, UNIT_KINDS[kind], start_s, end_s))

    def add_tokens(self, role: str, tokens: Sequence[int]) -> None:
        """Add text to the unit in hand."""
        if tokens:
            check(lib.ot_unit_tokens(self._session, ROLES[role], list(tokens), len(tokens)))

    def add_image(self, rgb: NDArray[np.uint8]) -> int:
        """Encode a picture [H, W, 3] into the unit in hand; the number of tokens it takes."""
        height, width = _picture_size(rgb)
        count = ffi.new("uint32_t *")
        check(lib.ot_unit_image(self._session, _bytes(rgb), width, height, count))
        return count[0]

    def add_audio(self, pcm: Floats, left: Floats | None = None, right: Floats | None = None) -> int:
        """Encode sound (mono, 16 kHz) with real neighbours into the unit in hand; tokens, 0 if it is too short."""
        count = ffi.new("uint32_t *")
        check(lib.ot_unit_audio(self._session, *_sound(pcm), *_sound(left), *_sound(right), count))
        return count[0]

    def add_rows(
        self, role: str, rows: Floats, *, width: int = 0, first: int = 0, continues: bool = False
    ) -> None:
        """Add embeddings [n, n_embd] as they are; `width` > 0: raster tokens from `first` on, maybe a later piece."""
        data = np.ascontiguousarray(rows, dtype=np.float32)
        pointer = ffi.cast("const float *", ffi.from_buffer(data)) if data.size else ffi.NULL
        check(lib.ot_unit_rows(self._session, ROLES[role], width, first, continues, pointer, data.shape[0]))

    def commit(self, *, want_logits: bool = False) -> Any:
        """Prefill the unit in hand; an `ot_ingest`. On failure the unit is gone and the history as before."""
        out = ffi.new("ot_ingest *")
        check(lib.ot_unit_commit(self._session, want_logits, out))
        return out

    def abandon(self) -> None:
        """Forget the unit in hand."""
        lib.ot_unit_abandon(self._session)

    # --- answers

    def generate_begin(self, at_s: float) -> None:
        """Start an answer to the question just committed with `want_logits`."""
        check(lib.ot_generate_begin(self._session, at_s))

    def generate_next(self) -> bytes | None:
        """The bytes of the next token, which may be a part of a character; None when the model ended."""
        out = ffi.new("ot_generated *")
        check(lib.ot_generate_next(self._session, out))
        return None if out.end else bytes(ffi.buffer(out.piece, out.piece_len))

    def generate_end(self, closing: Sequence[int]) -> None:
        """Close the answer with the template's tokens."""
        check(lib.ot_generate_end(self._session, list(closing), len(closing), ffi.NULL))

    # --- maintenance

    def maintain(self, limit: int = 0) -> Any:
        """Retention and relocation when they are due; an `ot_maintenance`."""
        out = ffi.new("ot_maintenance *")
        check(lib.ot_session_maintain(self._session, limit, out))
        return out

    # --- looking inside

    def snapshot(self) -> Any:
        """Counts and layout as they are now; an `ot_snapshot`."""
        out = ffi.new("ot_snapshot *")
        check(lib.ot_session_snapshot(self._session, out))
        return out

    def cells(self) -> NDArray[np.uint8]:
        """Class of every cell (OT_CELL_*)."""
        out = np.empty(lib.ot_session_cells(self._session, ffi.NULL, 0), dtype=np.uint8)
        lib.ot_session_cells(self._session, ffi.from_buffer("uint8_t[]", out), out.size)
        return out

    def units(self) -> list[Unit]:
        """The ledger."""
        n_units = lib.ot_session_units(self._session, ffi.NULL, 0)
        units = ffi.new("ot_unit_info[]", n_units)
        lib.ot_session_units(self._session, units, n_units)
        n_spans = lib.ot_session_spans(self._session, ffi.NULL, 0)
        spans = ffi.new("ot_span_info[]", n_spans)
        lib.ot_session_spans(self._session, spans, n_spans)
        all_spans = iter(
            Span(ROLE_NAMES[s.role], s.length, s.first, s.width, bool(s.continues), s.base, s.rotations) for s in spans
        )
        return [
            Unit(
                u.id,
                UNIT_KIND_NAMES[u.kind],
                bool(u.partial),
                u.tokens,
                u.start_s,
                u.end_s,
                tuple(next(all_spans) for _ in range(u.n_spans)),
            )
            for u in units
        ]

    def tokens(self) -> NDArray[np.int64]:
        """Rows (cell, t, y, x), one a token in history order."""
        n = lib.ot_session_tokens(self._session, ffi.NULL, 0)
        tokens = ffi.new("ot_token_info[]", n)
        lib.ot_session_tokens(self._session, tokens, n)
        return np.array([(k.cell, k.t, k.y, k.x) for k in tokens], dtype=np.int64).reshape(n, 4)

    def check(self) -> None:
        """Raise RuntimeFailure when the ledger and llama.cpp's cells differ."""
        check(lib.ot_session_check(self._session))

    def logits(self, n_vocab: int) -> Floats:
        """Logits [n_vocab] after the newest token that wanted them."""
        out = np.empty(n_vocab, dtype=np.float32)
        check(lib.ot_session_logits(self._session, ffi.from_buffer("float[]", out), out.size))
        return out

    def keys(self, layer: int, cells: Sequence[int]) -> Floats:
        """Key rows [len(cells), width] of one layer, dequantised."""
        width = lib.ot_session_key_width(self._session, layer)
        out = np.empty((len(cells), width), dtype=np.float32)
        for row, cell in zip(out, cells, strict=True):
            check(lib.ot_session_key(self._session, layer, int(cell), ffi.from_buffer("float[]", row), width))
        return out

    def encode_image(self, rgb: NDArray[np.uint8], n_embd: int) -> tuple[Floats, int]:
        """Embeddings [n, n_embd] of a picture [H, W, 3], and its raster width (0: none)."""
        height, width = _picture_size(rgb)
        count, raster = ffi.new("uint32_t *"), ffi.new("uint32_t *")
        data = _bytes(rgb)
        rows = np.empty((max(height * width // 16, 16), n_embd), dtype=np.float32)
        pointer = ffi.from_buffer("float[]", rows)
        check(lib.ot_encode_image(self._session, data, width, height, pointer, rows.shape[0], count, raster))
        return rows[: count[0]].copy(), raster[0]

    def encode_audio(self, pcm: Floats, n_embd: int, left: Floats | None = None, right: Floats | None = None) -> Floats:
        """Embeddings [n, n_embd] of sound (mono, 16 kHz)."""
        count = ffi.new("uint32_t *")
        rows = np.empty((len(pcm) // 640 + 1, n_embd), dtype=np.float32)
        sounds = (*_sound(pcm), *_sound(left), *_sound(right))
        check(lib.ot_encode_audio(self._session, *sounds, ffi.from_buffer("float[]", rows), rows.shape[0], count))
        return rows[: count[0]].copy()


def log_mel(pcm: Floats, left: Floats | None = None, right: Floats | None = None, n_mel: int = 128) -> Floats:
    """Whisper's log-mel spectrogram [n_mel, len(pcm) // 160] of a window with real neighbours."""
    out = np.empty((n_mel, len(pcm) // 160), dtype=np.float32)
    frames = ffi.new("uint32_t *")
    sounds = (*_sound(pcm), *_sound(left), *_sound(right))
    check(lib.ot_mel(*sounds, n_mel, ffi.from_buffer("float[]", out), out.size, frames))
    return out


def last_error() -> str:
    """Text of the last failure in this thread."""
    return text(lib.ot_last_error())


def _picture_size(rgb: NDArray[np.uint8]) -> tuple[int, int]:
    if rgb.dtype != np.uint8 or rgb.ndim != 3 or rgb.shape[2] != 3 or 0 in rgb.shape:
        raise ValueError(f"a picture is uint8 [H, W, 3], not {rgb.dtype} {list(rgb.shape)}")
    return rgb.shape[0], rgb.shape[1]


def _bytes(rgb: NDArray[np.uint8]) -> Any:
    return ffi.from_buffer("uint8_t[]", np.ascontiguousarray(rgb))


def _sound(pcm: Floats | None) -> tuple[Any, int]:
    if pcm is None or len(pcm) == 0:
        return ffi.NULL, 0
    return ffi.from_buffer("float[]", np.ascontiguousarray(pcm, dtype=np.float32)), len(pcm)

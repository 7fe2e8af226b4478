"""The native session as Python sees it: every call checked, every array typed.

A session belongs to one thread; only `interrupt` may be called from another. See native/include/omnitide.h.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import RuntimeFailure
from omnitide_cli.runtime.costs import Costs
from omnitide_cli.runtime.native import check, ffi, lib
from omnitide_cli.runtime.options import SOUND_ENCODERS, EngineOptions
from omnitide_cli.runtime.parameters import Parameters
from omnitide_cli.runtime.view import (
    LAYOUT_NAMES,
    LAYOUTS,
    ROLE_NAMES,
    ROLES,
    UNIT_KINDS,
    HistoryView,
    Part,
    Span,
    Unit,
)

__all__ = ["LAYOUTS", "LAYOUT_NAMES", "AudioFormat", "EncodedImage", "NativeSession", "Span", "Unit", "log_mel"]

Floats = NDArray[np.float32]

MOST_LAYERS = 512
MOST_SLICED_TOKENS = 2048
"""Ten images and their marks, however small the picture that they were cut from."""


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """The sound that a session's model hears; counts are samples of one channel."""

    encoder: str
    """One of SOUND_ENCODERS."""
    rate: int
    """Samples a second."""
    before: int
    """Of the sound right before a unit, which it hears as well."""
    after: int
    """And right behind it."""
    samples_per_token: int
    shortest: int
    """That give a token; less can't be encoded."""
    longest: int
    """That can be encoded at once."""


class EncodedImage(NamedTuple):
    """Spans of a picture, its tokens (-1 where a row is meant), and its rows [count of -1, n_embd]."""

    parts: list[Part]
    tokens: NDArray[np.int32]
    rows: Floats


class NativeSession(HistoryView):
    """An endless history in the KV cache of a llama.cpp context."""

    _kind = "session"

    def __init__(
        self,
        context_address: int,
        mtmd_address: int,
        options: EngineOptions,
        *,
        threads: int,
        stock_memory: bool = False,
        position_limit: int = 0,
        page_size: int = 64,
        subblock_size: int = 32,
        costs: Costs | None = None,
    ) -> None:
        """Raises ModelError when the context's memory can't be taken over."""
        self._parameters = Parameters(options, self, page_size=page_size, subblock_size=subblock_size, costs=costs)
        params = self._parameters.pointer
        params.threads = threads
        params.position_limit = position_limit
        params.stock_memory = stock_memory
        params.temperature = options.temperature
        params.seed = options.seed & 0xFFFFFFFF
        out = ffi.new("ot_session **")
        check(lib.ot_session_create(ffi.cast("void *", context_address), ffi.cast("void *", mtmd_address), params, out))
        self._handle = out[0]
        self.is_managed = not stock_memory

    def close(self) -> None:
        """Free the session; harmless when called twice. The context must still be alive."""
        if self._handle != ffi.NULL:
            lib.ot_session_free(self._handle)
            self._handle = ffi.NULL

    @property
    def handle(self) -> Any:
        """The native handle, for what else is done with it in this room. Raises RuntimeFailure once it is closed."""
        return self._open

    @property
    def _open(self) -> Any:
        if self._handle == ffi.NULL:
            raise RuntimeFailure("the session is closed")
        return self._handle

    def interrupt(self, on: bool = True) -> None:
        """Make a running prefill stop and be taken back. Any thread; callable from a signal handler."""
        if self._handle != ffi.NULL:
            lib.ot_session_interrupt(self._handle, on)

    # --- units

    def begin(self, kind: str, start_s: float = 0.0, end_s: float = 0.0) -> None:
        """Begin putting a unit together."""
        check(lib.ot_unit_begin(self._open, UNIT_KINDS[kind], start_s, end_s))

    def add_tokens(self, role: str, tokens: Sequence[int]) -> None:
        """Add text to the pending unit."""
        if tokens:
            check(lib.ot_unit_tokens(self._open, ROLES[role], list(tokens), len(tokens)))

    def add_image(self, rgb: NDArray[np.uint8]) -> int:
        """Encode a picture [H, W, 3] into the pending unit; the tokens it takes, marks between slices included."""
        height, width = _picture_size(rgb)
        count = ffi.new("uint32_t *")
        check(lib.ot_unit_image(self._open, _bytes(rgb), width, height, count))
        return count[0]

    def add_audio(self, pcm: Floats, left: Floats | None = None, right: Floats | None = None) -> int:
        """Encode sound (`audio_format`) with real neighbours into the pending unit; tokens, 0 if it is too short."""
        count = ffi.new("uint32_t *")
        check(lib.ot_unit_audio(self._open, *_sound(pcm), *_sound(left), *_sound(right), count))
        return count[0]

    def add_rows(self, role: str, rows: Floats, *, width: int = 0, first: int = 0, continues: bool = False) -> None:
        """Add embeddings [n, n_embd] as they are; `width` > 0: raster tokens from `first` on, maybe a later piece."""
        data = np.ascontiguousarray(rows, dtype=np.float32)
        if data.ndim != 2:
            raise ValueError(f"embeddings are [n, n_embd], not {list(data.shape)}")
        pointer = ffi.cast("const float *", ffi.from_buffer(data)) if data.size else ffi.NULL
        check(lib.ot_unit_rows(self._open, ROLES[role], width, first, continues, pointer, *data.shape))

    def commit(self, *, want_logits: bool = False) -> Any:
        """Prefill the pending unit; an `ot_ingest`. On failure the unit is gone and the history as before."""
        out = ffi.new("ot_ingest *")
        check(lib.ot_unit_commit(self._open, want_logits, out))
        return out

    def abandon(self) -> None:
        """Forget the pending unit."""
        lib.ot_unit_abandon(self._open)

    # --- for benchmarks

    def fill_cache(self, seed: int = 0) -> None:
        """Random keys and values in every row of the cache."""
        check(lib.ot_cache_fill(self._handle, seed))

    def inject(self, cells: Sequence[int] | None = None) -> None:
        """Take the pending unit into the history without running the model, into `cells` (one a token) if given."""
        check(lib.ot_unit_inject(self._handle, ffi.NULL if cells is None else list(cells), len(cells or ())))

    def inject_history(self, state: NDArray[np.uint8]) -> None:
        """Take what `History.save` gave in place of what there is, on whatever rows its cells hold."""
        check(lib.ot_session_inject(self._open, ffi.from_buffer("uint8_t[]", state), len(state)))

    def dry_run(self, n_vocab: int = 0) -> float:
        """Milliseconds that the prefill of the pending unit takes; it leaves no trace in the history.

        n_vocab: the size of the vocabulary, where logits are computed as for an answer.
        """
        logits = np.empty(n_vocab, dtype=np.float32) if n_vocab else None
        return self._dry_run(ffi.NULL, logits)

    def dry_run_watched(self) -> tuple[float, float]:
        """Milliseconds of the prefill, and how many of them attention takes. Watching it costs some, too."""
        attention = ffi.new("double *")
        return self._dry_run(attention, None), attention[0]

    def peek_logits(self, n_vocab: int) -> Floats:
        """Logits [n_vocab] after the pending unit, which leaves no trace in the history."""
        out = np.empty(n_vocab, dtype=np.float32)
        self._dry_run(ffi.NULL, out)
        return out

    def _dry_run(self, attention: Any, logits: Floats | None) -> float:
        ms = ffi.new("double *")
        out, size = (ffi.NULL, 0) if logits is None else (ffi.from_buffer("float[]", logits), logits.size)
        check(lib.ot_unit_dry_run(self._open, ms, attention, out, size))
        return ms[0]

    # --- answers

    def generate_begin(self, at_s: float) -> None:
        """Start an answer to the question just committed with `want_logits`."""
        check(lib.ot_generate_begin(self._open, at_s))

    def generate_next(self) -> bytes | None:
        """The bytes of the next token, which may be a part of a character; None when the model ended."""
        out = ffi.new("ot_generated *")
        check(lib.ot_generate_next(self._open, out))
        return None if out.end else bytes(ffi.buffer(out.piece, out.piece_len))

    def generate_end(self, closing: Sequence[int]) -> None:
        """Close the answer with the template's tokens."""
        check(lib.ot_generate_end(self._open, list(closing), len(closing), ffi.NULL))

    def foresee(self, n_vocab: int, most: int = 0) -> tuple[Floats, str]:
        """The pending unit as a question that is never asked: logits [n_vocab] after it, and the likeliest answer of at
        most so many tokens. Nothing is evicted for it, nothing of it stays. Raises CacheFull where it has no room."""
        logits = np.empty(n_vocab, dtype=np.float32)
        text, size = ffi.new("const char **"), ffi.new("size_t *")
        into = ffi.from_buffer("float[]", logits)
        check(lib.ot_unit_foresee(self._open, into, logits.size, most, text, size))
        return logits, bytes(ffi.buffer(text[0], size[0])).decode("utf-8", "replace")

    # --- maintenance

    def take_forced(self) -> Iterator[Any]:
        """Rounds (`ot_maintenance`) that units and answers needed for their room, each told once."""
        while True:
            out = ffi.new("ot_maintenance *")
            check(self._call("take_forced", out))
            if not out.retained:
                return
            yield out

    # --- looking inside

    def check(self) -> None:
        """Raise RuntimeFailure when the ledger and llama.cpp's cells differ."""
        check(lib.ot_session_check(self._open))

    def logits(self, n_vocab: int) -> Floats:
        """Logits [n_vocab] after the newest token that wanted them."""
        out = np.empty(n_vocab, dtype=np.float32)
        check(lib.ot_session_logits(self._open, ffi.from_buffer("float[]", out), out.size))
        return out

    def keys(self, layer: int, cells: Sequence[int]) -> Floats:
        """Key rows [len(cells), width] of one layer, dequantised. A quantised cache may keep them turned by a Hadamard
        matrix."""
        return self._rows(lib.ot_session_key, lib.ot_session_key_width(self._open, layer), layer, cells)

    def values(self, layer: int, cells: Sequence[int]) -> Floats:
        """Value rows [len(cells), width] of one layer, as `keys`."""
        return self._rows(lib.ot_session_value, lib.ot_session_value_width(self._open, layer), layer, cells)

    def _rows(self, read: Any, width: int, layer: int, cells: Sequence[int]) -> Floats:
        out = np.empty((len(cells), width), dtype=np.float32)
        for row, cell in zip(out, cells, strict=True):
            check(read(self._open, layer, int(cell), ffi.from_buffer("float[]", row), width))
        return out

    def layers(self) -> list[int]:
        """Layers that have keys and values, ascending: some models skip some."""
        return [layer for layer in range(MOST_LAYERS) if lib.ot_session_key_width(self._open, layer)]

    @property
    def audio_format(self) -> AudioFormat:
        """What sound the model hears. Raises ModelError, with the reason, where it hears none."""
        out = ffi.new("ot_audio_format *")
        check(lib.ot_session_audio_format(self._open, out))
        [name] = [name for name, entry in SOUND_ENCODERS.items() if entry.number == out.encoder]
        return AudioFormat(name, out.rate, out.before, out.after, out.samples_per_token, out.shortest, out.longest)

    def encode_image(self, rgb: NDArray[np.uint8], n_embd: int) -> EncodedImage:
        """What the encoder makes of a picture [H, W, 3]; the history stays as it is."""
        height, width = _picture_size(rgb)
        most = max(height * width // 16, MOST_SLICED_TOKENS)
        parts, tokens = ffi.new("ot_part[]", most), np.empty(most, dtype=np.int32)
        rows = np.empty((most, n_embd), dtype=np.float32)
        n_parts, n_tokens = ffi.new("size_t *"), ffi.new("size_t *")
        where = ffi.from_buffer("int32_t[]", tokens), ffi.from_buffer("float[]", rows)
        check(
            lib.ot_encode_image(
                self._open, _bytes(rgb), width, height, parts, most, n_parts, where[0], where[1], most, n_tokens
            )
        )
        found = tokens[: n_tokens[0]].copy()
        return EncodedImage(
            [Part(ROLE_NAMES[part.role], part.length, part.width) for part in parts[0 : n_parts[0]]],
            found,
            rows[: np.count_nonzero(found < 0)].copy(),
        )

    def encode_audio(self, pcm: Floats, n_embd: int, left: Floats | None = None, right: Floats | None = None) -> Floats:
        """Embeddings [n, n_embd] of sound (`audio_format`)."""
        count = ffi.new("uint32_t *")
        sounds = (*_sound(pcm), *_sound(left), *_sound(right))
        check(lib.ot_encode_audio(self._open, *sounds, ffi.NULL, 0, count))
        rows = np.empty((count[0], n_embd), dtype=np.float32)
        if rows.size:
            check(lib.ot_encode_audio(self._open, *sounds, ffi.from_buffer("float[]", rows), rows.shape[0], count))
        return rows


def log_mel(pcm: Floats, left: Floats | None = None, right: Floats | None = None, n_mel: int = 128) -> Floats:
    """Whisper's log-mel spectrogram [n_mel, len(pcm) // 160] of a window with real neighbours."""
    out = np.empty((n_mel, len(pcm) // 160), dtype=np.float32)
    frames = ffi.new("uint32_t *")
    sounds = (*_sound(pcm), *_sound(left), *_sound(right))
    check(lib.ot_mel(*sounds, n_mel, ffi.from_buffer("float[]", out), out.size, frames))
    return out


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

"""Pictures and sounds of a stream, encoded once for all sessions that watch it, and the model that they share."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.common.fixture import Owner
from omnitide_cli.bench.common.replay import add, pieces_of
from omnitide_cli.media.unit import MediaUnit
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native_session import EncodedImage, NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles, PromptTemplate
from omnitide_cli.runtime.sizing import check_low_watermark, choose_ctx
from omnitide_cli.runtime.template import TokenTemplate

Floats = NDArray[np.float32]


class Encodings:
    """Embeddings of the units that were encoded, found again by the very arrays that they were made of.

    `seconds` is the time that encoding took. The units must live as long as this does.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._images: dict[int, EncodedImage] = {}
        self._sounds: dict[int, Floats] = {}

    def add(self, unit: MediaUnit, session: NativeSession, n_embd: int) -> None:
        """Encode what the unit shows and sounds like; a frame that was there before is taken from there."""
        began = time.perf_counter()
        if unit.frame is not None and id(unit.frame) not in self._images:
            self._images[id(unit.frame)] = session.encode_image(unit.frame, n_embd)
        if unit.audio is not None and len(unit.audio) >= session.audio_format.shortest:
            sound = session.encode_audio(unit.audio, n_embd, unit.audio_left, unit.audio_right)
            self._sounds[id(unit.audio)] = sound
        self.seconds += time.perf_counter() - began

    def forget(self) -> None:
        """Drop what is encoded; the units may go."""
        self._images.clear()
        self._sounds.clear()

    def image(self, rgb: NDArray[np.uint8]) -> EncodedImage:
        """Spans, tokens and rows [n, n_embd]."""
        return self._images[id(rgb)]

    def sound(self, pcm: Floats) -> Floats:
        """Rows [n, n_embd]."""
        return self._sounds[id(pcm)]


class SharingSession(NativeSession):
    """A session that takes pictures and sounds from `encodings`."""

    encodings: Encodings

    def add_image(self, rgb: NDArray[np.uint8]) -> int:
        """The rows of an encoded picture and the marks between them; the number of tokens it takes."""
        image = self.encodings.image(rgb)
        for piece in pieces_of(image):
            add(self, piece)
        return len(image.tokens)

    def add_audio(self, pcm: Floats, left: Floats | None = None, right: Floats | None = None) -> int:
        """The rows of encoded sound; the number of tokens it takes."""
        rows = self.encodings.sound(pcm)
        self.add_rows("audio", rows)
        return len(rows)


class SharedModel(Owner):
    """A model that stays loaded while one history after the other begins on it. Use as a context manager."""

    def __init__(
        self,
        files: ModelFiles,
        prompt: PromptTemplate,
        options: EngineOptions,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        """Loads weights and encoders. Raises ModelError."""
        self._name = files.name
        super().__init__(Model(files, options, progress))
        try:
            self._template = TokenTemplate.of(prompt, self._model)
        except BaseException:
            self._model.close()
            raise

    def check(self, options: EngineOptions) -> None:
        """Raise UsageError for watermarks that this model's units don't fit."""
        check_low_watermark(options, len(self._template.system))

    def engine(self, options: EngineOptions, encodings: Encodings) -> Engine:
        """An engine with an empty history, in place of the last one; it is closed with the model, not by itself."""
        session = self._begin(SharingSession, options, choose_ctx(options, self._model))
        session.encodings = encodings
        return Engine(self._model, session, self._template, self._name, options)

    def encode_one(self, unit: MediaUnit) -> None:
        """Add the encodings of one unit to those of the engine in use, in place of all earlier ones."""
        assert isinstance(self._session, SharingSession)
        self._session.encodings.forget()
        self._session.encodings.add(unit, self._session, self._model.n_embd)

    def encode(self, units: Sequence[MediaUnit], options: EngineOptions, each: Callable[[int], bool]) -> Encodings:
        """The encodings of all units; `each` hears how many there are and may say that it is enough."""
        session = self._begin(SharingSession, options, choose_ctx(options, self._model))
        encodings = Encodings()
        for index, unit in enumerate(units):
            encodings.add(unit, session, self._model.n_embd)
            if each(index + 1):
                break
        return encodings

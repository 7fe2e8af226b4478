"""A model on which histories are set up without prefilling them and updates are measured again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import numpy as np

from omnitide_cli.runtime.history import Part
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

S = TypeVar("S", bound=NativeSession)


class Owner:
    """Owns a model and one session on it at a time. Use as a context manager."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._session: NativeSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_session()
        self._model.close()

    def _end_session(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _begin(self, kind: type[S], options: EngineOptions, n_cells: int) -> S:
        """A session with an empty history, in place of the last one."""
        self._end_session()
        self._model.open_context(options, n_cells)
        self._session = session = self._open(kind, options, self._model.context_address)
        return session

    def _open(self, kind: type[S], options: EngineOptions, context: int) -> S:
        return kind(
            context,
            self._model.mtmd_address,
            options,
            threads=self._model.threads,
            position_limit=self._model.n_ctx_train,
            costs=self._model.costs(options),
        )


class Fixture(Owner):
    """A language model, one session on it at a time, and others that stay open beside it."""

    def __init__(self, file: Path, options: EngineOptions, mmproj: Path | None = None) -> None:
        """Loads the weights and, if given, the encoders. Raises ModelError."""
        super().__init__(Model(ModelFiles(file.stem, file, mmproj), options))
        self.file = file
        self.options = options
        self._others: list[NativeSession] = []

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in self._others:
            session.close()
        super().__exit__(kind, error, trace)

    @property
    def model(self) -> Model:
        """The loaded model."""
        return self._model

    def settings(self) -> dict[str, str | int]:
        """What times depend on besides the model: with `auto` resolved as far as it is known."""
        flash = self._model.flash_attention(self.options)
        return {"cache_type": self.options.cache_type, "flash_attn": flash, "threads": self._model.threads}

    def session(self, n_cells: int, *, random_rows: bool = True, **changes: object) -> NativeSession:
        """A new session, in place of the last, on a cache of `n_cells` rows; `changes` to the options.

        random_rows: what is pretended to be in the cache must have keys and values.
        """
        options = replace(self.options, **changes)  # type: ignore[arg-type]
        session = self._begin(NativeSession, options, n_cells)
        if random_rows:
            session.fill_cache()
        return session

    def another(self, n_cells: int, **changes: object) -> NativeSession:
        """A session on a cache of random rows that stays open as long as the fixture. Raises ModelError."""
        options = replace(self.options, **changes)  # type: ignore[arg-type]
        session = self._open(NativeSession, options, self._model.add_context(options, n_cells))
        self._others.append(session)
        session.fill_cache()
        return session

    def interrupt(self) -> None:
        """Stop the current update and all later ones of the sessions that stay open. Any thread."""
        for session in self._others:
            session.interrupt()

    def add(self, session: NativeSession, kind: str, parts: Sequence[Part]) -> None:
        """Take a unit of this many tokens of each kind into the history without computing it."""
        self._draft(session, kind, parts)
        session.inject()

    def update_ms(self, session: NativeSession, tokens: int) -> float:
        """Milliseconds to prefill `tokens` more; the history stays as it was."""
        self._draft(session, "question", [Part("text", tokens)])
        return session.dry_run()

    def attention_ms(self, session: NativeSession, tokens: int) -> tuple[float, float]:
        """Milliseconds of such a prefill while attention is watched, and of attention in it."""
        self._draft(session, "question", [Part("text", tokens)])
        return session.dry_run_watched()

    def decode_ms(self, session: NativeSession) -> float:
        """Milliseconds of one token of an answer, logits included."""
        self._draft(session, "question", [Part("text", 1)])
        return session.dry_run(self._model.n_vocab)

    def _draft(self, session: NativeSession, kind: str, parts: Sequence[Part]) -> None:
        session.begin(kind)
        for part in parts:
            if part.role in ("image", "image-source", "audio"):
                rows = np.zeros((part.length, self._model.n_embd), dtype=np.float32)
                session.add_rows(part.role, rows, width=part.width)
            else:
                session.add_tokens(part.role, [token % self._model.n_vocab for token in range(part.length)])

    def occupy(self, session: NativeSession, cells: Sequence[int]) -> None:
        """One unit of text in just these cells."""
        session.begin("question")
        session.add_tokens("text", [0] * len(cells))
        session.inject(cells)

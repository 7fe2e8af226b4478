"""A random stream with known inputs, so that a fresh run over what a ledger kept can be made at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.common.replay import Piece as Part
from omnitide_cli.bench.common.replay import feed, replay
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles

PROBE = [17, 3, 251, 88, 42, 7, 301, 5]


@dataclass
class Running:
    """A model with a session on it; closed in the right order."""

    model: Model
    session: NativeSession

    @classmethod
    def open(
        cls, path: Path, options: EngineOptions, n_ctx: int, *, page_size: int = 64, mmproj: Path | None = None
    ) -> Running:
        model = Model(ModelFiles("test", path, mmproj), options)
        model.open_context(options, n_ctx)
        try:
            session = NativeSession(
                model.context_address,
                model.mtmd_address,
                options,
                threads=2,
                position_limit=model.n_ctx_train,
                page_size=page_size,
                subblock_size=page_size // 2,
            )
            return cls(model, session)
        except BaseException:
            model.close()
            raise

    def close(self) -> None:
        self.session.close()
        self.model.close()

    def probe(self) -> NDArray[np.float32]:
        """Logits after a fixed text, which stays in the history."""
        self.session.begin("question")
        self.session.add_tokens("text", PROBE)
        self.session.commit(want_logits=True)
        return self.session.logits(self.model.n_vocab)


@dataclass
class Stream:
    """Feeds random units into a session and remembers what each was made of."""

    running: Running
    seed: int = 0
    units: dict[int, list[Part]] = field(default_factory=dict)
    rows_moved: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def add(self, kind: str, parts: list[Part]) -> None:
        self.units[feed(self.running.session, kind, parts)] = parts

    def text(self, role: str, n: int) -> Part:
        return Part(role, tuple(int(t) for t in self.random.integers(0, self.running.model.n_vocab, n)))

    def rows(self, role: str, n: int, width: int = 0) -> Part:
        return Part(
            role, rows=self.random.standard_normal((n, self.running.model.n_embd)).astype(np.float32), width=width
        )

    def system(self) -> None:
        self.add("system", [self.text("system", 12)])

    def media(self) -> None:
        """Picture and sound, one of the two, or neither (a marker alone)."""
        parts = [self.text("boundary", 1)]
        kind = self.random.integers(0, 8)
        if kind != 1:
            width, height = (int(x) for x in self.random.integers(2, 8, 2))
            parts += [self.rows("image", width * height, width), self.text("boundary", 2)]
        if kind != 2:
            parts += [self.rows("audio", int(self.random.integers(5, 26))), self.text("boundary", 1)]
        self.add("media", parts)

    def question(self) -> None:
        self.add("question", [self.text("text", int(self.random.integers(3, 20))), self.text("boundary", 3)])

    def answer(self) -> None:
        self.add("response", [self.text("response", int(self.random.integers(1, 20))), self.text("boundary", 2)])

    def run(self, n_units: int) -> int:
        """Feed units, with questions here and there, maintaining after each; how often something was deleted."""
        retentions = 0
        for _ in range(n_units):
            self.media()
            if self.random.integers(0, 5) == 0:
                self.question()
                self.answer()
            done = self.running.session.maintain()
            retentions += done.retained
            self.rows_moved += done.rows_moved
            self.running.session.check()
        return retentions

    def replay(self, fresh: Running) -> None:
        """Feed what the ledger still has into a fresh session, unit by unit, token by token at their new positions."""
        replay(self.running.session.units(), self.units, fresh.session)

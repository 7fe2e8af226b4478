"""Questions that are never asked: what the model would answer is read, and taken back without a trace."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.template import TokenTemplate
from omnitide_cli.runtime.thoughts import Thoughts
from omnitide_cli.runtime.yes_no import Weighed, YesNo

MOST_KEPT = 256


class Rehearsal:
    """Of one session, whose history, cells and later answers are as if nothing had been rehearsed.

    Nothing is evicted for a question either: CacheFull is raised where it has no room, and RuntimeFailure when the
    model fails. An interruption gives None.
    """

    def __init__(
        self, model: Model, session: NativeSession, template: TokenTemplate, rearm: Callable[[], object]
    ) -> None:
        """`rearm`: called after each, so that an interruption doesn't reach what comes next."""
        self._model = model
        self._session = session
        self._template = template
        self._rearm = rearm
        self._tokenized: dict[str, list[int]] = {}

    @cached_property
    def yes_no(self) -> YesNo:
        """The tokens that say either. Raises ModelError where the model doesn't tell yes from no."""
        return YesNo.of(self._model)

    def weigh(self, question: str) -> Weighed | None:
        """How likely the answer to a yes-or-no question is a yes. Raises ModelError as `yes_no`."""
        yes_no, began = self.yes_no, time.perf_counter()
        found = self._foresee(question, 0)
        return None if found is None else yes_no.weigh(found[0], (time.perf_counter() - began) * 1000)

    def answer(self, question: str, most: int) -> str | None:
        """The likeliest answer of at most so many tokens, without thoughts."""
        found = self._foresee(question, most)
        if found is None:
            return None
        thoughts = Thoughts(shown=False)
        thoughts.take(found[1], final=True)
        return thoughts.answer

    def _tokens(self, question: str) -> list[int]:
        """Rules are asked again and again."""
        if question not in self._tokenized:
            if len(self._tokenized) >= MOST_KEPT:
                self._tokenized.clear()
            self._tokenized[question] = self._model.tokenize(question, special=False)
        return self._tokenized[question]

    def _foresee(self, question: str, most: int) -> tuple[NDArray[np.float32], str] | None:
        session = self._session
        session.begin("question")
        try:
            session.add_tokens("text", self._tokens(question))
            session.add_tokens("boundary", self._template.question_suffix)
            return session.foresee(self._model.n_vocab, most)
        except Interrupted:
            return None
        finally:
            session.abandon()
            self._rearm()

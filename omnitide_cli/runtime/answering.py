"""One question and its answer: what is recalled for it, its prefill, the tokens that the model answers with."""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable, Generator
from contextlib import suppress

from omnitide_cli.errors import CacheFull
from omnitide_cli.runtime.events import Answer, AnswerDelta, Event, Notice, Recalled
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.recaller import Recaller
from omnitide_cli.runtime.template import TokenTemplate
from omnitide_cli.runtime.thoughts import Thoughts

SPARE_CELLS = 16  # that what is recalled leaves free beside question and answer: the template's closing


class Exchange:
    """A question that is asked once, and how its answer came out. `is_interrupted` is read before each token."""

    def __init__(
        self,
        model: Model,
        session: NativeSession,
        template: TokenTemplate,
        options: EngineOptions,
        recaller: Recaller | None,
        is_interrupted: Callable[[], bool],
    ) -> None:
        self._model = model
        self._session = session
        self._template = template
        self._options = options
        self._recaller = recaller
        self._is_interrupted = is_interrupted
        self._thoughts = Thoughts(shown=options.show_thoughts)
        self._question, self._at = "", 0.0
        self._recalled: Recalled | None = None
        self._count, self._first, self._stop = 0, 0.0, "interrupted"
        self.is_refused = False
        """There was no room for the question: it was not asked, and has no answer."""

    def run(self, question: str, at: float) -> Generator[Event]:
        """Ask, and report what is recalled and each piece of the answer. `at`: media seconds.

        Raises CacheFull where nothing may be evicted (policy `full`), RuntimeFailure when the model fails.
        """
        self._question, self._at = question, at
        tokens = self._model.tokenize(question, special=False)
        with suppress(Interrupted):
            if not self._is_interrupted():
                yield from self._exchange(tokens)
        if self.is_refused:
            return
        if rest := self._thoughts.take("", final=True):
            yield AnswerDelta(at=at, text=rest)
        if self._stop == "length" and self._thoughts.is_thinking:
            message = f"the model was still thinking after {self._count} tokens, and has not answered to the end"
            yield Notice("thoughts-too-long", message, "raise --max-answer-tokens; --show-thoughts shows the thoughts")

    def _exchange(self, tokens: list[int]) -> Generator[Event]:
        session, template, question, at = self._session, self._template, self._question, self._at
        if self._recaller and tokens:
            reserved = len(tokens) + len(template.question_suffix) + self._options.max_answer_tokens
            self._recalled = self._recaller.before(question, tokens, at, reserved=reserved + SPARE_CELLS)
            if self._recalled:
                yield self._recalled
        session.begin("question", at, at)
        session.add_tokens("text", tokens)
        session.add_tokens("boundary", template.question_suffix)
        try:
            asked = session.commit(want_logits=True).unit
        except CacheFull as error:
            if self._options.policy == "full":
                raise
            self.is_refused = True
            message = f"a question of {len(tokens)} tokens could not be asked: {error.message}"
            yield Notice(code="question-too-long", message=message, hint="shorten it, or raise --ctx")
            return
        session.generate_begin(at)
        try:
            yield from self._generate()
        finally:
            session.generate_end(template.response_suffix)
            if self._recaller:
                self._recaller.note_words(asked, question)
                self._recaller.note_words(asked + 1, self._thoughts.answer)

    def _generate(self) -> Generator[Event]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while not self._is_interrupted():
            piece = self._session.generate_next()
            if self._count == 0:
                self._first = time.perf_counter()
            characters = decoder.decode(piece or b"", final=piece is None)
            self._count += piece is not None
            if shown := self._thoughts.take(characters, final=piece is None):
                yield AnswerDelta(at=self._at, text=shown)
            if piece is None:
                self._stop = "eos"
                return
            if self._count >= self._options.max_answer_tokens:
                self._stop = "length"
                return

    def answer(self, began: float, ended: float, *, unit: int, wall: str | None) -> Answer:
        """The whole answer, between two moments of `time.perf_counter`, after the stream's unit `unit`."""
        count, first = self._count, self._first
        return Answer(
            at=self._at,
            unit=unit,
            question=self._question,
            text=self._thoughts.answer,
            tokens=count,
            ttft_ms=(first - began) * 1000 if first else 0.0,
            tokens_per_s=(count - 1) / (ended - first) if count > 1 and ended > first else 0.0,
            stop=self._stop,
            recalled=self._recalled.moments if self._recalled else (),
            wall=wall,
            thought_tokens=self._thoughts.tokens,
            history_from=self._history_from(),
        )

    def _history_from(self) -> float | None:
        whole = (each for each in self._session.units() if each.kind == "media" and not (each.partial or each.recalled))
        starts = [each.start_s for each in whole]
        if self._recalled is not None and self._recalled.oldest is not None:
            starts.append(self._recalled.oldest)
        return min(starts, default=None)

"""The streaming engine: media units in, events and answers out.

One thread owns an engine; only `interrupt` may be called from another or from a signal handler.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

import omnitide_cli
from omnitide_cli.runtime.answering import Exchange
from omnitide_cli.runtime.attaching import attach_session, standing_notices
from omnitide_cli.runtime.events import (
    Answer,
    Event,
    Scene,
    SessionStarted,
    Summary,
    UnitIngested,
)
from omnitide_cli.runtime.intake import Intake
from omnitide_cli.runtime.kv_state import KvState
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.native_session import AudioFormat, NativeSession
from omnitide_cli.runtime.options import (
    EngineOptions,
    ModelFiles,
    PromptTemplate,
    check_policy,
    check_watermarks,
)
from omnitide_cli.runtime.recall import Found, Recall
from omnitide_cli.runtime.recaller import Recaller
from omnitide_cli.runtime.rehearsal import Rehearsal
from omnitide_cli.runtime.reports import SourceCounts, Totals, kv_bytes, migration, retention
from omnitide_cli.runtime.saved import SavedEngine, SavedTotals
from omnitide_cli.runtime.session_file import ARCHIVE, CHANGE, SessionFile
from omnitide_cli.runtime.sizing import PAGE_SIZE, SUBBLOCK_SIZE, check_low_watermark, choose_ctx
from omnitide_cli.runtime.step import Step
from omnitide_cli.runtime.stream_clock import StreamClock, iso_now
from omnitide_cli.runtime.stream_unit import StreamUnit
from omnitide_cli.runtime.template import TokenTemplate
from omnitide_cli.runtime.view import CELL_LETTERS


class Engine:
    """A model with an endless history. Use as a context manager."""

    def __init__(
        self, model: Model, session: NativeSession, template: TokenTemplate, name: str, options: EngineOptions
    ) -> None:
        self._model = model
        self._session = session
        self._template = template
        self._name = name
        self._options = options
        self._totals = Totals()
        self._clock = StreamClock()
        self._source_counts = SourceCounts()
        self._interrupted = False
        self._answering: Step[Answer] | None = None
        self._notices = standing_notices(model, options)
        self._recaller = Recaller.open(session, options, partial(model.tokenize, special=False))
        self._kept_archive: bytes | memoryview | None = None
        self._intake = Intake(session, template, name, options)
        self._rehearsal = Rehearsal(model, session, template, self._rearm)

    @classmethod
    def open(
        cls,
        files: ModelFiles,
        prompt: PromptTemplate,
        options: EngineOptions,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Engine:
        """Load a model. Raises ModelError when it can't be loaded or supported, UsageError for settings that clash."""
        check_watermarks(options)
        check_policy(options)
        model = Model(files, options, progress)
        try:
            template = TokenTemplate.of(prompt, model)
            check_low_watermark(options, len(template.system))
            model.open_context(options, choose_ctx(options, model))
            session = attach_session(model, options)
            try:
                return cls(model, session, template, files.name, options)
            except BaseException:
                session.close()
                raise
        except BaseException:
            model.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the current answer, then free the session and the model; harmless when called twice."""
        try:
            if self._answering is not None:
                self._answering.close()
        finally:
            self._session.close()
            self._model.close()

    @property
    def session(self) -> NativeSession:
        """The native session, for those who look inside."""
        return self._session

    @property
    def model(self) -> Model:
        """The loaded model."""
        return self._model

    @property
    def audio_format(self) -> AudioFormat | None:
        """What sound the model hears; None: none."""
        return self._intake.audio_format

    @property
    def recall(self) -> Recall | None:
        """The archive of what was cut, for those who look inside; None where what is cut is gone."""
        return self._recaller.recall if self._recaller else None

    def search(self, text: str) -> list[Found]:
        """Every archived unit, by age, with its share of the text's attention; first the history is brought below the
        low watermark, and what has to leave it is archived. Empty where nothing is. Raises CacheFull without room."""
        self._finish_answer()
        self._maintain(self._totals.last_unit)
        tokens = self._model.tokenize(text, special=False)
        return self.recall.search(tokens) if self.recall is not None and tokens else []

    @contextmanager
    def without_recall(self) -> Iterator[None]:
        """Ask meanwhile as if nothing were archived; what has been recalled stays until the next unit."""
        kept, self._recaller = self._recaller, None
        try:
            yield
        finally:
            self._recaller = kept

    # --- the stream

    def start(self, source: str, saved: SessionFile | None = None) -> Step[SessionStarted]:
        """Prefill the system prompt, or take a saved session up. Call once, before the first unit.

        Interrupted, it leaves no token. Raises SessionFileError when the saved session doesn't fit.
        """
        if saved is not None:
            self._session.restore(saved.state)
            archive = saved.sections.get(ARCHIVE)
            if archive is not None and self._recaller:
                self._recaller.restore(archive)
            else:
                self._kept_archive = archive
            if self._intake.gate is not None and CHANGE in saved.sections:
                self._intake.gate.restore(saved.sections[CHANGE])
            self._totals = Totals(**asdict(saved.saved.engine.totals))
        elif system := self._template.system:
            with suppress(Interrupted):
                self._session.begin("system")
                self._session.add_tokens("system", system)
                self._session.commit()
            self._rearm()
        now = self._see()
        options = self._options
        started = SessionStarted(
            version=omnitide_cli.__version__,
            model=self._name,
            source=source,
            policy=options.policy,
            layout=options.layout,
            positions=options.positions,
            high_watermark=options.high_watermark,
            low_watermark=options.low_watermark,
            n_ctx=now.n_cells,
            page_size=PAGE_SIZE,
            subblock_size=SUBBLOCK_SIZE,
            cache_type=options.cache_type,
            threads=self._model.threads,
            flash_attn=bool(now.flash_attention),
            resumed_at=None if saved is None else saved.saved.media.clock,
            wall=iso_now(),
        )
        return Step(SessionStarted, [started])

    def ingest(self, unit: StreamUnit) -> Step[UnitIngested]:
        """Take one media unit into the history, then maintain it. An interrupted unit leaves no event and no token.

        Raises ModelError for a sense that the model lacks, UsageError or ValueError for a picture or a sound of another
        shape, CacheFull where nothing may be evicted (policy `full`) or the unit alone is too large for the cache, and
        RuntimeFailure when the model fails; but for the last, the history is as it was and the session may go on.
        """
        self._finish_answer()
        began = time.perf_counter()
        try:
            taken = self._intake.take(unit)
        except Interrupted:
            self._rearm()
            return Step(UnitIngested, [])
        notices, self._notices = [*self._notices, *taken.notices], []
        if self._recaller and taken.unit is not None:
            notices += self._recaller.notices()
        self._clock.take(unit)
        self._source_counts.add(unit)
        self._see()
        maintenance, maintain_ms = self._maintain(unit.index)
        totals = self._totals
        totals.units += 1
        totals.last_unit = unit.index
        totals.media_s += unit.end - unit.start
        totals.encode_s += taken.encode_ms / 1000
        totals.prefill_s += taken.prefill_ms / 1000
        totals.pictures += taken.picture == "new"
        totals.same_pictures += taken.picture == "same"
        totals.saved_tokens += taken.saved_tokens
        now = self._see()
        ingested = UnitIngested(
            index=unit.index,
            start=round(unit.start, 6),
            end=round(unit.end, 6),
            tokens=taken.tokens,
            history_tokens=now.history_tokens,
            page_span=now.layout.page_span,
            physical_span=now.layout.physical_span,
            encode_ms=taken.encode_ms,
            prefill_ms=taken.prefill_ms,
            maintain_ms=maintain_ms,
            lag_ms=self._clock.lag_ms(),
            dropped_frames=unit.dropped_frames,
            wall=self._clock.wall(unit.end),
            picture=taken.picture,
            saved_tokens=taken.saved_tokens,
        )
        if taken.look is not None and taken.look.is_cut:
            notices.append(Scene(unit.index, ingested.start, round(taken.look.similarity, 4), ingested.wall))
        totals.loop_s += time.perf_counter() - began
        self._rearm()
        return Step(UnitIngested, [*notices, ingested, *maintenance])

    # --- answers

    def ask(self, question: str, at: float) -> Step[Answer]:
        """Ask, and report the answer as it is generated. `at`: media seconds.

        An answer that is interrupted, or whose reader stops iterating, stays in the history as far as it was spoken.
        Reading raises CacheFull where nothing may be evicted (policy `full`) and there is no room for the question;
        other policies report one that is too long, and don't ask it. It raises RuntimeFailure when the model fails.
        """
        self._finish_answer()
        self._answering = Step(Answer, self._answer(question, at), self._stop_answer)
        return self._answering

    def _stop_answer(self) -> None:
        self._interrupted = True

    def _finish_answer(self) -> None:
        """An answer that nobody read to its end has one, with its upkeep, before anything else begins."""
        answering, self._answering = self._answering, None
        if answering is not None:
            answering.finish()
            self._rearm()

    def _answer(self, question: str, at: float) -> Generator[Event]:
        began = time.perf_counter()
        exchange = Exchange(
            self._model, self._session, self._template, self._options, self._recaller, lambda: self._interrupted
        )
        yield from exchange.run(question, at)
        if exchange.is_refused:
            return
        self._rearm()
        ended = time.perf_counter()
        totals = self._totals
        totals.answers += 1
        totals.answer_s += ended - began
        self._see()
        yield exchange.answer(began, ended, unit=totals.last_unit, wall=self._clock.wall(at))
        maintaining = time.perf_counter()
        maintenance, _ = self._maintain(totals.last_unit)
        totals.loop_s += (ended - began) + (time.perf_counter() - maintaining)
        yield from maintenance

    # --- what is rehearsed, and leaves no trace

    @property
    def rehearsal(self) -> Rehearsal:
        """Questions that are never asked, of which no trace stays. Between two calls of the engine."""
        self._finish_answer()
        return self._rehearsal

    def wall(self, at: float) -> str | None:
        """The time of day at a media second, as events carry it; None for what isn't live."""
        return self._clock.wall(at)

    def interrupt(self) -> None:
        """Stop the current answer after its token, or take back the pending unit. Signal-safe, any thread."""
        self._interrupted = True
        self._session.interrupt()

    def _rearm(self) -> None:
        """What was running is over: an interruption must not reach what comes next."""
        self._interrupted = False
        self._session.interrupt(False)

    # --- maintenance and sums

    def _maintain(self, unit: int) -> tuple[list[Event], float]:
        began, began_at = time.perf_counter(), time.monotonic()
        events: list[Event] = []
        for done in (*self._session.take_forced(), self._session.maintain()):
            if done.retained:
                events += [retention(unit, done), migration(unit, done)]
                self._totals.add_maintenance(done)
                self._intake.shortened()
        elapsed = time.perf_counter() - began
        self._totals.maintain_s += elapsed
        self._clock.upkeep(began_at, time.monotonic())
        return events, elapsed * 1000

    def _see(self) -> Any:
        now = self._session.snapshot()
        self._totals.see(now)
        return now

    # --- saving

    @property
    def can_save(self) -> bool:
        """Not on llama.cpp's own memory, which `--policy full` falls back to."""
        return self._session.is_managed

    def save(self) -> tuple[SavedEngine, NDArray[np.uint8]]:
        """The session as it is between units and answers: its sums, and the native state. An answer that is being read
        is cut short. Raises ModelError unless `can_save`.
        """
        self._finish_answer()
        if self._recaller:
            self._recaller.recall.dismiss()
        used = np.flatnonzero(self._session.cells())
        totals = SavedTotals(**asdict(self._totals))
        cells, end = self._session.snapshot().n_cells, int(used[-1]) + 1 if used.size else 0
        return SavedEngine(cells, end, totals), self._session.save()

    def save_sections(self) -> dict[bytes, bytes | memoryview]:
        """What goes into a session file beside the state, by tags of sections: the archive with its rows (one that a
        session without recall found in its own file stays as it was), and what the next pictures are compared with."""
        sections: dict[bytes, bytes | memoryview] = {}
        if self._recaller:
            sections |= self._recaller.save()
        elif self._kept_archive is not None:
            sections[ARCHIVE] = self._kept_archive
        if self._intake.gate is not None and (seen := self._intake.gate.to_bytes()):
            sections[CHANGE] = seen
        return sections

    def summary(self) -> Summary:
        """The session so far, complete."""
        return self._totals.summary(self._see(), self._source_counts, self._clock.idle_s)

    def kv_state(self, name: str) -> KvState:
        """The cache at this moment, in full, under the session's name."""
        return self._session.kv_state(
            name,
            page_size=PAGE_SIZE,
            subblock_size=SUBBLOCK_SIZE,
            peak=self._totals.peak_span,
            kv_bytes=kv_bytes(self._see()),
            running=True,
        )

    def cell_letters(self) -> bytes:
        """Class of every cell at this moment, one letter each as in `KvState.cell_map`."""
        return self._session.cells().tobytes().translate(CELL_LETTERS)

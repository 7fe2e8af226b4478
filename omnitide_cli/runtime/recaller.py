"""What an engine does for recall around its units and questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from omnitide_cli.errors import CacheFull, ModelError
from omnitide_cli.runtime.events import Notice, Recalled, RecalledMoment
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.recall import Found, Recall, RecallSettings, Recollection
from omnitide_cli.runtime.session_file import ARCHIVE

CLOSE_S = 0.05  # units that follow each other within this are one moment


@dataclass(slots=True)
class Recaller:
    """The archive of one session and what the engine notes in it."""

    recall: Recall
    _notices: list[Notice] = field(default_factory=list)
    _has_told: bool = False
    _unsearchable: str = ""

    @classmethod
    def open(
        cls, session: NativeSession, options: EngineOptions, tokenize: Callable[[str], list[int]]
    ) -> Recaller | None:
        """None where the options, or the model's memory, have it otherwise. Raises UsageError for layers that the model
        doesn't have."""
        if options.recall_budget == 0 or not session.is_managed:
            return None
        folder, file = options.archive_folder, None
        if folder is not None and options.archive_disk > 0:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = folder / f"rows-{id(session):x}-{time.time_ns()}"
        settings = RecallSettings(
            layers=options.recall_layers,
            tokens=options.recall_budget,
            threshold=options.recall_threshold,
            memory=options.archive_memory,
            disk=options.archive_disk if file else 0,
            file=file,
            reference=tuple(tokenize(options.recall_reference)) if options.recall_reference else (),
        )
        try:
            return cls(Recall(session, settings))
        except ModelError:
            return None

    # --- saved sessions

    def save(self) -> dict[bytes, memoryview]:
        """The section of the session file that holds the archive."""
        return {ARCHIVE: self.recall.save().data}

    def restore(self, section: bytes | memoryview) -> None:
        """Take the archive of the session that was taken up. Raises SessionFileError where it is damaged; what these
        layers can't search is told of, and the session goes on without."""
        try:
            self.recall.restore(section)
        except ModelError as error:
            hint = "questions find what is archived from now on"
            self._notices.append(Notice("archive-not-resumed", f"nothing older is recalled: {error.message}", hint))

    # --- what is noted

    def note_words(self, unit: int, words: str) -> None:
        """Keep what a question or an answer says."""
        self.recall.note(unit, words=words)

    # --- questions

    def before(self, question: str, tokens: Sequence[int], at: float, *, reserved: int) -> Recalled | None:
        """Put back what a question asks for; the event that tells of it, or None where there is no room to look."""
        if self._unsearchable:
            return None
        try:
            done = self.recall.for_question(tokens, reserved=reserved)
        except CacheFull:  # it says so itself when it is asked
            return None
        except ModelError as error:  # its graph doesn't show what the question looks for
            self._unsearchable = error.message
            return None
        return event_of(question, at, done)

    def notices(self) -> list[Notice]:
        """What the user should know, once: rows that can't go to disk stay in memory, and fewer of them."""
        if self._notices:
            told, self._notices = self._notices, []
            return told
        if self._unsearchable and not self._has_told:
            self._has_told = True
            message = f"nothing is recalled: {self._unsearchable}"
            return [Notice("recall-not-possible", message, "leave out --recall-tokens")]
        problem = "" if self._has_told else self.recall.problem()
        if not problem:
            return []
        self._has_told = True
        hint = "the session goes on; older seconds are kept in less detail. Free space, or lower --archive-disk"
        return [Notice("archive-not-on-disk", f"nothing more is archived on disk: {problem}", hint)]


def event_of(question: str, at: float, done: Recollection) -> Recalled:
    """A recall as the event that tells of it."""
    return Recalled(
        at=at,
        question=question,
        verdict=done.verdict,
        clearness=round(done.clearness, 4),
        tokens=done.tokens,
        searched=done.searched,
        oldest=done.oldest_s if done.searched else None,
        moments=moments(done.units),
        search_ms=done.search_ms,
        insert_ms=done.insert_ms,
    )


def moments(units: Sequence[Found]) -> tuple[RecalledMoment, ...]:
    """Units in the order of time, those that follow each other as one; a question and its answer last no time."""
    joined: list[RecalledMoment] = []
    for unit in units:
        last = joined[-1] if joined else None
        if last is not None and unit.start_s - last.end <= CLOSE_S:
            joined[-1] = RecalledMoment(last.start, max(last.end, unit.end_s), last.score + unit.score)
        else:
            joined.append(RecalledMoment(unit.start_s, unit.end_s, unit.score))
    return tuple(RecalledMoment(each.start, each.end, round(each.score, 6)) for each in joined)

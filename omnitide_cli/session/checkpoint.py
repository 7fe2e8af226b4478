"""Sessions that survive: saved at the end, when asked to, and every now and then in case the process is killed."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnitide_cli.catalog.folders import expanded
from omnitide_cli.errors import OmniTideError, RuntimeFailure, UsageError
from omnitide_cli.runtime.events import Notice, SessionSaved
from omnitide_cli.runtime.journal import Journal
from omnitide_cli.runtime.saved import Saved, SavedMedia, SavedModel, SavedOptions
from omnitide_cli.runtime.session_file import JOURNAL, SessionFile, check_writable, write_session
from omnitide_cli.session import saves

if TYPE_CHECKING:
    from omnitide_cli.formats.sink import Sink
    from omnitide_cli.media import MediaUnit, SourcePosition
    from omnitide_cli.runtime.engine import Engine
    from omnitide_cli.session.schedule import Schedule


LEAST_APART = 50
"""Checkpoints are so many times farther apart than the session waits for one: a large archive is copied for long."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What of a session stays the same while it runs; `media` says where it begins."""

    version: str
    model: SavedModel
    options: SavedOptions
    media: SavedMedia


class Checkpointer:
    """Saves one session. All calls are the engine's thread's, between units and answers; disks are waited for in
    another, so that a checkpoint costs the stream no more than a copy of the cache's used rows and of the archive."""

    def __init__(
        self,
        engine: Engine,
        identity: Identity,
        schedule: Schedule,
        sink: Sink,
        position_after: Callable[[MediaUnit], SourcePosition],
        *,
        file: Path | None,
        every_s: float,
        resumed_from: Path | None = None,
        journal: Journal | None = None,
    ) -> None:
        """`position_after` says where the source resumes after a unit. `file` is written at the end, and meanwhile
        every `every_s` seconds (0: never); without it checkpoints go into the user's state folder, where a session goes
        on with the one that it was `resumed_from`. Raises UsageError where nothing can be saved."""
        self._engine = engine
        self._identity = identity
        self._schedule = schedule
        self._sink = sink
        self._place_after = position_after
        self._journal = journal or Journal()
        self._file = file
        self._every_s = every_s if engine.can_save else 0.0
        self._adopted = resumed_from if resumed_from is not None and saves.is_checkpoint(resumed_from) else None
        self._checkpoint = file or self._adopted or saves.checkpoint_path(identity.media.source)
        self._claim: saves.Claim | None = None
        self._place: SavedMedia = identity.media
        self._written_at = identity.media.clock
        self._latest = time.monotonic()
        self._taking_s = 0.0
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[float] | None = None
        self._has_written = self._has_failed = self._is_finished = False
        if file is not None and not engine.can_save:
            raise UsageError("a session on llama.cpp's own memory can't be saved", "leave out --save-session")
        if self._adopted is not None:
            self._take_over(self._adopted)

    @property
    def saves(self) -> bool:
        """Whether the session will be in a file when it is ended early."""
        return self._file is not None or self._has_written or self._writing is not None

    @property
    def left_by_a_kill(self) -> str:
        """The file that the session goes on from if it is killed, once it is there; empty: none will be."""
        return str(self._checkpoint.absolute()) if self._every_s > 0 or self._adopted is not None else ""

    def took(self, unit: MediaUnit) -> None:
        """A unit is in the history."""
        self._place = moved(self._identity.media, self._place_after(unit))

    def rest(self) -> None:
        """Nothing is unfinished: write a checkpoint if one is due and the last one is on disk."""
        if self._every_s <= 0 or time.monotonic() - self._latest < max(self._every_s, self._taking_s * LEAST_APART):
            return
        if self._writing is not None and not self._writing.done():
            return
        self._collect()
        self._latest = time.monotonic()
        session = self._session()
        self._taking_s = time.monotonic() - self._latest
        self._writing = self._writer.submit(self._write_checkpoint, session, self._place.clock)

    def save(self, name: str) -> None:
        """`/save FILE`. Raises UsageError or RuntimeFailure."""
        if not name:
            raise UsageError("/save needs a file name", "for example /save monday.tide")
        if not self._engine.can_save:
            raise UsageError("a session on llama.cpp's own memory can't be saved", "run it without --policy full")
        path = expanded(name)
        check_writable(path, "/save")
        write_session(path, self._session())
        saves.remember(path)
        self._tell(path, self._place.clock)

    def finish(self, *, ended: bool, failed: bool = False) -> None:
        """The session is over; `ended`: by itself, so that its own checkpoint is of no more use. Only once.

        `failed`: the engine may be in no state to be saved, but the last checkpoint was. Raises RuntimeFailure when the
        file can't be written; then the session is in the state folder, if there is room.
        """
        if self._is_finished:
            return
        self._is_finished = True
        self._writer.shutdown()
        self._collect()
        try:
            if self._file is not None:
                self._save_to(self._file)
            elif ended:
                if self._has_written or self._adopted is not None:
                    saves.forget(self._checkpoint)
            elif self._has_written or self._adopted is not None:
                self._keep_checkpoint(fresh=not failed)
        finally:
            if self._claim:
                self._claim.release()

    def abandon(self) -> None:
        """The session never began: nothing is saved, and a checkpoint that was taken over is left as it was."""
        if not self._is_finished:
            self._is_finished = True
            self._writer.shutdown()
            if self._claim:
                self._claim.release()

    def _save_to(self, file: Path) -> None:
        session = self._session()
        try:
            write_session(file, session)
        except RuntimeFailure as error:
            elsewhere = saves.checkpoint_path(self._identity.media.source)
            try:
                saves.make_room(elsewhere.parent)
                write_session(elsewhere, session)
            except (OmniTideError, OSError):
                raise error from None
            self._tell(elsewhere, self._place.clock)
            raise RuntimeFailure(error.message, f"the session is in {elsewhere} instead") from error
        saves.remember(file)
        self._forget_adopted()
        self._tell(file, self._place.clock)

    def _keep_checkpoint(self, *, fresh: bool) -> None:
        """Ended early: the checkpoint stays, as new as it can be, and is told."""
        if fresh and self._place.clock != self._written_at:
            with suppress(OmniTideError, OSError):  # the older one is still there
                self._written_at = self._write_checkpoint(self._session(), self._place.clock)
        self._tell(self._checkpoint, self._written_at)

    def _session(self) -> SessionFile:
        engine, state = self._engine.save()
        identity = self._identity
        questions = self._schedule.saved()
        saved = Saved(identity.version, identity.model, identity.options, self._place, questions, engine)
        return SessionFile(saved, state, {JOURNAL: self._journal.to_bytes(), **self._engine.save_sections()})

    def _write_checkpoint(self, session: SessionFile, clock: float) -> float:
        if self._file is None:
            saves.make_room(self._checkpoint.parent)
            if self._claim is None:
                self._claim = saves.Claim(self._checkpoint)
        write_session(self._checkpoint, session)
        if self._file is not None:
            self._forget_adopted()
        return clock

    def _forget_adopted(self) -> None:
        """What is in the file now is newer than the checkpoint that was taken over, unless it is that file."""
        if self._adopted is not None and self._file is not None and self._adopted.resolve() != self._file.resolve():
            saves.forget(self._adopted)

    def _collect(self) -> None:
        """Take notice of how the last checkpoint went; one that failed is told once, and tried again."""
        writing, self._writing = self._writing, None
        if writing is None:
            return
        try:
            self._written_at = writing.result()
            self._has_written, self._has_failed = True, False
        except (OmniTideError, OSError) as error:
            if not self._has_failed:
                message = f"no checkpoint could be written: {getattr(error, 'strerror', None) or error}"
                hint = f"it is tried again every {self._every_s:g} s; /save FILE saves the session elsewhere"
                self._sink.emit(Notice("no-checkpoints", message, hint))
            self._has_failed = True

    def _take_over(self, checkpoint: Path) -> None:
        """Go on in the checkpoint of a killed session, unless another session does so already."""
        try:
            self._claim = saves.Claim(checkpoint)
        except OSError:
            self._adopted = None
            self._checkpoint = self._file or saves.checkpoint_path(self._identity.media.source)

    def _tell(self, path: Path, clock: float) -> None:
        self._sink.emit(SessionSaved(str(path), clock))


def moved(media: SavedMedia, place: SourcePosition) -> SavedMedia:
    """The same source at another moment."""
    return replace(media, position=place.position, clock=place.clock, index=place.index, loop=place.loop)

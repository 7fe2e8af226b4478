"""Sessions that survive: saved at the end, when asked to, and every now and then in case the process is killed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnitide_cli.catalog.folders import state_dir
from omnitide_cli.errors import OmniTideError, UsageError
from omnitide_cli.runtime.events import Notice, SessionSaved
from omnitide_cli.runtime.saved import Saved, SavedMedia, SavedModel, SavedOptions
from omnitide_cli.runtime.session_file import SessionFile, check_writable, write_session

if TYPE_CHECKING:
    from omnitide_cli.formats.sink import Sink
    from omnitide_cli.media import MediaUnit, SourcePosition
    from omnitide_cli.runtime.engine import Engine
    from omnitide_cli.session.schedule import Schedule

KEPT = 4  # checkpoints of sessions that did not end by themselves
SUFFIX = ".tide"


@dataclass(frozen=True, slots=True)
class Identity:
    """What of a session stays the same while it runs; `media` says where it begins."""

    version: str
    model: SavedModel
    options: SavedOptions
    media: SavedMedia


class Checkpointer:
    """Saves one session. All calls are the engine's thread's, between units and answers; disks are waited for in
    another, so that a checkpoint costs the stream no more than a copy of the cache's used rows."""

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
    ) -> None:
        """`position_after` says where the source resumes after a unit. `file` is written at the end, and meanwhile
        every `every_s` seconds (0: never); without it checkpoints go into the user's state folder. Raises UsageError
        where nothing can be saved."""
        self._engine = engine
        self._identity = identity
        self._schedule = schedule
        self._sink = sink
        self._place_after = position_after
        self._file = file
        self._every_s = every_s if engine.can_save else 0.0
        self._checkpoint = file or checkpoint_path(identity.media.source)
        self._place: SavedMedia = identity.media
        self._latest = time.monotonic()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
        self._writing: Future[None] | None = None
        self._has_written = False
        if file is not None and not engine.can_save:
            raise UsageError("a session on llama.cpp's own memory can't be saved", "leave out --save-session")

    def took(self, unit: MediaUnit) -> None:
        """A unit is in the history."""
        self._place = moved(self._identity.media, self._place_after(unit))

    def rest(self) -> None:
        """Nothing is unfinished: write a checkpoint if one is due and the last one is on disk."""
        if self._every_s <= 0 or time.monotonic() - self._latest < self._every_s:
            return
        if self._writing is not None and not self._writing.done():
            return
        self._collect()
        if self._every_s > 0:
            self._latest = time.monotonic()
            session = self._session()
            self._writing = self._writer.submit(self._write_checkpoint, session)

    def save(self, name: str) -> None:
        """`/save FILE`. Raises UsageError or RuntimeFailure."""
        if not name:
            raise UsageError("/save needs a file name", "for example /save monday.tide")
        if not self._engine.can_save:
            raise UsageError("a session on llama.cpp's own memory can't be saved", "run it without --policy full")
        path = Path(name).expanduser()
        check_writable(path, "/save")
        write_session(path, self._session())
        self._tell(path)

    def finish(self, *, ended: bool) -> None:
        """The session is over; `ended`: by itself, so that its own checkpoint is of no more use.

        Raises RuntimeFailure when the file can't be written.
        """
        self._writer.shutdown()
        self._collect()
        if self._file is not None:
            write_session(self._file, self._session())
            self._tell(self._file)
        elif self._has_written and ended:
            with suppress(OSError):
                self._checkpoint.unlink()
        elif self._has_written:
            self._tell(self._checkpoint)

    def _session(self) -> SessionFile:
        engine, state = self._engine.save()
        identity = self._identity
        questions = self._schedule.saved()
        saved = Saved(identity.version, identity.model, identity.options, self._place, questions, engine)
        return SessionFile(saved, state)

    def _write_checkpoint(self, session: SessionFile) -> None:
        if self._file is None:
            make_room(self._checkpoint.parent)
        write_session(self._checkpoint, session)

    def _collect(self) -> None:
        """Take notice of how the last checkpoint went; one that failed is the last."""
        writing, self._writing = self._writing, None
        if writing is None:
            return
        try:
            writing.result()
            self._has_written = True
        except (OmniTideError, OSError) as error:
            self._every_s = 0
            message = f"checkpoints have stopped: {error}"
            self._sink.emit(Notice("no-checkpoints", message, "the session continues; /save FILE saves it elsewhere"))

    def _tell(self, path: Path) -> None:
        self._sink.emit(SessionSaved(str(path), self._place.clock))


def moved(media: SavedMedia, place: SourcePosition) -> SavedMedia:
    """The same source at another moment."""
    return replace(media, position=place.position, clock=place.clock, index=place.index, loop=place.loop)


def checkpoint_path(source: str) -> Path:
    """Where a session without a file of its own leaves checkpoints; its name tells source and time."""
    stem = re.sub(r"[^\w-]+", "-", Path(source).stem)[-40:].strip("-") or "stream"
    stamp = time.strftime("%Y%m%d-%H%M%S")
    return state_dir() / "checkpoints" / f"{stem}-{stamp}-{os.getpid()}{SUFFIX}"


def make_room(folder: Path) -> None:
    """Make the folder of checkpoints, for its owner alone; of old ones, the newest stay."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):  # another session may do the same
        files = sorted((path.stat().st_mtime, path) for path in folder.glob(f"*{SUFFIX}"))
        for _, path in files[: -(KEPT - 1)]:
            path.unlink()

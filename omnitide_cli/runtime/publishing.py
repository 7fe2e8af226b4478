"""A running session's snapshots for `inspect-kv`: written while it runs, and once more when it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from omnitide_cli.addresses import short_name
from omnitide_cli.errors import OmniTideError
from omnitide_cli.runtime.events import Answer, Event, Migration, Retention, SessionStarted, UnitIngested
from omnitide_cli.runtime.kv_state import KvState, Moment, SessionSnapshot
from omnitide_cli.runtime.published import lock, open_folder, prune
from omnitide_cli.runtime.snapshot_file import write_snapshot
from omnitide_cli.runtime.timeline import Timeline

LEAST_INTERVAL_S = 0.25
RETRY_S = 10.0
COST_SHARE = 1 / 250
"""The most of the time that publishing may take."""


class Publisher:
    """Remembers what a snapshot tells; `offer` writes one when the last is old enough for what it cost.

    Nothing that goes wrong here reaches the session: `problem` says it.
    """

    def __init__(self, folder: Path, look: Callable[[str], KvState]) -> None:
        """`look` gives the cache at this moment under a session's name; called from the session's thread alone."""
        self._folder = folder
        self._look = look
        self._timeline = Timeline()
        self._snapshot: SessionSnapshot | None = None
        self._path: Path | None = None
        self._lock: int | None = None
        self._next = 0.0
        self.problem = ""
        """Why nothing could be published; it is tried again."""
        self.checkpoint = ""
        """The file from which the session goes on if it is killed."""

    def emit(self, event: Event) -> None:
        """Take an event in; the first makes the session known."""
        if isinstance(event, SessionStarted):
            self._start(event)
        known = self._snapshot
        if known is None:
            return
        match event:
            case UnitIngested():
                self._snapshot = replace(
                    known,
                    unit=event,
                    clock=event.end,
                    pictures=known.pictures + (event.picture == "new"),
                    same_pictures=known.same_pictures + (event.picture == "same"),
                    saved_tokens=known.saved_tokens + event.saved_tokens,
                )
                spans = (event.history_tokens, event.page_span, event.physical_span)
                self._timeline.add(Moment(event.end, *spans))
            case Retention():
                self._snapshot = replace(known, retention=event, retentions=known.retentions + 1)
            case Migration():
                self._snapshot = replace(known, migration=event)
            case Answer():
                self._snapshot = replace(known, answers=known.answers + 1)
            case _:
                pass

    def offer(self, *, now: bool = False) -> None:
        """Publish unless it is too early; `now`: nothing may come for long. Call between updates, all events told."""
        if now or time.monotonic() >= self._next:
            self._publish()

    def close(self) -> None:
        """Publish the last state and let go; harmless when called twice."""
        if self._snapshot:
            self._snapshot = replace(self._snapshot, ended=True)
            self._publish()
        self._snapshot = None
        if self._lock is not None:
            if self._path:
                with suppress(OSError):
                    self._path.with_suffix(".lock").unlink(missing_ok=True)
            os.close(self._lock)
        self._lock = None

    def snapshot(self) -> SessionSnapshot | None:
        """The session as it is now, be it published or not; None before it starts."""
        known = self._snapshot
        return known and replace(
            known,
            state=self._look(known.state.session),
            moments=self._timeline.moments(),
            moment_units=self._timeline.units_each,
            checkpoint=self.checkpoint,
            written=time.time(),
        )

    def _start(self, about: SessionStarted) -> None:
        name, now = f"{short_name(about.source)}-{os.getpid()}", time.time()
        self._snapshot = SessionSnapshot(self._look(name), about, pid=os.getpid(), started=now, written=now)
        try:
            open_folder(self._folder)
            prune(self._folder)
            while (held := lock(self._folder / f"{name}.lock")) is None:
                name += "-again"  # another session of this process, with the same source
            self._lock, self._path = held, self._folder / f"{name}.json"
            self._snapshot = replace(self._snapshot, state=replace(self._snapshot.state, session=name))
            self._publish()
        except (OSError, OmniTideError) as error:
            self._give_up(error)

    def _publish(self) -> None:
        if self._path is None:
            return
        began = time.thread_time()  # not the wall's: others may have the processor meanwhile
        pause = LEAST_INTERVAL_S
        try:
            self._snapshot = self.snapshot()
            if self._snapshot:
                write_snapshot(self._path, self._snapshot)
        except OSError as error:  # a full disk, which may have room later
            self._note(error)
            pause = RETRY_S
        except OmniTideError as error:
            self._give_up(error)
        self._next = time.monotonic() + max(pause, (time.thread_time() - began) / COST_SHARE)

    def _give_up(self, error: Exception) -> None:
        self._note(error)
        self._path = None

    def _note(self, error: Exception) -> None:
        self.problem = f"{self._folder}: {getattr(error, 'strerror', None) or error}"

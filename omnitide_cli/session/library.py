"""OmniTide as a library: a model that is fed media units and asked, from one thread, without a command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.alerts.rule import Rule, parse_rule
from omnitide_cli.alerts.watcher import Watcher
from omnitide_cli.catalog.files import fetch_files, find_manifest
from omnitide_cli.catalog.folders import runtime_dir
from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.errors import CacheFull, OmniTideError, SessionFileError, UsageError
from omnitide_cli.media import MediaUnit, SourcePosition
from omnitide_cli.media.unit import NO_SOUND
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Alert, Answer, AnswerDelta, Event, Notice, SessionStarted, Summary, UnitIngested
from omnitide_cli.runtime.journal import Journal
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.runtime.publishing import Publisher
from omnitide_cli.runtime.saved import Saved, SavedMedia, SavedQuestions
from omnitide_cli.runtime.session_file import JOURNAL, SessionFile, check_writable, write_session
from omnitide_cli.runtime.stream_unit import StreamUnit
from omnitide_cli.session.checkpoint import moved
from omnitide_cli.session.configuration import check_sound, engine_options, frame_fit, sound_format, with_recall
from omnitide_cli.session.event_queue import EventQueue
from omnitide_cli.session.library_options import Options, settings
from omnitide_cli.session.resume import Resumption, identity, saved_model

StrPath = str | os.PathLike[str]
E = TypeVar("E", bound=Event)


def load(
    model: StrPath | None = None,
    *,
    mmproj: StrPath | None = None,
    system: str | None = None,
    unit_seconds: float = 1.0,
    image_tokens: int | None = None,
    progress: Callable[[float], None] | None = None,
    **options: Unpack[Options],
) -> Session:
    """Load a model for a new session; a file that isn't here yet is downloaded once.

    `model`: a known model's name, or the path of a .gguf file or of a manifest; None is the small one that OmniTide
    ships. `mmproj`: the encoders of a .gguf file. `system`: the system text in place of the model's own.
    `unit_seconds`: how much media a unit holds (0.1 … 30). `image_tokens`: the most tokens of a frame.
    `progress` hears how much of the model is loaded, 0 … 1.

    Raises ModelError for a model that can't be found, fetched, loaded or supported, UsageError for options that clash.
    """
    name = None if model is None else os.fspath(model)
    manifest = find_manifest(name, None if mmproj is None else os.fspath(mmproj))
    _check_unit_seconds(unit_seconds)
    chosen = engine_options(manifest, settings(options), unit_seconds=unit_seconds, image_tokens=image_tokens)
    chosen = with_recall(manifest, chosen)
    return _opened(name, manifest, mmproj, system, chosen, unit_seconds, image_tokens, None, progress)


def open_session(
    path: StrPath,
    *,
    model: StrPath | None = None,
    mmproj: StrPath | None = None,
    progress: Callable[[float], None] | None = None,
    **options: Unpack[Options],
) -> Session:
    """Resume a session that `Session.save`, `--save-session`, `/save` or a checkpoint has written.

    What it was saved with stays, but for the `options` given; `cache_type` can't change. `read` for the session goes on
    where the source was left. `model` and `mmproj` say where the model's files are now, if they aren't where they were.

    Raises SessionFileError for a file that can't be read or was saved with another model; else as `load`.
    """
    resumption = Resumption(Path(path))
    media = resumption.saved.media
    name = resumption.saved.model.name if model is None else os.fspath(model)
    manifest = find_manifest(name, None if mmproj is None else os.fspath(mmproj))
    chosen = engine_options(
        manifest,
        resumption.options(dict.fromkeys(Options.__annotations__) | settings(options)),
        unit_seconds=media.unit_seconds,
        image_tokens=media.image_tokens,
    )
    system = resumption.system(None)
    chosen = with_recall(manifest, chosen)
    return _opened(name, manifest, mmproj, system, chosen, media.unit_seconds, media.image_tokens, resumption, progress)


class Session:
    """A loaded model with an endless history. Made by `load` or `open_session`; a context manager; for one thread.

    Media goes in unit by unit and is forgotten piece by piece as the watermarks say; a question can be asked at any
    moment. What it does is told as events (`omnitide_cli.events`).
    """

    def __init__(
        self,
        engine: Engine,
        manifest: Manifest,
        files: ModelFiles,
        options: EngineOptions,
        *,
        name: str | None,
        system_text: str,
        unit_seconds: float,
        image_tokens: int | None,
        resumption: Resumption | None = None,
    ) -> None:
        self.manifest = manifest
        """What is known of the model."""
        self.options = options
        """The settings that it runs with."""
        self.unit_seconds = unit_seconds
        """Seconds of media in a unit."""
        self.image_tokens = image_tokens
        """The most tokens of a frame; None: the model's own."""
        self.source = resumption.saved.media.source if resumption else "python"
        """What it is called in events and saved files; `read` and `open_live` set it before the first unit."""
        self.events = EventQueue()
        """What happened."""
        self.resumption: Resumption | None = resumption
        """The saved session that it goes on from, until a source is opened for it."""
        self._file = resumption.file if resumption else None
        self._questions = resumption.saved.questions if resumption else SavedQuestions()
        self._journal = resumption.journal if resumption else Journal()
        self._engine = engine
        self._watcher = Watcher(engine)
        self._files, self._name, self._system_text = files, name, system_text
        self._published = Publisher(runtime_dir(), engine.kv_state)
        self._media = resumption.saved.media if resumption else self._own_units()
        self._place_after: Callable[[MediaUnit], SourcePosition] | None = None
        self._begun = False
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Tell the summary, then free the model; harmless when called twice."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._begun:
                with suppress(OmniTideError):  # the engine may be what failed
                    self._tell([self.summary()], Summary)
        finally:
            self._published.close()
            self._engine.close()

    @property
    def clock(self) -> float:
        """Media seconds that the session has come to; questions are asked at this moment."""
        return self._media.clock

    @property
    def next_index(self) -> int:
        """The number of the next unit."""
        return self._media.index

    def add(self, unit: StreamUnit) -> UnitIngested | None:
        """Take a unit into the history and maintain it; None if `interrupt` took the unit back.

        `unit`: what `read` and `open_live` give, or one made by `unit`. Raises ModelError for a sense that the model
        lacks, CacheFull where nothing may be evicted and there is no room, RuntimeFailure when the model fails.
        """
        self._begin()
        self._journal.saw(unit)
        taken = self._tell(self._engine.ingest(unit), UnitIngested)
        if taken is not None:
            self._came_to(unit)
            self._published.offer()
            self._tell(self._watcher.after(unit), Alert)
        return taken

    def alert(self, rule: str | Rule, on_alert: Callable[[Alert], object] | None = None) -> None:
        """Wait for something from now on: `Alert` and `AlertEnded` come among the events behind the unit that it
        happened in, and `on_alert` is called with the former. Nothing that is asked for it stays in the history.

        `rule`: a yes-or-no question, "NAME=QUESTION", or a `Rule` with settings; its `command` is for the command line
        alone. Raises UsageError for a name that stands already, ModelError where the model can't tell yes from no.
        """
        made = parse_rule(rule) if isinstance(rule, str) else rule
        self._watcher.add(made)
        if on_alert is not None:
            hears = on_alert

            def heard(event: Event) -> None:
                if isinstance(event, Alert) and event.rule == made.name:
                    hears(event)

            self.events.subscribe(heard)

    def unit(
        self,
        frame: NDArray[np.uint8] | None = None,
        audio: NDArray[np.float32] | None = None,
        *,
        seconds: float | None = None,
    ) -> MediaUnit:
        """A unit of one's own, right behind the newest: for pictures and sounds that come from elsewhere.

        `frame`: [H, W, 3] RGB of any size, put on the model's canvas here. `audio`: [n] mono, −1 … 1, at the
        rate that the model hears (16 kHz for all known ones).
        `seconds` it lasts; None: as long as its sound, or `unit_seconds` where there is none.
        Raises UsageError for arrays of another shape.
        """
        rate = sound_format(self.manifest).rate
        if frame is not None and (frame.ndim != 3 or frame.shape[2] != 3 or not frame.size):
            raise UsageError(f"a frame of shape {frame.shape} is no picture", "give an array [height, width, 3] of RGB")
        if audio is not None and audio.ndim != 1:
            raise UsageError(
                f"sound of shape {audio.shape} is not mono", f"give an array [samples] at {rate / 1000:g} kHz"
            )
        length = seconds or (len(audio) / rate if audio is not None and len(audio) else self.unit_seconds)
        return MediaUnit(
            index=self.next_index,
            start=self.clock,
            end=self.clock + length,
            frame=None if frame is None else frame_fit(self.manifest, self.image_tokens).fit(frame),
            audio=audio,
            audio_left=NO_SOUND,
            audio_right=NO_SOUND,
        )

    def ask(self, question: str, *, on_text: Callable[[str], object] | None = None) -> Answer:
        """Ask about all that is in the history, and wait for the answer, which stays in it, too.

        `on_text` hears each piece of the answer as it is generated; there, or in another thread, `interrupt` ends it.
        Raises UsageError for an empty question, CacheFull for one that the cache has no room for, RuntimeFailure when
        the model fails.
        """
        if not question.strip():
            raise UsageError("the question is empty", "ask something")
        self._begin()
        refused: list[Notice] = []

        def heard() -> Iterator[Event]:
            for event in self._engine.ask(question, self.clock):
                if isinstance(event, Notice):
                    refused.append(event)
                yield event
                if isinstance(event, AnswerDelta) and on_text is not None:
                    on_text(event.text)

        answer = self._tell(heard(), Answer)
        if answer is None:
            why = refused[-1] if refused else Notice("not-asked", "the question was not asked")
            raise CacheFull(why.message, why.hint)
        return answer

    def interrupt(self) -> None:
        """End the current answer after its token, or take the current unit back. Any thread, signal handlers too."""
        self._engine.interrupt()

    def save(self, path: StrPath) -> None:
        """Write the session to a file, from which `open_session` and `omnitide watch --resume` go on.

        Raises UsageError where nothing can be written or the session is on llama.cpp's own memory (policy `full`),
        RuntimeFailure when the disk fails.
        """
        file = Path(path)
        check_writable(file, "save")
        if not self._engine.can_save:
            raise UsageError("a session on llama.cpp's own memory can't be saved", "choose another policy than full")
        self._begin()
        engine, state = self._engine.save()
        model = saved_model(self._name, self._files, self._system_text)
        known = identity(model, self.options, self._media)
        saved = Saved(known.version, known.model, known.options, self._media, self._questions, engine)
        write_session(
            file, SessionFile(saved, state, {JOURNAL: self._journal.to_bytes(), **self._engine.save_sections()})
        )

    def snapshot(self) -> SessionSnapshot:
        """The cache at this moment and what led there: what `omnitide inspect-kv` shows."""
        self._begin()
        found = self._published.snapshot()
        assert found is not None
        return found

    def summary(self) -> Summary:
        """The sums of the session so far."""
        return replace(self._engine.summary(), alerts=self._watcher.totals())

    # --- for the sources

    def attach(self, media: SavedMedia, name: str, place_after: Callable[[MediaUnit], SourcePosition]) -> None:
        """Units of this source come next; `place_after` says where the source goes on behind one."""
        self.resumption = None
        self._media, self._place_after = media, place_after
        if not self._begun:
            self.source = name

    def warn(self, code: str, message: str, hint: str) -> None:
        """The source has something to tell."""
        self._begin()
        self._tell([Notice(code, message, hint)], Notice)

    def _own_units(self) -> SavedMedia:
        return SavedMedia(
            source="python",
            path=None,
            size=None,
            unit_seconds=self.unit_seconds,
            image_tokens=self.image_tokens,
            video=True,
            audio=True,
            start=0.0,
            duration=None,
            loops=1,
            position=0.0,
            clock=0.0,
            index=0,
            loop=0,
        )

    def _came_to(self, unit: StreamUnit) -> None:
        if self._place_after is not None and isinstance(unit, MediaUnit):
            self._media = moved(self._media, self._place_after(unit))
        else:
            self._media = replace(self._media, clock=unit.end, index=unit.index + 1)

    def _begin(self) -> None:
        if self._begun:
            return
        try:
            step = self._engine.start(self.source, self._file)
        except SessionFileError as error:
            raise SessionFileError(f"the saved session can't be resumed: {error.message}", error.hint) from error
        self._begun = True
        self._tell(step, SessionStarted)
        if problem := self._published.problem:
            self.warn("not-published", f"inspect-kv can't show this session: {problem}", "")

    def _tell(self, events: Iterable[Event], wanted: type[E]) -> E | None:
        """Tell all of them, on to the last; the one that is wanted."""
        found: E | None = None
        for event in events:
            self._published.emit(event)
            self._journal.note(event)
            self.events.put(event)
            if isinstance(event, wanted):
                found = event
        return found


def _check_unit_seconds(seconds: float) -> None:
    if not 0.1 <= seconds <= 30:
        raise UsageError(f"unit_seconds={seconds}: must be between 0.1 and 30", "choose a length in that range")


def _opened(
    name: str | None,
    manifest: Manifest,
    mmproj: StrPath | None,
    system: str | None,
    options: EngineOptions,
    unit_seconds: float,
    image_tokens: int | None,
    resumption: Resumption | None,
    progress: Callable[[float], None] | None,
) -> Session:
    files = fetch_files(manifest, None if mmproj is None else os.fspath(mmproj))
    prompt = manifest.prompt if system is None else replace(manifest.prompt, system_text=system)
    if resumption is not None:
        resumption.check_model(saved_model(name, files, prompt.system_text))
    engine = Engine.open(files, prompt, options, progress=progress)
    try:
        check_sound(manifest, engine)
    except BaseException:
        engine.close()
        raise
    return Session(
        engine,
        manifest,
        files,
        options,
        name=name,
        system_text=prompt.system_text,
        unit_seconds=unit_seconds,
        image_tokens=image_tokens,
        resumption=resumption,
    )

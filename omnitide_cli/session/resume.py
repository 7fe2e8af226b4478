"""What a resumed session takes from its file, what flags may change of it, and what they may not."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

from omnitide_cli import __version__
from omnitide_cli.addresses import DEVICES, HIDDEN, SCHEME, display_name
from omnitide_cli.catalog.folders import expanded
from omnitide_cli.errors import SessionFileError, UsageError
from omnitide_cli.media import SourcePosition
from omnitide_cli.media.container import local_path
from omnitide_cli.paths import is_file, is_there
from omnitide_cli.runtime.fingerprint import fingerprint, is_same
from omnitide_cli.runtime.journal import Journal
from omnitide_cli.runtime.options import (
    LAYOUTS,
    POLICIES,
    CacheType,
    EngineOptions,
    FlashAttention,
    ModelFiles,
    Positions,
    is_own_policy,
)
from omnitide_cli.runtime.saved import Saved, SavedMedia, SavedModel, SavedOptions
from omnitide_cli.runtime.session_file import JOURNAL, SessionFile, damaged, read_header, read_session
from omnitide_cli.session import saves
from omnitide_cli.session.checkpoint import Identity
from omnitide_cli.session.schedule import Schedule

NAMES = {
    "policy": POLICIES,
    "layout": LAYOUTS,
    "positions": get_args(Positions),
    "cache_type": get_args(CacheType),
    "flash_attn": get_args(FlashAttention),
}


class Resumption:
    """A session file that a command goes on from; or only asks, where there is nothing to start afresh (`resumes`)."""

    def __init__(self, path: Path, *, resumes: bool = True) -> None:
        """Raises SessionFileError."""
        self.path = path
        self._afresh = ", or start afresh without --resume" if resumes else ""
        try:
            self.file: SessionFile = read_session(path)
            self.saved: Saved = self.file.saved
            self.journal: Journal = read_journal(path, self.file)
            for name, known in NAMES.items():
                value = getattr(self.saved.options, name)
                if value not in known and not (name == "policy" and is_own_policy(value)):
                    damaged(path, f"its '{name}' is damaged")
        except SessionFileError as error:
            raise SessionFileError(error.message, f"{error.hint}{self._afresh}") from error

    def options(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """The saved settings under those that flags give. Raises UsageError for a change that can't be."""
        saved = self.saved
        if wanted["cache_type"] not in (None, saved.options.cache_type):
            raise UsageError(
                f"--cache-type {wanted['cache_type']}: {self.path} was saved with {saved.options.cache_type}",
                "leave out --cache-type, or start afresh without --resume",
            )
        if wanted.get("policy") is None and is_own_policy(saved.options.policy):
            raise UsageError(
                f"{self.path} was saved with the policy {saved.options.policy}, and a session file may not run code",
                f"say --policy {saved.options.policy} if you trust it, or choose another policy",
            )
        merged = asdict(saved.options) | {name: value for name, value in wanted.items() if value is not None}
        if merged["policy"] == saved.options.policy == "full" and merged["ctx"] is None:
            merged["ctx"] = saved.engine.cells
        return merged | {"least_ctx": saved.engine.used_cells}

    def system(self, wanted: str | None) -> str:
        """The saved system text, which is in the history. Raises UsageError for another."""
        text = self.saved.model.system_text
        if wanted not in (None, text):
            raise UsageError(f"--system: {self.path} was saved with another system prompt", "leave out --system")
        return text

    def schedule(self, wanted: Schedule, *, asked_anew: bool) -> Schedule:
        """The saved questions; those that flags ask instead, but for what was asked already; or, where neither asks
        anything, what is `wanted`."""
        saved, clock = self.saved.questions, self.saved.media.clock
        old = Schedule.of(saved, clock)
        if old and not asked_anew:
            return old
        wanted.go_on(saved, clock)
        return wanted

    def check_model(self, model: SavedModel) -> None:
        """Raise SessionFileError unless the model is the one that the session was saved with."""
        saved = self.saved.model
        for what, now, then in (
            ("weights", model.weights, saved.weights),
            ("encoders", model.encoders, saved.encoders),
        ):
            if now != then and not (now and then and is_same(now, then)):
                other = "use the files it was saved with" if saved.name == model.name else f"--model {saved.name}"
                raise SessionFileError(
                    f"{self.path} was saved with other {what} than those of {model.name} now",
                    f"{other}{self._afresh}",
                )

    def refused(self, error: SessionFileError) -> SessionFileError:
        """What the native session says of the state, as an error that names the file."""
        return SessionFileError(f"{self.path} can't be resumed: {error.message}", f"leave out --ctx{self._afresh}")


def read_journal(path: Path, file: SessionFile) -> Journal:
    """The answers and pictures that a session file holds. Raises SessionFileError."""
    try:
        return Journal.read(bytes(file.sections.get(JOURNAL, b"")))
    except SessionFileError as error:
        damaged(path, error.message)


def resumed_source(resume: Path | None) -> tuple[str, Path]:
    """What a session watched that is gone on with without naming it, and its file. Raises OmniTideError."""
    if resume is None:
        raise UsageError("Missing argument 'SOURCE'.", "see omnitide watch --help")
    if resume == Path(saves.LAST):
        resume = saves.newest(lambda media: not media.source.startswith(DEVICES))
    media = read_header(resume).media
    if media.source.startswith(DEVICES):
        raise UsageError(f"{resume} is a session of omnitide live", "go on with it by omnitide live --resume")
    source = media.path or media.source
    again = f"omnitide watch SOURCE --resume {shlex.quote(str(resume))}"
    if media.path is None and not SCHEME.search(source):
        raise UsageError(f"{resume} doesn't know all of its source, {source}", f"name it: {again}")
    if HIDDEN in source or not media.is_whole:
        raise UsageError(
            f"{resume} doesn't hold the login of its source, {source}", f"give the address with its login: {again}"
        )
    return source, resume


def plan_media(
    source: str, wanted: dict[str, Any], given: Collection[str], resumption: Resumption | None
) -> SavedMedia:
    """How the source is read and where it begins: as `given` flags say, then as it was saved, then as `wanted`.

    `wanted` has the fields of SavedMedia. Raises SessionFileError for another source than the saved one, unless
    --start says where to begin in it.
    """
    local = local_path(source)
    is_regular = local is not None and (is_file(local) or not is_there(local))
    path = str(local.resolve()) if local is not None and is_regular else None
    size = local.stat().st_size if local is not None and is_file(local) else None
    shown = display_name(source)
    is_whole = path is not None or shown == source
    names: dict[str, Any] = {"source": shown, "path": path, "size": size, "is_whole": is_whole}
    if resumption is None:
        return SavedMedia(**names, **wanted, position=wanted["start"], clock=wanted["start"], index=0, loop=0)
    saved = resumption.saved.media
    chosen = {name: value if name in given else getattr(saved, name) for name, value in wanted.items()}
    going_on = replace(saved, **names, **chosen)
    if "start" in given:
        return replace(going_on, position=going_on.start, loop=0)
    if not is_same_source(saved, going_on):
        raise SessionFileError(
            f"{resumption.path} was saved while watching {display_name(saved.source)}, not {going_on.source}",
            "use that source, or say with --start where to continue in this one",
        )
    return going_on


def plan_live(wanted: dict[str, Any], given: Collection[str], resumption: Resumption | None) -> SavedMedia:
    """As `plan_media` for devices, in which there is no moment but now: the clock alone goes on.

    `wanted` has the fields of SavedMedia that concern devices.
    """
    live: dict[str, Any] = {"source": "live", "path": None, "size": None, "start": 0.0, "duration": None, "loops": 1}
    live |= {"position": 0.0, "loop": 0}
    if resumption is None:
        return SavedMedia(**live, **wanted, clock=0.0, index=0)
    saved = resumption.saved.media
    kept = {name: getattr(saved, name) for name in ("unit_seconds", "image_tokens") if name not in given}
    return SavedMedia(**live | wanted | kept, clock=saved.clock, index=saved.index)


def is_same_source(saved: SavedMedia, now: SavedMedia) -> bool:
    """A file may have moved, and may have grown since."""
    if saved.path is None or now.path is None:
        return display_name(saved.source) == now.source
    return saved.path == now.path or (Path(saved.path).name == Path(now.path).name and saved.size == now.size)


def position_of(media: SavedMedia) -> SourcePosition:
    """Where the next unit begins."""
    return SourcePosition(media.position, media.clock, media.index, media.loop)


def saved_model(model: str | None, files: ModelFiles, system_text: str) -> SavedModel:
    """The model as a session file knows it; `model` is what the user called it."""
    is_path = model is not None and Path(model).suffix in (".gguf", ".toml")
    name = str(expanded(model).absolute()) if model is not None and is_path else files.name
    encoders = fingerprint(files.mmproj) if files.mmproj is not None else None
    return SavedModel(name, fingerprint(files.model), encoders, system_text)


def identity(model: SavedModel, options: EngineOptions, media: SavedMedia) -> Identity:
    """What a session saves of itself beside its course."""
    kept = {name: getattr(options, name) for name in SavedOptions.__dataclass_fields__}
    return Identity(__version__, model, SavedOptions(**kept), media)

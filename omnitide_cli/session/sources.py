"""What differs between watching a file and watching devices: how the source is planned, opened, named and summed up."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from omnitide_cli.addresses import DEVICES, STANDARD_INPUT, display_name
from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.media import LiveSource, MediaSource, MediaUnit, SourcePosition, open_live, open_source
from omnitide_cli.runtime.saved import SavedMedia
from omnitide_cli.session.configuration import frame_fit, pictures_left_out, sound_format, sound_left_out
from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.session.resume import Resumption, is_same_source, plan_live, plan_media, position_of

NONE = "none"
Say = Callable[[str], None]
"""Shows a line about what is waited for."""

EXAMPLE = "shapes-and-notes.mp4"
"""The clip that comes with the shipped model."""


class SourceKind(Protocol):
    """A kind of source; `source` is what its `open` has returned."""

    @property
    def title(self) -> str:
        """What a dashboard calls it before it is open."""
        ...

    @property
    def ends_input(self) -> bool:
        """Whether the first signal ends the reading itself."""
        ...

    @property
    def is_paced(self) -> bool:
        """Whether units of a file wait for the clock."""
        ...

    @property
    def is_live(self) -> bool:
        """Whether its seconds come one a second."""
        ...

    @property
    def is_foreign(self) -> bool:
        """Whether it may show what the shipped model has never seen."""
        ...

    @property
    def stays(self) -> bool:
        """Whether a prompt stays open at its end."""
        ...

    @property
    def nothing_asked(self) -> str:
        """The hint where no question was given."""
        ...

    def plan(self, given: Collection[str], resumption: Resumption | None) -> SavedMedia: ...
    def open(
        self,
        manifest: Manifest,
        plan: SavedMedia,
        interrupt: Interrupt,
        *,
        resumed: bool,
        say: Say | None = None,
        passing: bool = False,
    ) -> Any:
        """`passing` is as in `open_source`; cameras have one picture a unit all the same."""
        ...

    def aspect_ratio(self, source: Any) -> float | None: ...
    def name(self, source: Any) -> str: ...
    def as_opened(self, source: Any, plan: SavedMedia) -> SavedMedia:
        """The plan with what only the open source tells: what a saved session goes on with."""
        ...

    def position_after(self, source: Any) -> Callable[[MediaUnit], SourcePosition]: ...

    def reaches_end(self, source: Any, plan: SavedMedia, clock: float) -> bool:
        """Whether a player of the same media has nothing more to show at `clock`."""
        ...

    def matches(self, media: SavedMedia) -> bool:
        """Whether a saved session was one of this source."""
        ...


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """A file, a stream or standard input."""

    source: str
    start: float = 0.0
    duration: float | None = None
    loop: int = 1
    unit_seconds: float = 1.0
    image_tokens: int | None = None
    video: bool = True
    audio: bool = True
    audio_track: int | None = None
    is_paced: bool = False
    stays: bool = True
    nothing_asked: str = "no question will be asked; --ask TEXT asks one at the end"

    @property
    def title(self) -> str:
        return display_name(self.source)

    @property
    def ends_input(self) -> bool:
        return self.source == STANDARD_INPUT

    @property
    def is_live(self) -> bool:
        return self.is_paced

    @property
    def is_foreign(self) -> bool:
        return Path(self.source).name != EXAMPLE

    def plan(self, given: Collection[str], resumption: Resumption | None) -> SavedMedia:
        read_as = {
            "unit_seconds": self.unit_seconds,
            "image_tokens": self.image_tokens,
            "video": self.video,
            "audio": self.audio,
            "audio_track": self.audio_track,
            "start": self.start,
            "duration": self.duration,
            "loops": self.loop,
        }
        return plan_media(self.source, read_as, given, resumption)

    def open(
        self,
        manifest: Manifest,
        plan: SavedMedia,
        interrupt: Interrupt,
        *,
        resumed: bool,
        say: Say | None = None,
        passing: bool = False,
    ) -> MediaSource:
        with interrupt.reading():
            media = open_source(
                self.source,
                fit=frame_fit(manifest, plan.image_tokens),
                sound=sound_format(manifest),
                unit_seconds=plan.unit_seconds,
                video=plan.video and manifest.sees,
                audio=plan.audio and manifest.hears,
                audio_track=plan.audio_track,
                start=plan.start,
                duration=plan.duration,
                loops=plan.loops,
                place=position_of(plan) if resumed else None,
                say=say,
                passing=passing,
            )
        if media.info.has_audio and plan.audio and not manifest.hears:
            media.warnings.append(sound_left_out(manifest))
        if media.info.width and plan.video and not manifest.sees:
            media.warnings.append(pictures_left_out(manifest))
        return media

    def aspect_ratio(self, source: MediaSource) -> float | None:
        wide, tall = source.info.width, source.info.height
        return wide / tall if wide and tall else None

    def name(self, source: MediaSource) -> str:
        return self.source if self.source == STANDARD_INPUT else display_name(self.source)

    def as_opened(self, source: MediaSource, plan: SavedMedia) -> SavedMedia:
        return replace(plan, audio_track=source.audio_track or plan.audio_track)

    def position_after(self, source: MediaSource) -> Callable[[MediaUnit], SourcePosition]:
        return source.position_after

    def reaches_end(self, source: MediaSource, plan: SavedMedia, clock: float) -> bool:
        if plan.loops > 1:
            return False
        if (known := source.info.duration) is not None:
            return clock >= known - plan.unit_seconds / 2
        return plan.duration is None or clock < plan.start + plan.duration - plan.unit_seconds / 2

    def matches(self, media: SavedMedia) -> bool:
        if self.source == STANDARD_INPUT or media.source.startswith(DEVICES):
            return False
        return is_same_source(media, self.plan((), None))


@dataclass(frozen=True, slots=True)
class LiveDevices:
    """A camera and a microphone."""

    camera: str = "0"
    mic: str = "default"
    duration: float | None = None
    unit_seconds: float = 1.0
    image_tokens: int | None = None
    video: bool = True
    audio: bool = True
    title: str = "live"
    ends_input: bool = False
    is_paced: bool = False
    is_live: bool = True
    is_foreign: bool = True
    stays: bool = False
    nothing_asked: str = 'no question will be asked; --every "60=TEXT" asks one every minute'

    def plan(self, given: Collection[str], resumption: Resumption | None) -> SavedMedia:
        seen_as = {
            "unit_seconds": self.unit_seconds,
            "image_tokens": self.image_tokens,
            "video": self.video and self.camera != NONE,
            "audio": self.audio and self.mic != NONE,
        }
        return plan_live(seen_as, given, resumption)

    def open(
        self,
        manifest: Manifest,
        plan: SavedMedia,
        interrupt: Interrupt,
        *,
        resumed: bool,
        say: Say | None = None,
        passing: bool = False,
    ) -> LiveSource:
        with interrupt.raising():
            source = open_live(
                self.camera if manifest.sees and self.video else NONE,
                self.mic if manifest.hears and self.audio else NONE,
                fit=frame_fit(manifest, plan.image_tokens),
                sound=sound_format(manifest),
                unit_seconds=plan.unit_seconds,
                duration=self.duration,
                place=position_of(plan),
            )
        if self.mic != NONE and self.audio and not manifest.hears:
            source.warnings.append(sound_left_out(manifest))
        if self.camera != NONE and self.video and not manifest.sees:
            source.warnings.append(pictures_left_out(manifest))
        return source

    def aspect_ratio(self, source: LiveSource) -> float | None:
        return None

    def name(self, source: LiveSource) -> str:
        return source.name

    def as_opened(self, source: LiveSource, plan: SavedMedia) -> SavedMedia:
        return replace(plan, source=source.name)

    def position_after(self, source: LiveSource) -> Callable[[MediaUnit], SourcePosition]:
        return lambda unit: SourcePosition(clock=unit.end, index=unit.index + 1)

    def reaches_end(self, source: LiveSource, plan: SavedMedia, clock: float) -> bool:
        return True

    def matches(self, media: SavedMedia) -> bool:
        if media.path is not None or not media.source.startswith(DEVICES):
            return False
        camera = f"camera {display_name(self.camera)}"
        has_camera = self.video and self.camera != NONE
        return camera in media.source.split(" + ") if has_camera else "camera " not in media.source

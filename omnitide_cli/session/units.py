"""Media units for a session of the library: from files, streams and devices, on the session's own clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Literal, Self

from omnitide_cli.media import LiveSource, MediaSource, MediaUnit
from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.session.library import Session
from omnitide_cli.session.sources import LiveDevices, WatchedFile

NAP_S = 0.02


class UnitStream(Iterator[MediaUnit]):
    """The units of a source, in order, once; closes itself at the end, and as a context manager.

    What is wrong with the source but doesn't stop it comes as warnings among the session's events.
    """

    def __init__(self, source: MediaSource | LiveSource, session: Session, *, paced: bool = False) -> None:
        self._source = source
        self._session = session
        self._paced = paced
        self._origin: float | None = None
        self._units: Iterator[MediaUnit | None] = iter(source)
        self._told = 0
        self.is_over = False
        """No unit comes any more."""

    @property
    def units_total(self) -> int | None:
        """How many units there will be in all; None where nothing tells."""
        return self._source.units_total

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> MediaUnit:
        """The next unit; waits for it. Raises SourceError when the source fails."""
        while True:
            unit = self._advance()
            if unit is not None:
                return self._in_its_time(unit)

    def poll(self) -> MediaUnit | None:
        """The next unit of devices if it is complete, else None at once, for who does other things meanwhile; of a
        file, the next unit always is. After the last one `is_over`."""
        if not isinstance(self._source, LiveSource):
            return next(self, None)
        unit = self._source.poll()
        self._tell()
        if unit is None and self._source.is_over:
            self.close()
        return unit

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the file or the devices go; no unit comes any more."""
        self.is_over = True
        self._source.close()

    def _advance(self) -> MediaUnit | None:
        try:
            return next(self._units)
        except StopIteration:
            self.close()
            raise
        finally:
            self._tell()

    def _in_its_time(self, unit: MediaUnit) -> MediaUnit:
        if not self._paced:
            return unit
        if self._origin is None:
            self._origin = time.monotonic() - unit.start
        due = self._origin + unit.end
        while (left := due - time.monotonic()) > 0:
            time.sleep(min(left, NAP_S))
        return replace(unit, complete_at=due)

    def _tell(self) -> None:
        for warning in self._source.warnings[self._told :]:
            self._told += 1
            self._session.warn(warning.code, warning.message, warning.hint)


def read(
    source: str | os.PathLike[str],
    *,
    for_: Session,
    start: float | None = None,
    duration: float | None = None,
    loop: int | None = None,
    video: bool | None = None,
    audio: bool | None = None,
    audio_track: int | None = None,
    pace: Literal["fast", "realtime"] = "fast",
) -> UnitStream:
    """The units of a file, a stream (http, rtsp, …) or standard input (`-`), cut as the session's model needs them.

    `start` and `duration` choose a part of it, in seconds; `loop` plays that part so many times; `video=False` and
    `audio=False` leave a sense out; `audio_track`, from 1 on, chooses one of several sound tracks. `pace="realtime"`
    gives each unit no earlier than a live stream would. A resumed session goes on where its source was left, unless
    `start` is given; one that has seen other sources before goes on with its clock and its count.

    Raises SourceError when it can't be read, UsageError when it doesn't hold what is asked for, SessionFileError when a
    resumed session was watching another source.
    """
    name = os.fspath(source)
    wanted = {
        "start": start,
        "duration": duration,
        "loop": loop,
        "video": video,
        "audio": audio,
        "audio_track": audio_track,
    }
    watched = WatchedFile(
        name,
        unit_seconds=for_.unit_seconds,
        image_tokens=for_.image_tokens,
        **{key: value for key, value in wanted.items() if value is not None},  # type: ignore[arg-type]
    )
    given = {"loops" if key == "loop" else key for key, value in wanted.items() if value is not None}
    resumption = for_.resumption
    plan = watched.plan(given, resumption)
    goes_on = resumption is not None or for_.next_index > 0
    if resumption is None and goes_on:
        plan = replace(plan, clock=for_.clock, index=for_.next_index)
    opened = watched.open(for_.manifest, plan, _no_signals(), resumed=goes_on, passing=for_.options.change == "auto")
    for_.attach(watched.as_opened(opened, plan), watched.title, opened.position_after)
    return UnitStream(opened, for_, paced=pace == "realtime")


def open_live(
    camera: str = "0",
    mic: str = "default",
    *,
    for_: Session,
    duration: float | None = None,
) -> UnitStream:
    """The seconds of a camera and a microphone, as they pass, on the session's clock. Close it to let the devices go.

    `camera`: a number, a device, a URL, a file or `none`; `mic`: (a part of) a name, `default` or `none`; it ends after
    `duration` seconds. Whoever is slow loses pictures, not sound. Raises DeviceError when one doesn't work within four
    seconds, UsageError when both are `none`.
    """
    devices = LiveDevices(camera, mic, duration, unit_seconds=for_.unit_seconds, image_tokens=for_.image_tokens)
    plan = replace(devices.plan(set(), for_.resumption), clock=for_.clock, index=for_.next_index)
    opened = devices.open(for_.manifest, plan, _no_signals(), resumed=for_.resumption is not None)
    plan = devices.as_opened(opened, plan)
    for_.attach(plan, opened.name, devices.position_after(opened))
    return UnitStream(opened, for_)


def _no_signals() -> Interrupt:
    """Not entered: signals stay Python's own, KeyboardInterrupt included."""
    return Interrupt()

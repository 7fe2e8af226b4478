"""A camera and a microphone, cut into units by one clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from omnitide_cli.errors import UsageError
from omnitide_cli.media.camera import Camera
from omnitide_cli.media.device_thread import DeviceThread
from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.info import SourceWarning
from omnitide_cli.media.live_pictures import Picture, PictureQueue, Thinning
from omnitide_cli.media.live_sound import SoundQueue
from omnitide_cli.media.microphone import Microphone
from omnitide_cli.media.neighbours import Neighbours
from omnitide_cli.media.position import SourcePosition
from omnitide_cli.media.silence import SilenceWatch
from omnitide_cli.media.sound import Stretch
from omnitide_cli.media.standstill import Pulse, Standstill
from omnitide_cli.media.unit import NO_SOUND, WHISPER, MediaUnit, SoundFormat
from omnitide_cli.times import clock

START_LIMIT_S = 4.0
"""How long the devices may take to give their first data, together."""
NAP_S = 0.02
NONE = "none"


def open_live(
    camera: str,
    microphone: str,
    *,
    fit: FrameFit,
    sound: SoundFormat = WHISPER,
    unit_seconds: float = 1.0,
    duration: float | None = None,
    place: SourcePosition | None = None,
) -> LiveSource:
    """Open a camera (number, device, URL, file) and a microphone (`default` or its name); `none` leaves one out.

    On the session's clock and in its count the stream begins at `place`. Returns once both work. Raises DeviceError if
    one doesn't within START_LIMIT_S, UsageError if there is none at all.
    """
    if camera == NONE and microphone == NONE:
        raise UsageError("both --camera and --mic are none", "Leave out --camera none or --mic none.")
    source = LiveSource(
        fit=fit,
        form=sound,
        camera=camera != NONE,
        microphone=microphone != NONE,
        unit_seconds=unit_seconds,
        duration=duration,
        place=place,
    )
    if microphone != NONE:
        source.microphone = Microphone(microphone, source.sound, source.warn)
    if camera != NONE:
        source.camera = Camera(camera, source.pictures, source.warn)
    try:
        source.open()
    except BaseException:
        source.close()
        raise
    return source


class LiveSource:
    """The seconds of a live stream, each sealed as soon as it is over and its sound is there; a context manager.

    The clock is the computer's; second 0 is the moment at which the first unit is asked for. Devices fill bounded
    queues from their own threads. Units are read by one thread, which may be slow: then it is behind, pictures are
    thinned (`MediaUnit.dropped_frames`), sound is kept.
    """

    def __init__(
        self,
        *,
        fit: FrameFit,
        form: SoundFormat = WHISPER,
        camera: bool,
        microphone: bool,
        unit_seconds: float = 1.0,
        duration: float | None = None,
        place: SourcePosition | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.warnings: list[SourceWarning] = []
        """Grows while the source is read."""
        self.pictures = PictureQueue(fit, unit_seconds)
        self.sound = SoundQueue(form=form)
        self._form = form
        self.camera: Camera | None = None
        self.microphone: DeviceThread | None = None
        self.dropped_frames = 0
        self.units_total = None if duration is None else math.ceil(duration / unit_seconds)
        self._sees, self._hears = camera, microphone
        self._unit_seconds = unit_seconds
        self._duration = math.inf if duration is None else duration
        self._place = place or SourcePosition()
        self._clock = clock
        self._origin: float | None = None
        self._next = 0
        self._thinning = Thinning()
        self._evicted = 0
        self._told_lost = False
        self._neighbours = Neighbours()
        self._closed = False
        self._standstills: list[Standstill] = []
        self._units_skipped = 0
        self.pulse: Pulse | None = None
        """Beats while the devices are open, so that a stop of the whole process is noticed."""
        self._silence = SilenceWatch(
            self.warn, "Is the microphone muted? --mic NAME takes another one; omnitide doctor lists them.", form.rate
        )

    def open(self) -> None:
        """Start the devices and wait for their first data. Raises DeviceError."""
        limit = self._clock() + START_LIMIT_S
        for link in self._links():
            link.start()
        for link in self._links():
            link.wait_ready(max(0.1, limit - self._clock()))
        self.pulse = Pulse(self.stood_still)
        self.pulse.start()

    @property
    def name(self) -> str:
        """What the session is called: its devices, without passwords."""
        return " + ".join(f"{link.kind} {link.device}" for link in self._links())

    @property
    def lost_sound_s(self) -> float:
        """Seconds of sound that a device or a hopeless backlog swallowed."""
        return self.sound.lost_samples / self._form.rate

    @property
    def skew_ms(self) -> float:
        """By how much the sound card's clock was corrected; above 0 if it is slow."""
        return self.sound.skew_samples / self._form.rate * 1000

    def start(self) -> None:
        """Second 0 is now, unless it has been."""
        if self._origin is None:
            self._origin = self._clock()
            self.pictures.start(self._origin)
            self.sound.start(self._form.sample(self._origin))

    def moment(self, media_seconds: float) -> float:
        """When a second of the media was, or will be, on time.monotonic()'s clock."""
        assert self._origin is not None
        return self._origin + media_seconds

    @property
    def is_over(self) -> bool:
        """No unit comes any more."""
        return self._closed or self._end_of(self._next) - self._next * self._unit_seconds < self._form.shortest_s

    def stood_still(self, gap: Standstill) -> None:
        """The whole process was stopped: there are no units of that time; from any thread."""
        if self._origin is None or gap.end <= self._origin:
            return
        self._standstills.append(gap)
        self.sound.stood_still(self._form.sample(gap.begin), self._form.sample(gap.end))
        first, last = (self._place.clock + moment - self._origin for moment in (gap.begin, gap.end))
        self.warn(
            "stood-still",
            f"the session was stopped for {gap.end - gap.begin:.1f} s: nothing was seen or heard"
            f" from {clock(first)} to {clock(last)}",
            "",
        )

    def poll(self) -> MediaUnit | None:
        """The next unit if it is complete, else None; waits for nothing."""
        self.start()
        if self.pulse is not None:
            self.pulse.beat()
        self._skip_standstills()
        start = self._next * self._unit_seconds
        end = self._end_of(self._next)
        now = self._clock() - self.moment(0)
        if self.is_over or now < end or not self._has_sound_until(end):
            return None
        picture = self._picture(start)
        dropped = self.pictures.evicted - self._evicted
        self._evicted += dropped
        if picture is not None and not self._thinning.keeps(
            int((now - end - self._still_since(self.moment(end))) / self._unit_seconds)
        ):
            picture, dropped = None, dropped + 1
        self._neighbours.look()
        self._count_dropped(dropped)
        unit = self._unit(start, end, picture, dropped)
        self._next += 1
        return unit

    def __iter__(self) -> Iterator[MediaUnit | None]:
        """The units as they get complete; None every few hundredths of a second meanwhile."""
        self.start()
        while not self.is_over:
            unit = self.poll()
            yield unit
            if unit is None:
                time.sleep(NAP_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the devices; no unit comes any more. May be called twice."""
        self._closed = True
        if self.pulse is not None:
            self.pulse.close()
        for link in self._links():
            link.close()

    def warn(self, code: str, message: str, hint: str) -> None:
        """Note something that the user should know; from any thread."""
        self.warnings.append(SourceWarning(code, message, hint))

    def _links(self) -> list[DeviceThread]:
        return [link for link in (self.camera, self.microphone) if link is not None]

    def _end_of(self, index: int) -> float:
        end = min((index + 1) * self._unit_seconds, self._duration)
        if self.camera is not None and self.camera.ended_at is not None:
            end = min(end, self.camera.ended_at - self.moment(0))
        return end

    def _skip_standstills(self) -> None:
        """Leave out the units that lie in a standstill as a whole."""
        start = self.moment(self._next * self._unit_seconds)
        for gap in self._standstills:
            if gap.begin <= start < gap.end - self._unit_seconds:
                skipped = int((gap.end - start) / self._unit_seconds)
                self._next += skipped
                self._units_skipped += skipped
                return

    def _still_since(self, moment: float) -> float:
        """Seconds that the process stood still after a moment of the clock, if it did at that moment or soon after."""
        return sum(max(0.0, gap.end - max(gap.begin, moment)) for gap in self._standstills)

    def _has_sound_until(self, end: float) -> bool:
        """Whether all sound is there that may still come."""
        if self.microphone is None or not self.microphone.connected:
            return True
        return self.sound.edge is not None and self.sound.edge >= self._sample(end) + self._form.after

    def _sample(self, media_seconds: float) -> int:
        return self._form.sample(self.moment(0)) + self._form.sample(media_seconds)

    def _unit(self, start: float, end: float, picture: Picture | None, dropped: int) -> MediaUnit:
        sound: Stretch | None = None
        if self._hears:
            sound = self.sound.read(self._sample(start), self._sample(end))
            self._tell_lost()
            self._silence.hear(sound)
        if sound is not None and sound.heard < self._form.shortest:
            sound = None
        return MediaUnit(
            index=self._place.index + self._next - self._units_skipped,
            start=self._place.clock + start,
            end=self._place.clock + end,
            frame=None if picture is None else picture.canvas,
            audio=None if sound is None else sound.samples,
            audio_left=NO_SOUND if sound is None else sound.left,
            audio_right=NO_SOUND if sound is None else sound.right,
            dropped_frames=dropped,
            complete_at=self.moment(end) + self._still_since(self.moment(end)),
        )

    def _picture(self, start: float) -> Picture | None:
        """The picture of the unit that begins at `start`; what a camera showed before it was lost is none."""
        picture = self.pictures.take(self._next) if self._sees else None
        if picture is not None and picture.at < self.moment(start) and not (self.camera and self.camera.connected):
            return None
        return picture

    def _count_dropped(self, dropped: int) -> None:
        if dropped and not self.dropped_frames:
            self.warn(
                "frames-thinned",
                "the model is falling behind: some seconds are taken without their picture; their sound is kept",
                self._neighbours.remedy(),
            )
        self.dropped_frames += dropped

    def _tell_lost(self) -> None:
        if self.sound.lost_samples and not self._told_lost:
            self._told_lost = True
            self.warn(
                "sound-lost",
                f"some sound was lost ({self.lost_sound_s:.2f} s so far)",
                "The machine is too busy to keep listening: leave it a core with --threads.",
            )

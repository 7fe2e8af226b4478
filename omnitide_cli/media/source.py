"""A file, a stream or standard input as a sequence of MediaUnits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import UsageError
from omnitide_cli.media.behind import Behind
from omnitide_cli.media.container import comes_by_pipe, is_file
from omnitide_cli.media.demux import DAMAGE_HINT
from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.info import HEADERS_WITH_DURATION, SourceInfo, SourceWarning
from omnitide_cli.media.playback import Playback
from omnitide_cli.media.playlist import has_ended
from omnitide_cli.media.position import SourcePosition
from omnitide_cli.media.silence import SilenceWatch
from omnitide_cli.media.sound import Stretch
from omnitide_cli.media.track import EPSILON_S
from omnitide_cli.media.unit import NO_SOUND, WHISPER, MediaUnit, SoundFormat
from omnitide_cli.times import clock, length


def open_source(
    path: str,
    *,
    fit: FrameFit,
    sound: SoundFormat = WHISPER,
    unit_seconds: float = 1.0,
    video: bool = True,
    audio: bool = True,
    audio_track: int | None = None,
    start: float = 0.0,
    duration: float | None = None,
    loops: int = 1,
    place: SourcePosition | None = None,
    say: Callable[[str], None] | None = None,
    passing: bool = False,
) -> MediaSource:
    """Open a file, a URL (http, rtsp, …) or `-` (standard input) and cut it into units.

    `start` and `duration` choose a part of it, in seconds; `loops` plays that part so many times. `audio_track`, from 1
    on, is heard; without it, the first one that isn't silent. Frames come as `fit` makes them, sound in the format
    `sound`. `place` is where to resume in that part: `position_after` of the unit before, which may be the last. `say`
    gets a line about what is waited for, if opening takes long. `passing`: a unit's picture isn't the one of its middle
    where something comes and goes within the unit, but shows that.
    Raises SourceError if the source can't be read and UsageError if it doesn't hold what is asked for.
    """
    if unit_seconds < sound.shortest_s:
        raise UsageError(
            f"a unit of {unit_seconds} s is too short", f"Use at least {sound.shortest_s} s, one audio token."
        )
    if not 0 <= start < math.inf or (duration is not None and not duration > 0) or loops < 1:
        raise UsageError(
            f"start {start}, duration {duration}, loops {loops} leave nothing of {display_name(path)} to play",
            "--start must be 0 or more, --duration above 0, --loop 1 or more.",
        )
    if not (video or audio):
        raise UsageError("both video and audio are switched off", "Leave out --no-video or --no-audio.")
    if loops > 1 and comes_by_pipe(path):
        raise UsageError(f"{display_name(path)} can't be played twice", "Leave out --loop, or name a file.")
    return MediaSource(
        path,
        fit=fit,
        form=sound,
        unit_seconds=unit_seconds,
        video=video,
        audio=audio,
        audio_track=audio_track,
        start=start,
        duration=duration,
        loops=loops,
        place=place,
        say=say,
        passing=passing,
    )


class MediaSource:
    """The units of a source, in order, once; a context manager. Made by `open_source`.

    Memory stays flat however long the source is: one unit of sound, two decoded pictures, and what the decoders hold.
    """

    def __init__(
        self,
        path: str,
        *,
        fit: FrameFit,
        form: SoundFormat,
        unit_seconds: float,
        video: bool,
        audio: bool,
        audio_track: int | None,
        start: float,
        duration: float | None,
        loops: int,
        place: SourcePosition | None,
        say: Callable[[str], None] | None = None,
        passing: bool = False,
    ) -> None:
        self.path = path
        self._say = say
        self._passing = passing
        self.warnings: list[SourceWarning] = []
        """Grows while the source is read."""
        self.dropped_samples = 0
        """Sound, in samples, that belongs to no unit: too short to hold a token, or out of order."""
        self._fit, self._form, self._video, self._audio = fit, form, video, audio
        self._audio_track = audio_track
        self._unit_seconds = unit_seconds
        self._start, self._duration, self._loops = start, duration, loops
        self._place = place or SourcePosition(start, start)
        self._is_resumed = place is not None
        self._play: Playback | None = self._open_at_place()
        self._shift, self._loop = self._place.clock - self._place.position, self._place.loop
        self.info: SourceInfo = self._play.info
        self.audio_track = self._play.audio_track
        """Which sound track is heard, counted from 1; None without sound."""
        if self._is_past_end(self._play):
            end = self._play.end or 0.0
            self.close()
            raise UsageError(
                f"{display_name(path)} ends at {clock(end)}, before the start at {clock(start)}", "Start earlier."
            )
        tracks = "If somebody speaks in it, look at the microphone or camera that sends it."
        self._silence = SilenceWatch(
            self._warn_once, f"{tracks} --audio-track N takes another track, if there is one.", form.rate
        )
        self._behind: Behind | None = None
        if self._play.is_live and not comes_by_pipe(path):
            hint = "omnitide live --camera URL leaves pictures out and stays close; a smaller model is faster."
            self._behind = Behind(self._warn_once, hint)
        self._units = self._all_units(self._play)

    @property
    def units_total(self) -> int | None:
        """How many units there will be, as far as the header tells."""
        if self.info.duration is None or self._start >= self.info.duration:
            return None
        seconds = min(self.info.duration - self._start, self._duration or math.inf)
        done = self._place.index - self._steps(self._place.position) - self._place.loop * self._units_in(seconds)
        return done + self._loops * self._units_in(seconds)

    def _units_in(self, seconds: float) -> int:
        return max(0, math.ceil((seconds - self._form.shortest_s) / self._unit_seconds))

    def _steps(self, position: float) -> int:
        """Units from the start of the part to `position`."""
        return round((position - self._start) / self._unit_seconds)

    def position_after(self, unit: MediaUnit) -> SourcePosition:
        """Where the stream goes on behind `unit`, which is the newest or the one before it."""
        return SourcePosition(unit.end - self._shift, unit.end, unit.index + 1, self._loop)

    def __iter__(self) -> Iterator[MediaUnit]:
        return self._units

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the source; no unit comes any more. May be called twice."""
        if self._play is not None:
            self._play.close()
            self._play = None

    def _open_at_place(self) -> Playback:
        """A live stream has no moment but now: there the session's clock goes on, and the stream begins as it comes."""
        if not is_file(self.path) and self._place.position != self._start:
            play = self._new_play(self._start)
            if play.is_live:
                self._place = replace(self._place, position=self._start)
                return play
            play.close()
        return self._new_play(self._place.position)

    def _new_play(self, start: float) -> Playback:
        return Playback(
            self.path,
            fit=self._fit,
            form=self._form,
            video=self._video,
            audio=self._audio,
            audio_track=self._audio_track,
            start=start,
            warn=self._warn_once,
            say=self._say,
            passing=self._passing,
        )

    def _is_past_end(self, play: Playback) -> bool:
        """Whether nothing is left behind the start, as far as the header says or reading has found."""
        if self._is_resumed or not self._start:
            return False
        return play.end is not None and play.end <= self._start

    def _all_units(self, play: Playback) -> Iterator[MediaUnit]:
        index, begin = self._place.index, self._place.position
        while self._loop < self._loops:
            if self._loop > self._place.loop:
                begin = self._start
                self.close()
                self._play = play = self._new_play(begin)
            end = begin
            for unit in self._units_of(play, index, begin):
                yield unit
                if self._play is None:
                    return
                index, end = unit.index + 1, unit.end - self._shift
            self._report(play, end)
            if not index:
                return
            self._shift += end - self._start
            self._loop += 1
        self.close()

    def _units_of(self, play: Playback, index: int, begin: float) -> Iterator[MediaUnit]:
        stop = math.inf if self._duration is None else self._start + self._duration
        done = self._steps(begin)
        if abs(self._start + done * self._unit_seconds - begin) < EPSILON_S:
            begin = self._start  # on the grid of an unbroken run, to the last bit
        else:
            done = 0
        for step in count():
            start = begin + (done + step) * self._unit_seconds
            end = min(begin + (done + step + 1) * self._unit_seconds, stop)
            frame = play.picture.read(start, end) if play.picture is not None else None
            sound = play.sound.read(start, end) if play.sound is not None else None
            if play.end is not None:
                end = min(end, play.end)
            if end <= start + EPSILON_S:
                return
            is_image = frame is not None and start == self._start
            if end - start < self._form.shortest_s - EPSILON_S and not is_image:
                self._drop(sound, play)
                return
            if sound is not None and sound.heard < self._form.shortest:
                self._drop(sound, play)
                sound = None
            if frame is None and sound is None and play.end is not None and end == play.end:
                return
            self._silence.hear(sound)
            unit = self._unit(index + step, start, end, frame, sound)
            yield unit if self._behind is None else replace(unit, complete_at=self._behind.complete_at(unit.end))

    def _drop(self, sound: Stretch | None, play: Playback) -> None:
        if sound is None:
            return
        self.dropped_samples += sound.heard
        if not play.sound_is_exact:
            return  # AAC and MP3 fill their last block up; such a tail is no news to the user
        self._warn_once(
            "sound-dropped",
            f"{sound.heard / self._form.rate * 1000:.1f} ms of sound at its edge are too short for an audio token",
            f"Nothing needs doing: a token takes {self._form.shortest_s * 1000:.0f} ms.",
        )

    def _report(self, play: Playback, end: float) -> None:
        """Say what only the end of a run tells."""
        self._silence.end()
        if play.format == "hls" and play.is_live and self._duration is None and not has_ended(self.path):
            self._warn_once(
                "source-interrupted",
                f"the playlist {display_name(self.path)} no longer grows, but doesn't say that it has ended",
                "What came before was used; check that the server still runs.",
            )
        if end == self._start > 0 and not self._is_resumed:
            self._warn_once("source-ended", f"{display_name(self.path)} ends before {clock(end)}", "Start earlier.")
        known = self.info.duration
        reads_all = (self._video or not self.info.has_video) and (self._audio or not self.info.has_audio)
        if reads_all and self._duration is None and known is not None and play.format.startswith(HEADERS_WITH_DURATION):
            missing = known - end
            if missing > max(0.5, self._unit_seconds / 2):
                self._warn_once(
                    "source-truncated",
                    f"{display_name(self.path)} is cut off: {length(end)} of {length(known)} could be read",
                    "Copy or record it again if you need the rest.",
                )
        if play.damaged > 1:
            self._warn_once(
                "damage-count",
                f"{play.damaged} parts of {display_name(self.path)} are damaged and were skipped",
                DAMAGE_HINT,
            )
        if play.sound is not None and play.sound.late_samples:
            self.dropped_samples += play.sound.late_samples
            # Of a file it is where joined recordings overlap, and no fault of a reader.
            if play.sound.late_samples > self._form.rate and comes_by_pipe(self.path):
                self._warn_once(
                    "sound-late",
                    f"{play.sound.late_samples / self._form.rate:.1f} s of sound arrived too late for its picture",
                    "The source is badly interleaved: read it as a file rather than through a pipe.",
                )

    def _warn_once(self, code: str, message: str, hint: str) -> None:
        if all(warning.code != code for warning in self.warnings):
            self.warnings.append(SourceWarning(code, message, hint))

    def _unit(
        self, index: int, start: float, end: float, frame: NDArray[np.uint8] | None, sound: Stretch | None
    ) -> MediaUnit:
        samples = self._form.sample(end) - self._form.sample(start)
        return MediaUnit(
            index=index,
            start=start + self._shift,
            end=end + self._shift,
            frame=frame,
            audio=None if sound is None else sound.samples[:samples],
            audio_left=NO_SOUND if sound is None else sound.left,
            audio_right=NO_SOUND if sound is None else sound.right,
        )

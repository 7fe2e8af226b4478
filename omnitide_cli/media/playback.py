"""One run through a source: its containers, its tracks, and the clock that they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import av
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.error import FFmpegError
from av.video.stream import VideoStream

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import UsageError
from omnitide_cli.media.arrival import ArrivalReader
from omnitide_cli.media.clock import LONGEST_PAUSE_S, Timed, arrived, timed
from omnitide_cli.media.container import comes_by_pipe, is_file, open_container, undecodable
from omnitide_cli.media.demux import LULL_S, Demuxer, Lull
from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.info import describe, stated_duration
from omnitide_cli.media.landing import SEARCHED, leads_astray
from omnitide_cli.media.sound import SoundTrack, blocks
from omnitide_cli.media.streams import (
    VARIANTS,
    picture_stream,
    programmes_of,
    sound_candidates,
    sound_streams,
    track_name,
)
from omnitide_cli.media.track import EPSILON_S, PictureTrack, shots
from omnitide_cli.media.unit import SoundFormat

SEEK_MARGIN_S = 1.0  # decoders of sound need a moment to settle after a jump
DECODER_THREADS = 4  # each holds a decoded picture, and the model needs the other cores
LONGEST_STEP_BACK_S = 60.0
"""A jump that lands farther before its goal has been led astray by timestamps that begin anew."""

LONGEST_STREAM_PAUSE_S = 10
LONGEST_UNSURE_PAUSE_S = 60
"""Pauses of all streams together that are longer are none in what comes live, or has no index of its times."""

INDEXED = ("mov", "matroska", "avi")
"""Formats in which a jump behind the end of the header's length lands at what comes last, at no cost."""

NO_TIMESTAMPS = 0x80  # AVFMT_NOTIMESTAMPS


class Playback:
    """The tracks of one run, ready to be read from second `start` of the media clock on.

    A file is opened once for the picture and once for the sound, so that each is read at its own pace and neither has
    to be kept for the other. Pipes and streams can't be opened twice and share one container.

    `audio_track` counts from 1; without one, the first of the picture's own programme that isn't silent is heard.
    """

    def __init__(
        self,
        path: str,
        *,
        fit: FrameFit,
        form: SoundFormat,
        video: bool,
        audio: bool,
        audio_track: int | None = None,
        start: float,
        warn: Callable[[str, str, str], None],
        say: Callable[[str], None] | None = None,
        passing: bool = False,
    ) -> None:
        """`warn` gets what should be known of the source; `say` what is waited for; `passing`: `open_source`."""
        self._path = path
        self._say = say
        self._fit, self._form = fit, form
        self._passing = passing
        self._wants = (video, audio)
        self._audio_track = audio_track
        self._is_file = is_file(path)
        self._sound: AudioStream | None = None
        self._reader: ArrivalReader | None = None
        self._warn = warn
        self._trying = False
        self._containers: list[InputContainer] = []
        self._demuxers: list[Demuxer] = []
        self.picture: PictureTrack | None = None
        self.sound: SoundTrack | None = None
        self.sound_is_exact = False
        """Whether the codec of the sound keeps its length; others fill their last block with padding."""
        try:
            self._open()
            container = self._containers[0]
            first_frame = self.picture.first_frame if self.picture is not None else None
            self.info = describe(container, self._sound or next(iter(sound_streams(container)), None), first_frame)
            self.format = container.format.name
            self.is_live = not self._is_file and not container.duration
            origin = self._first_moment()
            self._refuse_nothing()
            origins = [self._origin_of(track, origin) for track in (self.picture, self.sound)]
            if start > 0 and max(origins) == origin:
                self._seek(origin + start)
            for track, begin in zip((self.picture, self.sound), origins, strict=True):
                if track is not None:
                    track.set_origin(begin)
                    track.skip(start)
        except BaseException:
            self.close()
            raise

    @property
    def audio_track(self) -> int | None:
        """Which sound track is heard, counted from 1."""
        if self._sound is None:
            return None
        return [s.index for s in sound_streams(self._containers[0])].index(self._sound.index) + 1

    @property
    def damaged(self) -> int:
        """Packets and frames that could not be decoded as they should."""
        return sum(demuxer.damaged for demuxer in self._demuxers)

    @property
    def end(self) -> float | None:
        """Second of the media clock at which picture and sound are over, once both were read to their end."""
        ends = [track.end for track in (self.picture, self.sound) if track is not None]
        return None if None in ends else max(end for end in ends if end is not None)

    def close(self) -> None:
        """Close the containers; the tracks can't be read any more."""
        self.picture = self.sound = None
        self._demuxers.clear()
        self._sound = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
            self._containers.pop()
        while self._containers:
            self._containers.pop().close()

    def _open(self, seek: float | None = None) -> None:
        video, audio = self._wants
        container = self._container(seek)
        picture = picture_stream(container) if video else None
        sounds = self._sounds(container) if audio else []
        if picture is None and not sounds:
            only = "sound" if video else "picture"
            raise UsageError(
                f"{display_name(self._path)} has only {only}, and {only} is switched off",
                "Leave out --no-audio, or choose a model with an audio encoder." if video else "Leave out --no-video.",
            )
        apart = picture is not None and bool(sounds) and self._is_file
        if apart:
            sounds = self._sounds(self._container(seek))
        groups = [[picture] if picture is not None else [], sounds] if apart else [[picture, *sounds]]
        self._demuxers = [
            self._demuxer(opened, [stream for stream in streams if stream is not None])
            for opened, streams in zip(self._containers, groups, strict=True)
        ]
        if sounds:
            self._choose_sound(sounds)
        if picture is not None:
            # Frame threads would hold back live pictures.
            picture.thread_type = "AUTO" if self._is_file else "SLICE"
            picture.thread_count = DECODER_THREADS
            frames = shots(self._timed_pictures(picture))
            self.picture = PictureTrack(frames, self._fit, self._demuxers[0].count_damage, passing=self._passing)
        if self._sound is not None:
            frames = timed(self._demuxers[-1].frames(self._sound), None, self._tell)
            self.sound_is_exact = self._sound.codec_context.codec.lossless
            self.sound = SoundTrack(blocks(frames, self._demuxers[-1].count_damage, self._form.rate), self._form)

    def _demuxer(self, container: InputContainer, streams: list[VideoStream | AudioStream]) -> Demuxer:
        pause = LONGEST_PAUSE_S
        is_live = not self._is_file and not container.duration
        is_recording = stated_duration(container) is not None
        if not is_recording:
            pause = LONGEST_STREAM_PAUSE_S if is_live else LONGEST_UNSURE_PAUSE_S
        reader = self._arrivals(container, streams[0]) if is_live and len(streams) == 1 else None
        return Demuxer(
            container,
            streams,
            self._tell,
            longest_pause_s=pause,
            is_live=is_live and not comes_by_pipe(self._path),
            # A recording has its sound, be it far behind the picture that it belongs to.
            lull_s=math.inf if is_recording else LULL_S,
            reader=reader,
        )

    def _arrivals(self, container: InputContainer, stream: VideoStream | AudioStream) -> ArrivalReader | None:
        """Who notes when pictures come, if they have no times and come live."""
        if not isinstance(stream, VideoStream) or not _is_untimed(container):
            return None
        self._reader = ArrivalReader(container.demux(stream), container.close)
        self._reader.start()
        rate = stream.average_rate or stream.guessed_rate
        is_sure = container.format.name == "mpjpeg" and not comes_by_pipe(self._path)
        if not is_sure and not self._reader.comes_live(1 / rate if rate else Fraction(1, 25)):
            self._reader.notes_times = False
        return self._reader

    def _timed_pictures(self, picture: VideoStream) -> Iterator[Timed | Lull]:
        frames = self._demuxers[0].frames(picture)
        if self._reader is not None and self._reader.notes_times:
            return arrived(frames)
        rate = picture.average_rate or picture.guessed_rate
        moments = timed(frames, 1 / rate if rate else None, self._tell)
        return self._telling_rate(moments, rate) if _is_untimed(self._containers[0]) else moments

    def _telling_rate(self, moments: Iterator[Timed | Lull], rate: Fraction | None) -> Iterator[Timed | Lull]:
        for number, moment in enumerate(moments):
            if number == 1:
                self._tell(
                    "rate-assumed",
                    f"{display_name(self._path)} has no timestamps: {float(rate or 25):g} frames a second are assumed",
                    "If it has another rate R: ffmpeg -framerate R -i IN -c copy OUT.mkv",
                )
            yield moment

    def _sounds(self, container: InputContainer) -> list[AudioStream]:
        """The tracks that may be heard, the first choice first."""
        tracks = sound_streams(container)
        if self._audio_track is not None:
            if not 1 <= self._audio_track <= len(tracks):
                has = f"{len(tracks)} sound tracks" if len(tracks) != 1 else "1 sound track"
                names = ", ".join(track_name(container, track) for track in tracks)
                raise UsageError(
                    f"--audio-track {self._audio_track}: {display_name(self._path)} has {has}",
                    f"choose of {names}" if tracks else "leave --audio-track out",
                )
            return [tracks[self._audio_track - 1]]
        if len(tracks) < 2:
            return tracks
        programmes = programmes_of(container)
        found = sound_candidates(container, programmes)
        if len(programmes) > 1 and container.format.name not in VARIANTS:
            names = ", ".join(programme.name for programme in programmes)
            self._tell(
                "several-programmes",
                f"{display_name(self._path)} holds {len(programmes)} programmes ({names});"
                " picture and sound of one are used",
                "--audio-track N takes the sound of another.",
            )
        return found

    def _choose_sound(self, sounds: list[AudioStream]) -> None:
        self._sound = self._demuxers[-1].first_heard(sounds) if len(sounds) > 1 else sounds[0]
        if len(sounds) > 1:
            container = self._containers[-1]
            names = ", ".join(track_name(container, track) for track in sorted(sounds, key=lambda s: s.index))
            why = ", since the one before it is silent" if self._sound is not sounds[0] else ""
            self._tell(
                "several-tracks",
                f"{display_name(self._path)} has {len(sounds)} sound tracks: {names};"
                f" number {self.audio_track} is used{why}",
                "--audio-track N takes another.",
            )

    def _refuse_nothing(self) -> None:
        """An MP4 with its index at the end opens as a pipe, but then none of it can be found."""
        if all(
            track is None or (track.first is None and track.end is not None) for track in (self.picture, self.sound)
        ):
            raise undecodable(self._containers[0], display_name(self._path))

    def _tell(self, code: str, message: str, hint: str) -> None:
        if not self._trying:
            self._warn(code, message, hint)

    def _container(self, seek: float | None) -> InputContainer:
        container = open_container(self._path, tell=self._say)
        self._containers.append(container)
        if seek is not None:
            container.seek(round(seek * av.time_base))
        return container

    def _first_moment(self) -> float:
        """Second of the container's time at which its picture or sound begins, be they read or not."""
        begins = [track.first for track in (self.picture, self.sound) if track is not None]
        container = self._containers[0]
        sound = self._sound or next(iter(sound_streams(container)), None)
        for wanted, stream in zip(self._wants, (picture_stream(container), sound), strict=True):
            if not wanted and stream is not None and stream.start_time is not None and stream.time_base is not None:
                begins.append(float(stream.start_time * stream.time_base))
        return min((begin for begin in begins if begin is not None), default=0.0)

    def _origin_of(self, track: PictureTrack | SoundTrack | None, first: float) -> float:
        """Second of the container's time that is 0 for a track: `first`, unless its timestamps have another clock."""
        if track is None or track.first is None or track.first - first <= LONGEST_PAUSE_S:
            return first
        self._tell(
            "clocks-apart",
            f"picture and sound start {track.first - first:.0f} s apart by their timestamps;"
            " they are read as if they began together",
            "If they don't match, remux the file to repair its timestamps.",
        )
        return track.first

    def _seek(self, to: float) -> None:
        """Jump to second `to` of the container's time, or shortly before; where that can't be done, stay."""
        if not self._is_file and not self._path.lower().startswith("http"):
            return
        duration = self._containers[0].duration
        beyond = duration and to - self._first_moment() > duration / av.time_base
        if beyond and not self.format.startswith(INDEXED):
            return  # if there is something, timestamps begin anew before it
        tracks = [(track, track.first) for track in (self.picture, self.sound) if track is not None]
        began = [first is not None and first <= to for _, first in tracks]
        self.close()
        self._trying = True  # a server that can't jump is no news if reading from the beginning works
        try:
            self._open(seek=to - SEEK_MARGIN_S)
            found = [track.first for track in (self.picture, self.sound) if track is not None]
            # An index that leads behind the goal would lose the beginning.
            has_arrived = all(
                not before or (now is not None and -LONGEST_STEP_BACK_S <= now - to <= EPSILON_S)
                for before, now in zip(began, found, strict=True)
            )
            has_arrived = has_arrived and not (self.format in SEARCHED and leads_astray(self._path, to - SEEK_MARGIN_S))
        except FFmpegError:
            has_arrived = False
        finally:
            self._trying = False
        if not has_arrived:
            self.close()
            self._open()


def _is_untimed(container: InputContainer) -> bool:
    """Whether its format knows no times: raw video, pictures one behind the other."""
    return bool(container.format.flags & NO_TIMESTAMPS) or container.format.name.endswith("_pipe")

"""One run through a source: its containers, its tracks, and the clock that they share."""

from __future__ import annotations

from collections.abc import Callable

import av
from av.container import InputContainer
from av.error import FFmpegError

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import SourceError, UsageError
from omnitide_cli.media.clock import LONGEST_PAUSE_S, timed
from omnitide_cli.media.container import (
    PIPE_HINT,
    local_path,
    open_container,
    picture_stream,
    sound_stream,
)
from omnitide_cli.media.demux import Demuxer
from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.info import describe
from omnitide_cli.media.sound import SoundTrack, blocks
from omnitide_cli.media.track import EPSILON_S, PictureTrack, shots

SEEK_MARGIN_S = 1.0  # decoders of sound need a moment to settle after a jump
DECODER_THREADS = 4  # each holds a decoded picture, and the model needs the other cores
WIDEST_PIXEL = 8  # what says more is damaged and would ask for gigabytes


class Playback:
    """The tracks of one run, ready to be read from second `start` of the media clock on.

    A file is opened once for the picture and once for the sound, so that each is read at its own pace and neither has
    to be kept for the other. Standard input and streams can't be opened twice and share one container.
    """

    def __init__(
        self,
        path: str,
        *,
        fit: FrameFit,
        video: bool,
        audio: bool,
        start: float,
        warn: Callable[[str, str, str], None],
    ) -> None:
        self._path = path
        self._fit = fit
        self._wants = (video, audio)
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
            self.info = describe(self._containers[0], self.picture.first_frame if self.picture is not None else None)
            self.format = self._containers[0].format.name
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
        while self._containers:
            self._containers.pop().close()

    def _open(self, seek: float | None = None) -> None:
        video, audio = self._wants
        container = self._container(seek)
        picture = picture_stream(container) if video else None
        sound = sound_stream(container) if audio else None
        if picture is None and sound is None:
            only = "sound" if video else "picture"
            raise UsageError(
                f"{display_name(self._path)} has only {only}, and {only} is switched off",
                "Leave out --no-audio, or choose a model with an audio encoder." if video else "Leave out --no-video.",
            )
        local = local_path(self._path) is not None
        if picture is not None and sound is not None and local:
            other = self._container(seek)
            sound = sound_stream(other)
            groups = [(container, [picture]), (other, [sound])]
        else:
            groups = [(container, [stream for stream in (picture, sound) if stream is not None])]
        self._demuxers = [Demuxer(opened, streams, self._tell) for opened, streams in groups]
        if picture is not None:
            picture.thread_type = "AUTO" if local else "SLICE"  # frame threads would hold back live pictures
            picture.thread_count = DECODER_THREADS
            rate = picture.average_rate or picture.guessed_rate
            frames = timed(self._demuxers[0].frames(picture), 1 / rate if rate else None, self._tell)
            ratio = float(picture.sample_aspect_ratio or 1)
            ratio = ratio if 1 / WIDEST_PIXEL <= ratio <= WIDEST_PIXEL else 1.0
            self.picture = PictureTrack(shots(frames), self._fit, ratio, self._demuxers[0].count_damage)
        if sound is not None:
            frames = timed(self._demuxers[-1].frames(sound), None, self._tell)
            self.sound_is_exact = sound.codec_context.codec.lossless
            self.sound = SoundTrack(blocks(frames, self._demuxers[-1].count_damage))

    def _refuse_nothing(self) -> None:
        """An MP4 with its index at the end opens as a pipe, but then none of it can be found."""
        if all(
            track is None or (track.first is None and track.end is not None) for track in (self.picture, self.sound)
        ):
            raise SourceError(
                f"no video or audio could be decoded from {display_name(self._path)}",
                PIPE_HINT if self._path == "-" else "It may be damaged; if it comes from a server, download it first.",
            )

    def _tell(self, code: str, message: str, hint: str) -> None:
        if not self._trying:
            self._warn(code, message, hint)

    def _container(self, seek: float | None) -> InputContainer:
        container = open_container(self._path)
        self._containers.append(container)
        if seek is not None:
            container.seek(round(seek * av.time_base))
        return container

    def _first_moment(self) -> float:
        """Second of the container's time at which its picture or sound begins, be they read or not."""
        begins = [track.first for track in (self.picture, self.sound) if track is not None]
        container = self._containers[0]
        for wanted, stream in zip(self._wants, (picture_stream(container), sound_stream(container)), strict=True):
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
        if local_path(self._path) is None and not self._path.lower().startswith("http"):
            return
        tracks = [(track, track.first) for track in (self.picture, self.sound) if track is not None]
        began = [first is not None and first <= to for _, first in tracks]
        self.close()
        self._trying = True  # a server that can't jump is no news if reading from the beginning works
        try:
            self._open(seek=to - SEEK_MARGIN_S)
            found = [track.first for track in (self.picture, self.sound) if track is not None]
            # An index that leads behind the goal would lose the beginning.
            arrived = all(
                not before or (now is not None and now <= to + EPSILON_S)
                for before, now in zip(began, found, strict=True)
            )
        except FFmpegError:
            arrived = False
        finally:
            self._trying = False
        if not arrived:
            self.close()
            self._open()

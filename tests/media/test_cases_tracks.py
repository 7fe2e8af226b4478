"""Several sound tracks, several programmes, and sound that says nothing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from helpers_media import Sound, Video, Wave, counting, make_clip, tone

from omnitide_cli.errors import UsageError
from omnitide_cli.media import FrameFit, MediaSource, open_source
from omnitide_cli.media.silence import SilenceWatch
from omnitide_cli.media.sound import Stretch
from omnitide_cli.media.unit import NO_SOUND, WHISPER

FIT = FrameFit.square(16)
SILENCE: Wave = lambda time: np.zeros_like(time)  # noqa: E731


def with_tracks(path: Path, waves: list[Wave], seconds: float = 4.0, languages: tuple[str, ...] = ()) -> str:
    """A clip with a picture and one sound track for each wave."""
    with av.open(str(path), "w") as container:
        picture: Any = container.add_stream("libx264", rate=10, options={"preset": "ultrafast"})
        picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
        tracks: list[Any] = [container.add_stream("aac", rate=48_000, layout="mono") for _ in waves]
        for track, language in zip(tracks, languages, strict=False):
            track.metadata["language"] = language
        for second in range(int(seconds)):
            for index in range(10):
                frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 60, np.uint8), "rgb24")
                frame = frame.reformat(format="yuv420p")
                frame.pts, frame.time_base = second * 10 + index, Fraction(1, 10)
                container.mux(picture.encode(frame))
            for track, wave in zip(tracks, waves, strict=True):
                for first in range(0, 48_000, 960):
                    times = second + (first + np.arange(960)) / 48_000
                    block = av.AudioFrame.from_ndarray(wave(times).astype(np.float32)[None], "fltp", "mono")
                    block.sample_rate, block.pts = 48_000, second * 48_000 + first
                    block.time_base = Fraction(1, 48_000)
                    container.mux(track.encode(block))
        for stream in (picture, *tracks):
            container.mux(stream.encode(None))
    return str(path)


def pitch(source: MediaSource) -> list[int]:
    """The loudest frequency of each unit's sound, to 10 Hz; 0: silence."""
    found = []
    for unit in source:
        if unit.audio is not None and len(unit.audio) == WHISPER.rate:
            spectrum = np.abs(np.fft.rfft(unit.audio))
            found.append(round(int(spectrum.argmax()), -1) if spectrum.max() > 10 else 0)
    return found


def codes(source: MediaSource) -> list[str]:
    return [warning.code for warning in source.warnings]


@pytest.mark.parametrize("name", ["clip.mp4", "clip.mkv", "clip.ts"])
def test_the_silent_track_is_not_the_one_that_is_heard(tmp_path: Path, name: str) -> None:
    clip = with_tracks(tmp_path / name, [SILENCE, tone(0.5, 1000)], languages=("eng", "deu"))
    with open_source(clip, fit=FIT) as source:
        assert set(pitch(source)) == {1000}
        assert source.audio_track == 2
        (told,) = [warning for warning in source.warnings if warning.code == "several-tracks"]
        assert "1 (eng), 2 (deu)" in told.message
        assert "--audio-track" in told.hint
    with open_source(clip, fit=FIT, start=2) as source:
        assert set(pitch(source)) == {1000}


def test_a_pipe_hears_the_same_track(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_media_errors import pipe_in

    pipe_in(monkeypatch, with_tracks(tmp_path / "clip.mkv", [SILENCE, tone(0.5, 1000)]))
    with open_source("-", fit=FIT) as source:
        assert set(pitch(source)) == {1000}


def test_two_tracks_that_both_sound_are_the_first(tmp_path: Path) -> None:
    clip = with_tracks(tmp_path / "clip.mkv", [tone(0.5, 440), tone(0.5, 1000)])
    with open_source(clip, fit=FIT) as source:
        assert set(pitch(source)) == {440}
    with open_source(clip, fit=FIT, audio_track=2) as source:
        assert set(pitch(source)) == {1000}
        assert codes(source) == []


def test_tracks_that_are_all_silent_are_told(tmp_path: Path) -> None:
    with open_source(with_tracks(tmp_path / "clip.mkv", [SILENCE, SILENCE]), fit=FIT) as source:
        assert set(pitch(source)) == {0}
        assert codes(source) == ["several-tracks", "sound-silent"]


@pytest.mark.parametrize("track", [3, 9])
def test_a_track_that_is_not_there(tmp_path: Path, track: int) -> None:
    clip = with_tracks(tmp_path / "clip.mkv", [SILENCE, SILENCE], 1, ("eng",))
    with pytest.raises(UsageError, match="has 2 sound tracks") as caught:
        open_source(clip, fit=FIT, audio_track=track)
    assert "1 (eng), 2" in caught.value.hint


def test_a_track_of_a_clip_without_sound(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "clip.mkv", Video(counting(), 1))
    with pytest.raises(UsageError, match="has 0 sound tracks"):
        open_source(clip, fit=FIT, audio_track=1)


def test_silence_is_told_after_a_while_and_once() -> None:
    told: list[str] = []
    watch = SilenceWatch(lambda code, message, hint: told.append(message), "")
    silent = Stretch(np.zeros(WHISPER.rate, np.float32), NO_SOUND, NO_SOUND, WHISPER.rate)
    loud = Stretch(np.full(WHISPER.rate, 0.1, np.float32), NO_SOUND, NO_SOUND, WHISPER.rate)
    for stretch in [silent] * 29 + [loud] + [silent] * 29 + [None]:
        watch.hear(stretch)
    watch.end()
    assert told == []
    for _ in range(40):
        watch.hear(silent)
    assert told == ["the sound has been all zeros for 30 s"]


Recipe = Callable[[Path], str]


def stations(path: Path) -> str:
    """A radio station of 440 Hz, then television with 1000 Hz, in one transport stream."""
    if not shutil.which("ffmpeg"):
        pytest.skip("no ffmpeg: apt install ffmpeg")
    command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "sine=440:d=4", "-f", "lavfi", "-i"]
    command += ["testsrc=d=4:s=64x48:r=10", "-f", "lavfi", "-i", "sine=1000:d=4", "-map", "0", "-map", "1", "-map", "2"]
    command += ["-c:a", "aac", "-c:v", "mpeg2video", "-program", "title=radio:program_num=1:st=0"]
    command += ["-program", "title=tv:program_num=2:st=1:st=2", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return str(path)


def test_the_sound_is_that_of_the_picture_s_programme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from test_media_errors import pipe_in

    clip = stations(tmp_path / "two.ts")
    for place in (clip, "-"):
        pipe_in(monkeypatch, clip)
        with open_source(place, fit=FIT) as source:
            assert set(pitch(source)) == {1000}
            (told,) = source.warnings
            assert told.code == "several-programmes"
            assert "radio, tv" in told.message
    with open_source(clip, fit=FIT, audio_track=1) as source:
        assert set(pitch(source)) == {440}


def test_without_a_picture_the_first_programme_is_heard(tmp_path: Path) -> None:
    with open_source(stations(tmp_path / "two.ts"), fit=FIT, video=False) as source:
        assert source.audio_track == 2


def test_one_track_needs_no_word(tmp_path: Path) -> None:
    with open_source(make_clip(tmp_path / "a.ts", Video(counting(), 2), Sound(seconds=2)), fit=FIT) as source:
        list(source)
        assert codes(source) == []

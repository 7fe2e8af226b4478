"""How many units a source gives, and what each of them holds."""

from __future__ import annotations

import resource
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_media import Sound, Video, beeps, counting, make_clip, plain, tone

from omnitide_cli.errors import UsageError
from omnitide_cli.media import FrameFit, MediaUnit, SoundFormat, open_source

FIT = FrameFit.square(16)
SAME = np.testing.assert_array_equal


def units(path: str, **options: Any) -> list[MediaUnit]:
    with open_source(path, fit=FIT, **options) as source:
        return list(source)


def seconds_seen(found: list[MediaUnit]) -> list[int | None]:
    """Which second the picture of each unit shows, in clips of `counting` pictures."""
    return [None if u.frame is None else round((int(u.frame[8, 8, 0]) - 10) / 10) for u in found]


@pytest.mark.parametrize(
    ("seconds", "name", "codec", "rate"),
    [
        (30, "clip.wav", "pcm_s16le", 16_000),
        (60, "clip.wav", "pcm_s16le", 44_100),
        (30, "clip.m4a", "aac", 44_100),
        (60, "clip.m4a", "aac", 44_100),
        (30, "clip.mkv", "aac", 48_000),
        (60, "clip.mp3", "libmp3lame", 44_100),
        (30, "clip.ogg", "libopus", 48_000),
        (30, "clip.ts", "aac", 48_000),
    ],
)
def test_half_minutes_have_no_phantom_unit(tmp_path: Path, seconds: int, name: str, codec: str, rate: int) -> None:
    path = make_clip(tmp_path / name, sound=Sound(seconds=seconds, codec=codec, rate=rate, layout="mono"))
    found = units(path)
    assert [u.index for u in found] == list(range(seconds))
    assert [u.start for u in found] == list(range(seconds))
    assert found[-1].end == seconds
    assert {len(u.audio) for u in found if u.audio is not None} == {16_000}
    assert all(u.frame is None for u in found)


def test_a_clip_under_a_second_is_one_short_unit(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "short.wav", sound=Sound(seconds=0.6, codec="pcm_s16le", rate=16_000))
    (unit,) = units(path)
    assert unit.audio is not None
    assert len(unit.audio) == 9600
    assert unit.end == pytest.approx(0.6)


def test_sound_comes_as_the_model_wants_it(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.wav", sound=Sound(seconds=2.05, codec="pcm_s16le", rate=16_000, layout="mono"))
    first, second = units(path, sound=SoundFormat(rate=24_000, before=1_000, after=0, shortest=1_920))
    for unit, before in ((first, 0), (second, 1_000)):
        assert unit.audio is not None
        assert (len(unit.audio), len(unit.audio_left), len(unit.audio_right)) == (24_000, before, 0)
    assert first.audio is not None
    SAME(second.audio_left, first.audio[-1_000:])
    assert len(units(path, sound=SoundFormat(rate=24_000, before=0, after=0, shortest=1_200))) == 3


@pytest.mark.parametrize(("samples", "expected"), [(200, 1), (639, 1), (640, 2), (16_000 - 1, 2)])
def test_sound_too_short_for_a_token_is_counted_and_reported(tmp_path: Path, samples: int, expected: int) -> None:
    sound = Sound(seconds=1 + samples / 16_000, codec="pcm_s16le", rate=16_000, layout="mono")
    path = make_clip(tmp_path / "tail.wav", sound=sound)
    with open_source(path, fit=FIT) as source:
        assert len(list(source)) == expected
        dropped = samples if expected == 1 else 0
        assert source.dropped_samples == dropped
        assert [w.code for w in source.warnings] == (["sound-dropped"] if dropped else [])


def test_a_clip_too_short_for_a_token_has_no_unit_and_says_so(tmp_path: Path) -> None:
    sound = Sound(seconds=200 / 16_000, codec="pcm_s16le", rate=16_000)
    with open_source(make_clip(tmp_path / "tiny.wav", sound=sound), fit=FIT) as source:
        assert list(source) == []
        assert source.dropped_samples == 200
        assert len(source.warnings) == 1


def test_units_join_into_the_recording_and_see_beyond_their_edges(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).uniform(-0.5, 0.5, 3 * 16_000)
    sound = Sound(lambda t: noise[np.rint(t * 16_000).astype(int)], 3, rate=16_000, layout="mono", codec="flac")
    found = units(make_clip(tmp_path / "noise.mkv", sound=sound))
    whole = np.concatenate([u.audio for u in found if u.audio is not None])
    np.testing.assert_allclose(whole, noise, atol=1e-4)
    SAME(found[1].audio_left, whole[16_000 - 320 : 16_000])
    SAME(found[1].audio_right, whole[32_000:32_200])
    assert len(found[0].audio_left) == 0
    assert len(found[-1].audio_right) == 0


@pytest.mark.parametrize("layout", ["mono", "stereo", "5.1"])
@pytest.mark.parametrize("rate", [8_000, 44_100, 48_000, 96_000])
def test_every_layout_and_rate_keeps_pitch_and_does_not_clip(tmp_path: Path, layout: str, rate: int) -> None:
    sound = Sound(tone(0.9, hertz=440), 1, rate=rate, layout=layout, codec="pcm_s16le")
    (unit,) = units(make_clip(tmp_path / "tone.wav", sound=sound))
    assert unit.audio is not None
    assert unit.audio.dtype == np.float32
    assert np.abs(unit.audio).max() == pytest.approx(0.9, abs=0.03)
    assert np.argmax(np.abs(np.fft.rfft(unit.audio))) == 440


def test_video_without_sound_has_no_invented_silence(tmp_path: Path) -> None:
    found = units(make_clip(tmp_path / "mute.mp4", Video(counting(), 3)))
    assert seconds_seen(found) == [0, 1, 2]
    assert all(u.audio is None and u.audio_left.size == u.audio_right.size == 0 for u in found)


@pytest.mark.parametrize("name", ["song.mp3", "song.mp4"])
def test_the_cover_of_an_album_is_no_video(tmp_path: Path, name: str) -> None:
    sound = Sound(seconds=3, rate=44_100, codec="libmp3lame" if name.endswith("mp3") else "aac")
    with open_source(make_clip(tmp_path / name, sound=sound, cover=True), fit=FIT) as source:
        assert not source.info.has_video
        assert source.info.has_audio
        found = list(source)
    assert len(found) == 3
    assert all(u.frame is None and u.audio is not None for u in found)


def test_info_tells_what_the_header_knows(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.mp4", Video(plain((9, 9, 9), (64, 32)), 3, fps=25, rotation=90), Sound(seconds=3))
    with open_source(path, fit=FIT) as source:
        info = source.info
        assert (info.width, info.height, info.fps) == (32, 64, 25)
        assert (info.video_codec, info.audio_codec, info.duration) == ("h264", "aac", 3)
        assert source.units_total == 3
        assert len(list(source)) == 3


def test_switched_off_streams_are_absent_but_the_clock_is_the_same(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "late.mkv", Video(counting(), 4), Sound(beeps([2.5]), 2, begin=2))
    heard = units(path, video=False)
    assert [u.audio is not None for u in heard] == [False, False, True, True]
    assert all(u.frame is None for u in heard)
    assert all(u.audio is None for u in units(path, audio=False))


def test_switching_off_all_there_is_is_a_usage_error(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "mute.mp4", Video(seconds=1))
    with pytest.raises(UsageError, match="only picture"):
        open_source(path, fit=FIT, video=False)


@pytest.mark.parametrize("name", ["clip.mp4", "clip.mkv", "clip.ts"])
def test_start_and_duration_choose_a_part(tmp_path: Path, name: str) -> None:
    path = make_clip(tmp_path / name, Video(counting(), 8, fps=10), Sound(beeps([5.5]), 8))
    with open_source(path, fit=FIT, start=4, duration=2.5) as source:
        assert source.units_total in (3, None)
        found = list(source)
    assert [(u.index, u.start, u.end) for u in found] == [(0, 4, 5), (1, 5, 6), (2, 6, 6.5)]
    assert seconds_seen(found) == [4, 5, 6]
    loud = [int(np.abs(u.audio).max() > 0.1) for u in found if u.audio is not None]
    assert loud == [0, 1, 0]
    assert len(found[0].audio_left) == 320
    assert len(found[-1].audio_right) == 200


def test_a_start_behind_the_end_is_a_usage_error(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.mp4", Video(seconds=2))
    with pytest.raises(UsageError, match="ends at 0:02"):
        open_source(path, fit=FIT, start=5)


def test_loops_continue_index_and_clock(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.mkv", Video(counting(), 2.5, fps=10), Sound(seconds=2.5))
    with open_source(path, fit=FIT, loops=3) as source:
        assert source.units_total == 9
        found = list(source)
    assert [u.index for u in found] == list(range(9))
    assert seconds_seen(found) == [0, 1, 2] * 3
    assert [u.start for u in found] == pytest.approx([0, 1, 2, 2.5, 3.5, 4.5, 5, 6, 7], abs=0.1)
    assert all(before.end == after.start for before, after in pairwise(found))


@pytest.mark.parametrize("unit_seconds", [0.1, 0.5, 2.0])
def test_units_may_have_another_length(tmp_path: Path, unit_seconds: float) -> None:
    path = make_clip(tmp_path / "clip.mkv", Video(counting(), 4), Sound(seconds=4))
    found = units(path, unit_seconds=unit_seconds)
    assert len(found) == round(4 / unit_seconds)
    assert {len(u.audio) for u in found if u.audio is not None} == {round(unit_seconds * 16_000)}


@pytest.mark.parametrize("wrong", [{"start": -1}, {"duration": 0}, {"loops": 0}, {"unit_seconds": 0.01}])
def test_impossible_parts_are_usage_errors(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = make_clip(tmp_path / "clip.mp4", Video(seconds=1))
    with pytest.raises(UsageError):
        open_source(path, fit=FIT, **wrong)


def test_a_closed_source_gives_no_more_units(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.mkv", Video(counting(), 4, fps=10), Sound(seconds=4))
    source = open_source(path, fit=FIT)
    next(iter(source))
    source.close()
    source.close()
    assert list(source) == []


def test_memory_does_not_grow_with_the_length(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "clip.mp4", Video(counting((320, 240)), 2, fps=10), Sound(seconds=2))
    grown, peaks = [], []
    with open_source(path, fit=FIT, loops=30) as source:
        tracemalloc.start()
        for unit in source:
            if unit.index in (20, 59):
                grown.append(tracemalloc.get_traced_memory()[0])
                peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        tracemalloc.stop()
    assert grown[1] - grown[0] < 200_000
    assert peaks[1] - peaks[0] < 8_000  # KiB: libav's own memory, which Python does not see

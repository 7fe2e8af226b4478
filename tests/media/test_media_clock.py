"""Picture and sound of the same moment are in the same unit, whatever the timestamps of the file look like."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from helpers_media import Sound, Video, beeps, counting, flashes, make_clip

from omnitide_cli.media import FrameFit, MediaUnit, open_source
from omnitide_cli.media.clock import Timed, timed

FIT = FrameFit.square(16)
FINE = 0.04
"""Seconds of the shortest unit, and by how much picture and sound may be apart."""


def units(path: str, **options: Any) -> list[MediaUnit]:
    with open_source(path, fit=FIT, **options) as source:
        return list(source)


def bright(unit: MediaUnit) -> bool:
    return unit.frame is not None and int(unit.frame[8, 8, 0]) > 128


def loud(unit: MediaUnit) -> bool:
    return unit.audio is not None and float(np.abs(unit.audio).max()) > 0.1


def flash_at(path: str) -> float:
    """Second by which the flash is on screen; it came on less than FINE earlier."""
    flash = next(u for u in units(path, unit_seconds=FINE) if bright(u))
    return (flash.start + flash.end) / 2


def beep_at(found: list[MediaUnit]) -> float:
    """Second at which the first beep begins."""
    unit = next(u for u in found if loud(u))
    assert unit.audio is not None
    return unit.start + int(np.argmax(np.abs(unit.audio) > 0.1)) / 16_000


def assert_flash_meets_beep(path: str, second: int) -> None:
    """The flash and the beep of a clip, in the middle of `second`, are in that unit and no other, at the same time."""
    coarse = units(path)
    assert [u.index for u in coarse if bright(u)] == [second]
    assert [u.index for u in coarse if loud(u)] == [second]
    flash = flash_at(path)
    assert flash - FINE <= beep_at(coarse) <= flash  # so they are at most FINE apart


@pytest.mark.parametrize("fps", [25, Fraction(30_000, 1001), 30, 60])
@pytest.mark.parametrize("rate", [44_100, 48_000])
@pytest.mark.parametrize(("layout", "name"), [("mono", "clip.mkv"), ("stereo", "clip.mp4"), ("5.1", "clip.ts")])
def test_flash_and_beep_meet(tmp_path: Path, fps: Fraction | int, rate: int, layout: str, name: str) -> None:
    video = Video(flashes([1.4]), 2, fps=fps)
    assert_flash_meets_beep(make_clip(tmp_path / name, video, Sound(beeps([1.4]), 2, rate=rate, layout=layout)), 1)


@pytest.mark.parametrize("offset", [95_443.0, 95_442.5, 10_000.0, -0.7])
def test_a_transport_stream_may_begin_anywhere(tmp_path: Path, offset: float) -> None:
    """95,442.5 s: the 33-bit clock of the stream wraps around in the middle of the clip."""
    path = make_clip(tmp_path / "clip.ts", Video(flashes([1.4]), 3), Sound(beeps([1.4]), 3), offset=offset)
    found = units(path)
    assert [u.start for u in found] == [0, 1, 2]
    assert_flash_meets_beep(path, 1)


def test_variable_frame_rate_shows_the_frame_of_the_middle(tmp_path: Path) -> None:
    times = [0, 0.1, 0.45, 0.9, 1.6, 1.7, 4.2, 4.4, 4.8]
    shown = units(make_clip(tmp_path / "vfr.mkv", Video(lambda t: counting()(t * 10), times=times)))
    grey = [None if u.frame is None else int(u.frame[8, 8, 0]) for u in shown]
    # At 0.5 s the frame of 0.45 is on screen, at 1.5 that of 0.9, at 2.5 and 3.5 that of 1.7, at 4.5 that of 4.4.
    assert grey == pytest.approx([50, 100, 180, 180, 255], abs=3)


def test_a_video_that_begins_late_shows_its_first_frame_in_its_first_unit(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "late.mkv", Video(counting(), 1.2, begin=1.8), Sound(seconds=3))
    assert [u.frame is not None for u in units(path)] == [False, True, True]


def test_sound_that_begins_late_is_absent_before_and_padded_within_its_first_unit(tmp_path: Path) -> None:
    path = make_clip(
        tmp_path / "late.mkv", Video(counting(), 4), Sound(beeps([2.5], 1.5), 1.5, begin=2.5, codec="flac")
    )
    found = units(path)
    assert [u.audio is not None for u in found] == [False, False, True, True]
    assert found[2].audio is not None
    assert len(found[2].audio) == 16_000
    assert np.abs(found[2].audio[:7_900]).max() == 0 < np.abs(found[2].audio[8_000:]).max()
    assert found[2].audio_left.size == 0
    assert found[3].audio_left.size == 320


def test_seconds_after_the_end_of_one_stream_hold_only_the_other(tmp_path: Path) -> None:
    short_video = units(make_clip(tmp_path / "a.mp4", Video(counting(), 2), Sound(seconds=4)))
    assert [u.frame is not None for u in short_video] == [True, True, False, False]
    assert all(u.audio is not None for u in short_video)
    short_sound = units(make_clip(tmp_path / "b.mkv", Video(counting(), 4), Sound(seconds=2.4, codec="flac")))
    assert [u.audio is not None for u in short_sound] == [True, True, True, False]
    assert short_sound[2].audio is not None
    assert len(short_sound[2].audio) == 16_000
    assert np.abs(short_sound[2].audio[6_500:]).max() == 0


def test_a_gap_in_the_sound_is_silence_and_what_follows_stays_in_time(tmp_path: Path) -> None:
    sound = Sound(beeps([1.0, 4.4]), 6, gap=(1.5, 3.7), codec="flac")
    path = make_clip(tmp_path / "gap.mkv", Video(flashes([4.4]), 6), sound)
    found = units(path)
    assert all(u.audio is not None and len(u.audio) == 16_000 for u in found)
    assert [u.index for u in found if loud(u)] == [1, 4]
    assert found[2].audio is not None
    assert np.abs(found[2].audio).max() == 0


def moments(timestamps: list[int | None]) -> tuple[list[float], list[str]]:
    """When frames with these timestamps (in tenths of a second) begin, and the codes of the warnings."""
    frames, codes = [], []
    for pts in timestamps:
        frame = av.VideoFrame(16, 16, "gray")
        frame.pts, frame.time_base = pts, Fraction(1, 10)
        frames.append(frame)
    times = timed(iter(frames), Fraction(1, 10), lambda code, *_: codes.append(code))
    return [float(moment.begin) for moment in times if isinstance(moment, Timed)], codes


@pytest.mark.parametrize(
    ("timestamps", "begins", "warned"),
    [
        ([0, 1, None, 3], [0, 0.1, 0.2, 0.3], False),  # a missing one
        ([0, 1, 900, 3, 4], [0, 0.1, 0.2, 0.3, 0.4], False),  # stray ones
        ([0, 1, 900, None, -900, 5], [0, 0.1, 0.2, 0.3, 0.4, 0.5], False),
        ([0, 1, 62, 63, 64], [0, 0.1, 6.2, 6.3, 6.4], False),  # a pause
        ([0, 1, 2, -50, -49], [0, 0.1, 0.2, 0.3, 0.4], True),  # glued recordings
        ([500_000, 500_001, 0, 1], [50_000, 50_000.1, 50_000.2, 50_000.3], True),
        ([0, 1, 900_000, 900_001], [0, 0.1, 0.2, 0.3], True),  # a leap of a day
        ([-7, -6, -5], [-0.7, -0.6, -0.5], False),
    ],
)
def test_wrong_timestamps_are_told_from_pauses(timestamps: list[int | None], begins: list[float], warned: bool) -> None:
    found, codes = moments(timestamps)
    assert found == pytest.approx(begins)
    assert codes == (["clock-jump"] if warned else [])


def test_a_frame_of_days_is_damage() -> None:
    frames = []
    for pts in range(3):
        frame = av.VideoFrame(16, 16, "gray")
        frame.pts, frame.time_base, frame.duration = pts, Fraction(700_000), 1
        frames.append(frame)
    codes: list[str] = []
    times = timed(iter(frames), Fraction(700_000), lambda code, *_: codes.append(code))
    assert [float(moment.end) for moment in times if isinstance(moment, Timed)] == pytest.approx([0.04, 0.08, 0.12])
    assert set(codes) == {"clock-jump"}


def test_picture_and_sound_on_different_clocks_are_read_together(tmp_path: Path) -> None:
    """A camera that stamps its picture with the time since it was switched on, its sound from 0."""
    video, sound = Video(flashes([1.4]), 3), Sound(beeps([1.4]), 3, codec="flac")
    path = make_clip(
        tmp_path / "clip.mkv", replace(video, begin=90_000, picture=lambda t: video.picture(t - 90_000)), sound
    )
    assert_flash_meets_beep(path, 1)
    with open_source(path, fit=FIT, start=1) as source:
        assert [(u.start, bright(u), loud(u)) for u in source] == [(1, True, True), (2, False, False)]
        assert "clocks-apart" in [w.code for w in source.warnings]


def test_recordings_glued_together_go_on_in_time(tmp_path: Path) -> None:
    one = Path(make_clip(tmp_path / "one.ts", Video(flashes([1.4]), 3), Sound(beeps([1.4]), 3), offset=500))
    two = Path(make_clip(tmp_path / "two.ts", Video(flashes([1.4]), 3), Sound(beeps([1.4]), 3), offset=20))
    glued = tmp_path / "glued.ts"
    glued.write_bytes(one.read_bytes() + two.read_bytes())
    with open_source(str(glued), fit=FIT) as source:
        found = list(source)
        assert "clock-jump" in [w.code for w in source.warnings]
    assert len(found) in (6, 7)  # AAC's first block makes each part 21 ms longer
    assert [u.index for u in found if bright(u)] == [u.index for u in found if loud(u)] == [1, 4]

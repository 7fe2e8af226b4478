"""Clocks that jump, recordings that were joined, lengths that are only estimated, pixels that change their shape."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers_media import Picture, Sound, Video, beeps, counting, flashes, make_clip
from test_cases_pipes import written_into

from omnitide_cli.errors import UsageError
from omnitide_cli.media import FrameFit, MediaSource, MediaUnit, open_live, open_source

FIT = FrameFit.square(16)
LARGE = FrameFit.square(96)


def part(path: Path, offset: float = 0.0, seconds: float = 4.0) -> bytes:
    """A flash and a beep at 1.4 s."""
    clip = make_clip(path, Video(flashes([1.4]), seconds, fps=10), Sound(beeps([1.4]), seconds), offset=offset)
    return Path(clip).read_bytes()


def flash_and_beep(units: list[MediaUnit]) -> tuple[list[int], list[int]]:
    flash = [u.index for u in units if u.frame is not None and u.frame.max() > 128]
    return flash, [u.index for u in units if u.audio is not None and abs(u.audio).max() > 0.1]


def codes(source: MediaSource) -> list[str]:
    return [warning.code for warning in source.warnings]


@pytest.mark.parametrize("jump", [1800.0, 120.0, 40_000.0, -300.0])
def test_a_camera_whose_clock_jumps(tmp_path: Path, jump: float) -> None:
    data = part(tmp_path / "a.ts", 500) + part(tmp_path / "b.ts", 500 + jump)
    with written_into(tmp_path / "pipe", data) as pipe, open_source(pipe, fit=FIT) as source:
        found = list(source)
        assert len(found) in (8, 9)
        assert flash_and_beep(found) == ([1, 5], [1, 5])
        assert codes(source) == ["clock-jump"]


def test_a_transport_stream_that_was_recorded_over_a_jump(tmp_path: Path) -> None:
    (tmp_path / "c.ts").write_bytes(part(tmp_path / "a.ts", 500) + part(tmp_path / "b.ts", 2300))
    with open_source(str(tmp_path / "c.ts"), fit=FIT) as source:
        found = list(source)
        assert flash_and_beep(found) == ([1, 5], [1, 5])
        assert codes(source) == ["clock-jump"]


def test_a_microphone_that_is_off_for_two_minutes_is_no_jump(tmp_path: Path) -> None:
    sound = Sound(beeps([1.4, 130.4]), 134, rate=16_000, layout="mono", gap=(3, 128))
    clip = make_clip(tmp_path / "a.ts", Video(flashes([130.4]), 134, fps=5), sound)
    with open_source(clip, fit=FIT) as source:
        found = list(source)
        assert flash_and_beep(found) == ([130], [1, 130])
        assert codes(source) == ["sound-silent"]


def test_a_slide_that_stands_for_ten_minutes_is_no_jump(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "slides.mkv", Video(counting(), times=[0.0, 600.0, 601.0]))
    with open_source(clip, fit=FIT) as source:
        assert len(list(source)) in (601, 602)
        assert codes(source) == []


@pytest.mark.parametrize("name", ["part.ts", "part.mkv", "part.mpg"])
def test_joined_streams_have_no_end_that_is_known(tmp_path: Path, name: str) -> None:
    codec = ("mpeg1video", "mp2") if name.endswith("mpg") else ("libx264", "aac")
    video, sound = Video(counting(), 6, fps=25, codec=codec[0]), Sound(beeps([1.4]), 6, codec=codec[1])
    data = Path(make_clip(tmp_path / name, video, sound)).read_bytes()
    joined = tmp_path / f"joined-{name}"
    joined.write_bytes(data + data)
    with open_source(str(joined), fit=FIT, start=9) as source:
        assert source.units_total is None
        found = list(source)
        assert [unit.start for unit in found][:3] == [9, 10, 11]
        grey = [int(unit.frame[8, 8, 0]) for unit in found[:3] if unit.frame is not None]
        assert grey == pytest.approx([40, 50, 60], abs=6)
    with open_source(str(joined), fit=FIT) as source:
        assert len(list(source)) in (12, 13)


@pytest.mark.parametrize("start", [2, 9])
@pytest.mark.parametrize("name", ["part.ts", "part.mkv", "part.mpg", "part.flac", "part.mp3"])
def test_a_start_in_the_first_of_joined_parts_is_found_there(tmp_path: Path, name: str, start: int) -> None:
    """Its time comes a second time in the other, where a search by halves may find it."""
    codec = {"mpg": ("mpeg1video", "mp2"), "flac": ("", "flac"), "mp3": ("", "libmp3lame")}
    picture, sound = codec.get(name.rpartition(".")[2], ("libx264", "aac"))
    video = Video(counting(), 12, fps=25, codec=picture) if picture else None
    data = Path(make_clip(tmp_path / name, video, Sound(beeps([10.4]), 12, codec=sound))).read_bytes()
    joined = tmp_path / f"joined-{name}"
    joined.write_bytes(data + data)
    with open_source(str(joined), fit=FIT, start=start) as source:
        found = list(source)
    assert len(found) in (24 - start, 25 - start)
    heard = [unit.start for unit in found if unit.audio is not None and abs(unit.audio).max() > 0.1]
    assert heard in ([10, 22], [10, 22, 23])


@pytest.mark.parametrize("name", ["part.aac", "part.mp3", "part.flac"])
def test_the_length_of_sound_is_no_border(tmp_path: Path, name: str) -> None:
    """Noise, then silence, in a variable bit rate: the length is guessed from the first seconds."""
    codec = {"aac": "aac", "mp3": "libmp3lame", "flac": "flac"}[name.rpartition(".")[2]]
    noise = np.random.default_rng(1)
    wave = lambda time: np.where(time < 4, noise.uniform(-0.8, 0.8, len(time)), 0.0)  # noqa: E731
    clip = make_clip(tmp_path / name, sound=Sound(wave, 60, codec=codec))
    with open_source(clip, fit=FIT, start=50) as source:
        found = list(source)
        assert [unit.start for unit in found[:10]] == list(range(50, 60))
    with pytest.raises(UsageError, match="ends at 1:00"):
        open_source(clip, fit=FIT, start=90)


def test_what_a_header_says_is_shown_and_refuses(tmp_path: Path) -> None:
    for name, codec in (("a.mp4", "aac"), ("a.wav", "pcm_s16le")):
        clip = make_clip(tmp_path / name, sound=Sound(seconds=5, codec=codec))
        with open_source(clip, fit=FIT) as source:
            assert source.units_total == 5
        with pytest.raises(UsageError, match="before the start at 0:08"):
            open_source(clip, fit=FIT, start=8)


def circle(wide: Fraction) -> Picture:
    """What is a circle if pixels are `wide` times as wide as high."""
    y, x = np.mgrid[0:96, 0:128]
    inside = ((x - 64) * float(wide)) ** 2 + (y - 48) ** 2 < 30**2
    frame = np.repeat(np.where(inside, 255, 0)[..., None], 3, axis=2).astype(np.uint8)
    return lambda _: frame


def roundness(unit: MediaUnit) -> float:
    """Width over height of what is bright."""
    assert unit.frame is not None
    bright = unit.frame[..., 0] > 128
    return float(np.count_nonzero(bright.any(axis=0)) / np.count_nonzero(bright.any(axis=1)))


@pytest.mark.parametrize("name", ["part.ts", "part.h264"])
def test_a_circle_stays_a_circle_when_the_pixels_change(tmp_path: Path, name: str) -> None:
    shapes = [Fraction(16, 15), Fraction(64, 45), Fraction(1, 2)]
    joined = tmp_path / f"joined-{name}"
    with joined.open("wb") as file:
        for number, shape in enumerate(shapes):
            video = Video(circle(shape), 3, fps=25, pixel_ratio=shape)
            file.write(Path(make_clip(tmp_path / f"{number}-{name}", video)).read_bytes())
    with open_source(str(joined), fit=LARGE) as source:
        found = [roundness(unit) for unit in source if unit.frame is not None]
    assert len(found) in (9, 10)
    assert found == pytest.approx([1.0] * len(found), abs=0.08)


@pytest.mark.parametrize("name", ["wide.mkv", "wide.mp4", "wide.ts"])
def test_a_circle_stays_a_circle_in_front_of_a_live_camera(tmp_path: Path, name: str) -> None:
    shape = Fraction(2, 1)
    clip = make_clip(tmp_path / name, Video(circle(shape), 2, fps=10, pixel_ratio=shape))
    with open_live(clip, "none", fit=LARGE, duration=1, unit_seconds=0.5) as source:
        assert [roundness(unit) for unit in source if unit is not None] == pytest.approx([1.0, 1.0], abs=0.08)

"""Named pipes, /dev/fd, addresses of file managers: opened once, and the same units as the file."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from helpers_media import Sound, Video, beeps, counting, flashes, make_clip

from omnitide_cli.errors import SourceError, UsageError
from omnitide_cli.media import FrameFit, MediaUnit, open_live, open_source

FIT = FrameFit.square(16)

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


def shape(units: list[MediaUnit]) -> list[tuple[object, ...]]:
    """Times and contents of units, to compare two ways of reading the same clip."""
    return [
        (
            u.index,
            u.start,
            round(u.end, 2),
            None if u.frame is None else round(float(u.frame.mean())),
            None if u.audio is None else (len(u.audio), round(float(abs(u.audio).max()), 1)),
        )
        for u in units
    ]


@contextmanager
def written_into(pipe: Path, data: bytes, piece: int = 7000, pause: float = 0.0) -> Iterator[str]:
    """A named pipe that somebody writes `data` into, once."""
    os.mkfifo(pipe)

    def write() -> None:
        try:
            with pipe.open("wb", buffering=0) as end:
                for at in range(0, len(data), piece):
                    end.write(data[at : at + piece])
                    time.sleep(pause)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    yield str(pipe)
    writer.join(5)
    assert not writer.is_alive()


@pytest.mark.parametrize(
    ("name", "options"),
    [("clip.ts", {}), ("clip.mkv", {}), ("clip.webm", {}), ("clip.mp4", {"movflags": "frag_keyframe+empty_moov"})],
)
def test_a_named_pipe_gives_the_units_of_the_file(tmp_path: Path, name: str, options: dict[str, str]) -> None:
    codecs = ("libvpx-vp9", "libopus") if name.endswith("webm") else ("libx264", "aac")
    video, sound = Video(counting(), 5, fps=10, codec=codecs[0]), Sound(beeps([2.4]), 5, codec=codecs[1])
    clip = make_clip(tmp_path / name, video, sound, options=options)
    with open_source(clip, fit=FIT) as file:
        expected = shape(list(file))
    with written_into(tmp_path / "pipe", Path(clip).read_bytes()) as pipe, open_source(pipe, fit=FIT) as source:
        assert shape(list(source)) == expected
        assert not source.warnings


def test_a_descriptor_is_read_as_process_substitution_gives_it(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "clip.mkv", Video(counting(), 3, fps=10), Sound(seconds=3))
    data = Path(clip).read_bytes()
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as end:
            end.write(data)

    threading.Thread(target=write, daemon=True).start()
    with open_source(clip, fit=FIT) as file, open_source(f"/dev/fd/{reader}", fit=FIT) as source:
        assert shape(list(source)) == shape(list(file))
    os.close(reader)


def test_a_pipe_into_which_nothing_is_written(tmp_path: Path) -> None:
    with written_into(tmp_path / "pipe", b"") as pipe, pytest.raises(SourceError, match="is empty"):
        open_source(pipe, fit=FIT)


def test_a_pipe_that_holds_no_video_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    with written_into(tmp_path / "pipe", b"\0\0\0\x20ftypisom" * 9) as pipe, pytest.raises(SourceError) as caught:
        open_source(pipe, fit=FIT)
    assert caught.value.hint


def test_a_writer_that_dies_half_way(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "clip.ts", Video(counting((160, 120)), 6, fps=10), Sound(seconds=6))
    data = Path(clip).read_bytes()
    with written_into(tmp_path / "pipe", data[: len(data) // 2]) as pipe, open_source(pipe, fit=FIT) as source:
        assert 2 <= len(list(source)) <= 4


def test_a_pipe_can_t_be_looped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="played twice"):
        open_source(str(tmp_path / "pipe"), fit=FIT, loops=2)


def test_a_start_is_read_up_to(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "clip.mkv", Video(counting(), 5, fps=10), Sound(seconds=5))
    with open_source(clip, fit=FIT, start=3) as file:
        expected = shape(list(file))
    with (
        written_into(tmp_path / "pipe", Path(clip).read_bytes()) as pipe,
        open_source(pipe, fit=FIT, start=3) as source,
    ):
        assert shape(list(source)) == expected


def test_a_pipe_as_a_camera(tmp_path: Path) -> None:
    data = Path(make_clip(tmp_path / "clip.ts", Video(flashes([1.2], length=0.6), 2, fps=10))).read_bytes()
    with written_into(tmp_path / "pipe", data) as pipe, open_live(pipe, "none", fit=FIT) as source:
        found = [unit for unit in source if unit is not None]
    assert [unit.frame is not None and unit.frame.mean() > 100 for unit in found[:2]] == [False, True]


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("my clip.mkv", "file://{folder}/my%20clip.mkv"),
        ("my clip.mkv", "file://localhost{folder}/my%20clip.mkv"),
        ("my clip.mkv", "file:{folder}/my%20clip.mkv"),
        ("my clip.mkv", "FILE://{folder}/my clip.mkv"),
        ("100%.mkv", "file://{folder}/100%25.mkv"),
        ("100%.mkv", "file://{folder}/100%.mkv"),
        ("中文.mkv", "file://{folder}/%E4%B8%AD%E6%96%87.mkv"),
        ("a%20b.mkv", "file://{folder}/a%20b.mkv"),
        ("a%20b.mkv", "{folder}/a%20b.mkv"),
    ],
)
def test_addresses_as_file_managers_copy_them(tmp_path: Path, name: str, address: str) -> None:
    make_clip(tmp_path / name, Video(counting(), 1, fps=10))
    place = address.format(folder=tmp_path)
    with open_source(place, fit=FIT) as source:
        assert len(list(source)) == 1
    with open_live(place, "none", fit=FIT, duration=0.3, unit_seconds=0.3) as live:
        assert [unit.frame is not None for unit in live if unit is not None] == [True]


def test_an_address_of_a_file_that_is_not_there() -> None:
    with pytest.raises(SourceError, match="there is no file"):
        open_source("file:///tmp/no%20such%20clip.mp4", fit=FIT)


def test_a_pipe_without_a_writer_says_what_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnitide_cli.media.pipe.PATIENCE_S", 0.2)
    data = Path(make_clip(tmp_path / "clip.mkv", Video(counting(), 2, fps=10))).read_bytes()
    pipe, said = tmp_path / "pipe", []
    os.mkfifo(pipe)

    def write_late() -> None:
        while not said:
            time.sleep(0.05)
        pipe.write_bytes(data)

    writer = threading.Thread(target=write_late, daemon=True)
    writer.start()
    with open_source(str(pipe), fit=FIT, say=said.append) as source:
        assert len(list(source)) == 2
    assert len(said) == 1
    assert str(pipe) in said[0]


def pictures(count: int, size: int) -> list[bytes]:
    """JPEG pictures, one behind the other, as cheap cameras send them."""
    coder = av.CodecContext.create("mjpeg", "w")
    coder.width = coder.height = size
    coder.pix_fmt, coder.time_base = "yuvj420p", Fraction(1, 25)
    found: list[bytes] = []
    for index in range(count):
        frame = av.VideoFrame.from_ndarray(np.full((size, size, 3), 4 * index, np.uint8), format="rgb24")
        frame = frame.reformat(format="yuvj420p")
        frame.pts = index
        found += [bytes(packet) for packet in coder.encode(frame)]
    return found


@pytest.mark.parametrize("size", [32, 320])
def test_small_pictures_come_as_they_are_sent(tmp_path: Path, size: int) -> None:
    """libav would read megabytes of them before it says what they are."""
    sent = pictures(30, size)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write() -> None:
        with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as end:
            for picture in sent:
                end.write(picture)
                time.sleep(0.1)

    threading.Thread(target=write, daemon=True).start()
    began = time.monotonic()
    with open_source(str(pipe), fit=FIT) as source:
        units = iter(source)
        next(units)
        assert time.monotonic() - began < 2.8, "not all at the end"
        rest = list(units)
        assert 2 <= 1 + len(rest) <= 4
        assert rest[-1].end == pytest.approx(3.0, abs=0.6)
        assert not source.warnings


def test_a_photo_in_a_pipe(tmp_path: Path) -> None:
    with written_into(tmp_path / "pipe", pictures(1, 64)[0]) as pipe, open_source(pipe, fit=FIT) as source:
        (unit,) = source
        assert unit.frame is not None


@pytest.mark.parametrize("seconds", [3, 30])
def test_a_recording_whose_sound_lies_far_behind_its_picture(tmp_path: Path, seconds: int) -> None:
    """The shipped clip is such a one: many seconds of picture come before any sound."""
    clip = Path(__file__).parents[2] / "examples" / "shapes-and-notes.mp4"
    with open_source(str(clip), fit=FIT, duration=seconds) as file:
        expected = shape(list(file))
    with (
        written_into(tmp_path / "pipe", clip.read_bytes(), piece=1 << 16) as pipe,
        open_source(pipe, fit=FIT, duration=seconds) as source,
    ):
        assert shape(list(source)) == expected
        assert not source.warnings

"""Frames come out as a viewer would see them: upright, in their colours, in their proportions."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from helpers_media import Video, make_clip, plain
from numpy.typing import NDArray

from omnitide_cli.media import FrameFit, open_source

RED, GREEN, BLUE, WHITE = (230, 20, 20), (20, 200, 20), (20, 20, 230), (240, 240, 240)


def quarters(width: int = 128, height: int = 64) -> NDArray[np.uint8]:
    """Red, green / blue, white: every turn and every mirroring of it looks different."""
    frame = np.zeros((height, width, 3), np.uint8)
    frame[: height // 2, : width // 2], frame[: height // 2, width // 2 :] = RED, GREEN
    frame[height // 2 :, : width // 2], frame[height // 2 :, width // 2 :] = BLUE, WHITE
    return frame


def only_frame(path: str, fit: FrameFit) -> NDArray[np.uint8]:
    with open_source(path, fit=fit) as source:
        frame = next(iter(source)).frame
    assert frame is not None
    assert frame.dtype == np.uint8
    assert frame.shape[2] == 3
    return frame


def corners(frame: NDArray[np.uint8]) -> list[str]:
    """Names of the colours at the middle of the four quarters of what is not black."""
    lit = frame.max(axis=2) > 8
    rows, columns = np.flatnonzero(lit.any(axis=1)), np.flatnonzero(lit.any(axis=0))
    picture = frame[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(int)
    names = {"red": RED, "green": GREEN, "blue": BLUE, "white": WHITE}
    height, width = picture.shape[:2]
    spots = [picture[height * y // 4, width * x // 4] for y in (1, 3) for x in (1, 3)]
    return [min(names, key=lambda name: int(np.abs(spot - names[name]).sum())) for spot in spots]


@pytest.mark.parametrize(
    ("rotation", "seen"),
    [
        (0, ["red", "green", "blue", "white"]),
        (90, ["green", "white", "red", "blue"]),
        (180, ["white", "blue", "green", "red"]),
        (270, ["blue", "red", "white", "green"]),
    ],
)
@pytest.mark.parametrize("name", ["clip.mp4", "clip.mov"])
def test_sideways_recordings_are_upright(tmp_path: Path, rotation: int, seen: list[str], name: str) -> None:
    """The rotation of a file is what a player turns counterclockwise by."""
    video = Video(lambda _: quarters(), 0.5, rotation=rotation)
    frame = only_frame(make_clip(tmp_path / name, video), FrameFit.patches(28))
    assert corners(frame) == seen
    assert (frame.shape[0] > frame.shape[1]) == (rotation in (90, 270))


def test_a_mirrored_selfie_is_mirrored_back(tmp_path: Path) -> None:
    path = tmp_path / "selfie.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=10)
        stream.width, stream.height, stream.pix_fmt = 128, 64, "yuv420p"
        stream.set_display_rotation(0, hflip=True)
        container.mux(stream.encode(av.VideoFrame.from_ndarray(quarters())))
        container.mux(stream.encode(None))
    assert corners(only_frame(str(path), FrameFit.square(64))) == ["green", "red", "white", "blue"]


@pytest.mark.parametrize(("width", "height"), [(7680, 4320), (2, 2), (4000, 16), (16, 2000), (33, 57)])
@pytest.mark.parametrize("fit", [FrameFit.square(112), FrameFit.patches(28, max_tokens=256)])
def test_huge_tiny_and_narrow_frames_fit(tmp_path: Path, width: int, height: int, fit: FrameFit) -> None:
    picture = plain((200, 200, 200), (width, height))
    video = Video(picture, times=[0.0], fps=1, codec="mjpeg", pix_fmt="yuvj444p")
    frame = only_frame(make_clip(tmp_path / "clip.mkv", video), fit)
    place = fit.place(width, height)
    assert frame.shape[:2] == (place.canvas_height, place.canvas_width)
    lit = frame.max(axis=2) > 100
    assert (int(lit.any(axis=0).sum()), int(lit.any(axis=1).sum())) == (place.width, place.height)


def test_wide_pixels_make_a_wide_picture(tmp_path: Path) -> None:
    video = Video(plain((200, 200, 200), (64, 64)), 0.5, pixel_ratio=Fraction(2, 1))
    frame = only_frame(make_clip(tmp_path / "dvd.mkv", video), FrameFit.square(64))
    lit = frame.max(axis=2) > 100
    assert (int(lit.any(axis=0).sum()), int(lit.any(axis=1).sum())) == (64, 32)


def test_a_still_image_is_one_unit(tmp_path: Path) -> None:
    path = make_clip(tmp_path / "photo.png", Video(lambda _: quarters(), times=[0.0], codec="png", pix_fmt="rgb24"))
    with open_source(path, fit=FrameFit.square(64)) as source:
        (unit,) = source
    assert unit.frame is not None
    assert corners(unit.frame) == ["red", "green", "blue", "white"]

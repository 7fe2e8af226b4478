"""`passing`: a unit shows what comes and goes within it; what stays, drifts or cuts leaves the usual picture."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from omnitide_cli.media import FrameFit, SourcePosition, open_source

RATE, SIDE = 20, 96
FIT = FrameFit.square(SIDE)
Level = Callable[[float], tuple[int, bool]]
"""Of a second: the level of the wall, and whether a white hand is before it."""


def clip(path: Path, level: Level, seconds: int = 6) -> Path:
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=RATE, options={"qscale": "2"})
        stream.width = stream.height = SIDE
        stream.pix_fmt = "yuv420p"
        stream.time_base = Fraction(1, RATE)
        rng = np.random.default_rng(1)
        for number in range(seconds * RATE):
            wall, has_hand = level(number / RATE)
            picture = np.full((SIDE, SIDE, 3), wall, np.int16) + rng.integers(-3, 4, (SIDE, SIDE, 1))
            if has_hand:
                picture[30:60, 30:60] = 250
            frame = av.VideoFrame.from_ndarray(np.clip(picture, 0, 255).astype(np.uint8), format="rgb24")
            frame.pts = number
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return path


def pictures(path: Path, *, passing: bool, place: SourcePosition | None = None) -> list[NDArray[np.uint8]]:
    with open_source(str(path), fit=FIT, audio=False, passing=passing, place=place) as media:
        return [unit.frame for unit in media if unit is not None and unit.frame is not None]


def hands(found: list[NDArray[np.uint8]]) -> list[int]:
    return [index for index, picture in enumerate(found) if picture[35:55, 35:55].mean() > 200]


@pytest.mark.parametrize(("begin", "end"), [(2.1, 2.4), (2.2, 2.45), (2.6, 2.95), (3.65, 3.9)])
def test_a_hand_between_two_middles_is_shown(tmp_path: Path, begin: float, end: float) -> None:
    path = clip(tmp_path / "hand.mp4", lambda at: (90, begin <= at < end))
    assert hands(pictures(path, passing=False)) == []
    assert hands(pictures(path, passing=True)) == [int(begin)]


@pytest.fixture(
    params=[
        ("still", lambda at: (90, False)),
        ("a hand that stays", lambda at: (90, at >= 2.7)),
        ("a hand that was there", lambda at: (90, at < 2.2)),
        ("a cut", lambda at: (40 if at < 2.7 else 200, False)),
        ("a fade", lambda at: (int(40 + 30 * at), False)),
    ],
    ids=lambda each: each[0],
)
def ordinary(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return clip(tmp_path / "clip.mp4", request.param[1])


def test_where_nothing_passes_pictures_are_the_usual_ones(ordinary: Path) -> None:
    for usual, found in zip(pictures(ordinary, passing=False), pictures(ordinary, passing=True), strict=True):
        assert np.array_equal(usual, found)


def test_a_source_that_is_resumed_shows_the_same(tmp_path: Path) -> None:
    path = clip(tmp_path / "hands.mp4", lambda at: (90, at % 1 > 0.7 and at % 1 < 0.9))
    whole = pictures(path, passing=True)
    assert hands(whole) == list(range(6))
    rest = pictures(path, passing=True, place=SourcePosition(position=3.0, clock=3.0, index=3))
    for mine, other in zip(rest, whole[3:], strict=True):
        assert np.array_equal(mine, other)

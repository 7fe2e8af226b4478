"""A frame is scaled and padded, never stretched, and never costs more tokens than the cap."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnitide_cli.media import FrameFit

SIDES = st.integers(1, 9000)


def content_of(canvas: np.ndarray) -> tuple[int, int]:
    """Width and height of what is not black."""
    lit = canvas.max(axis=2) > 0
    return int(lit.any(axis=0).sum()), int(lit.any(axis=1).sum())


@given(width=SIDES, height=SIDES, side=st.sampled_from([1, 28, 112, 448]))
def test_square_keeps_the_ratio_within_a_pixel_and_touches_two_borders(width: int, height: int, side: int) -> None:
    place = FrameFit.square(side).place(width, height)
    assert (place.canvas_width, place.canvas_height) == (side, side)
    assert max(place.width, place.height) == side
    scale = side / max(width, height)
    assert abs(place.width - max(1, width * scale)) <= 1
    assert abs(place.height - max(1, height * scale)) <= 1


@given(width=SIDES, height=SIDES, patch=st.sampled_from([14, 28, 32]), cap=st.integers(4, 1500))
@settings(deadline=None)
def test_patches_stay_under_the_cap_in_whole_patches_with_the_ratio_kept(
    width: int, height: int, patch: int, cap: int
) -> None:
    place = FrameFit.patches(patch, max_tokens=cap).place(width, height)
    assert place.canvas_width % patch == 0
    assert place.canvas_height % patch == 0
    tokens = place.canvas_width * place.canvas_height // patch**2
    assert tokens <= cap
    assert place.canvas_width - place.width >= 0
    assert place.canvas_height - place.height >= 0
    scale = place.width / width if width >= height else place.height / height
    assert abs(place.width - width * scale) <= 1
    assert abs(place.height - height * scale) <= 1 + scale
    if tokens < cap and place.width < width:
        assert place.canvas_width - place.width < 2 * patch or place.canvas_height - place.height < 2 * patch


@given(width=SIDES, height=SIDES, least=st.integers(1, 16), more=st.integers(0, 16))
def test_patches_reach_the_minimum_wherever_the_cap_lets_them(width: int, height: int, least: int, more: int) -> None:
    place = FrameFit.patches(28, max_tokens=2 * least + more, min_tokens=least).place(width, height)
    assert place.canvas_width * place.canvas_height >= least * 28**2


@pytest.mark.parametrize(
    ("width", "height", "canvas"),
    [
        (280, 280, (280, 280)),  # fits already: not scaled, not padded
        (320, 240, (336, 252)),  # padded to whole patches
        (2, 2, (56, 56)),  # scaled up to four tokens
        (4000, 16, (4004, 28)),  # a strip: one row of patches
        (7680, 4320, (588, 336)),  # 21 × 12 = 252 of 256 tokens
    ],
)
def test_patches_of_frames_people_have(width: int, height: int, canvas: tuple[int, int]) -> None:
    place = FrameFit.patches(28).place(width, height)
    assert (place.canvas_width, place.canvas_height) == canvas


@given(width=SIDES, height=SIDES, side=st.sampled_from([56, 448]), most=st.integers(2, 12))
def test_frames_to_be_sliced_keep_their_ratio_and_their_borders(width: int, height: int, side: int, most: int) -> None:
    place = FrameFit.slices(side, max_slices=most).place(width, height)
    area = place.canvas_width * place.canvas_height
    assert area <= (9 if most >= 9 else most - 1) * side**2
    if max(place.canvas_width, place.canvas_height) > side:
        assert (place.canvas_width, place.canvas_height) == (place.width, place.height)
        scale = min(1.0, place.width / width, place.height / height)
        assert place.width <= width
        assert place.height <= height
        if min(place.width, place.height) > 1:
            assert abs(place.width - width * scale) <= 1 + width / height
            assert abs(place.height - height * scale) <= 1 + height / width
    else:
        assert place == FrameFit.square(side).place(width, height)


@pytest.mark.parametrize(
    ("most", "size", "canvas"),
    [
        (3, (1920, 1080), (844, 475)),  # an area of two slices, which are cut into at most three
        (9, (1920, 1080), (1792, 1008)),  # nine, which is all there ever are
        (9, (1280, 720), (1280, 720)),
        (3, (320, 240), (448, 448)),  # smaller than a slice: letterboxed, not cut
        (1, (1280, 720), (448, 448)),  # a source image alone
        (0, (1280, 720), (448, 448)),
        (9, (40000, 20), (16384, 8)),  # no side is longer than the encoder takes
    ],
)
def test_slices_of_frames_people_have(most: int, size: tuple[int, int], canvas: tuple[int, int]) -> None:
    place = FrameFit.slices(448, max_slices=most).place(*size)
    assert (place.canvas_width, place.canvas_height) == canvas


@pytest.mark.parametrize(("width", "height"), [(7680, 4320), (2, 2), (4000, 16), (1, 300), (112, 112)])
@pytest.mark.parametrize("fit", [FrameFit.square(112), FrameFit.patches(28), FrameFit.slices(112, max_slices=4)])
def test_fit_draws_what_place_says_in_the_middle_of_black(width: int, height: int, fit: FrameFit) -> None:
    canvas = fit.fit(np.full((height, width, 3), 200, np.uint8))
    place = fit.place(width, height)
    assert canvas.shape == (place.canvas_height, place.canvas_width, 3)
    assert canvas.dtype == np.uint8
    assert content_of(canvas) == (place.width, place.height)
    top, bottom = np.flatnonzero(canvas.max(axis=(1, 2)))[[0, -1]]
    assert abs(int(top) - (place.canvas_height - 1 - int(bottom))) <= 1


@pytest.mark.parametrize(
    "wrong", [lambda: FrameFit.square(0), lambda: FrameFit.patches(28, max_tokens=2, min_tokens=4)]
)
def test_impossible_canvases_are_refused(wrong: Callable[[], FrameFit]) -> None:
    with pytest.raises(ValueError, match=r"need|holds no picture"):
        wrong()

"""A source goes on at a place as if it had not been left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_media import Sound, Video, make_clip

from omnitide_cli.media import FrameFit, MediaUnit, SourcePosition, open_source

FIT = FrameFit.square(56)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four and a half seconds, no two units alike."""
    path = tmp_path_factory.mktemp("place") / "clip.mkv"
    make_clip(path, Video(seconds=4.5), Sound(seconds=4.5, codec="pcm_s16le"))
    return path


def units_and_places(path: Path, **how: Any) -> tuple[list[MediaUnit], list[SourcePosition]]:
    with open_source(str(path), fit=FIT, **how) as source:
        units, places = [], []
        for unit in source:
            units.append(unit)
            places.append(source.position_after(unit))
        return units, places


def assert_alike(found: list[MediaUnit], expected: list[MediaUnit]) -> None:
    assert [(u.index, u.start, u.end) for u in found] == [(u.index, u.start, u.end) for u in expected]
    for ours, theirs in zip(found, expected, strict=True):
        for name in ("frame", "audio", "audio_left", "audio_right"):
            one, other = getattr(ours, name), getattr(theirs, name)
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"unit_seconds": 0.7},
        {"start": 1.3, "unit_seconds": 0.5},
        {"loops": 3},
        {"start": 0.25, "duration": 2.0, "loops": 2},
    ],
)
def test_the_rest_is_the_same_from_every_place(clip: Path, how: dict[str, Any]) -> None:
    units, places = units_and_places(clip, **how)
    assert len(units) > 3
    for number, place in enumerate(places, 1):
        rest, _ = units_and_places(clip, **how, place=place)
        assert_alike(rest, units[number:])


def test_the_number_of_units_to_come_is_known(clip: Path) -> None:
    units, places = units_and_places(clip, loops=2)
    for place in (None, places[2], places[6]):
        with open_source(str(clip), fit=FIT, loops=2, place=place) as source:
            assert source.units_total == len(units)


def test_the_end_of_a_file_is_a_place_like_any_other(clip: Path) -> None:
    _, places = units_and_places(clip)
    with open_source(str(clip), fit=FIT, place=places[-1]) as source:
        assert list(source) == []
        assert not source.warnings


def test_the_clock_goes_on_where_the_position_is_another(clip: Path) -> None:
    units, _ = units_and_places(clip)
    rest, _ = units_and_places(clip, start=2.0, place=SourcePosition(2.0, clock=60.0, index=50))
    assert [(u.index, u.start) for u in rest] == [(50, 60.0), (51, 61.0), (52, 62.0)]
    assert_alike([replace(u, index=u.index - 48, start=u.start - 58, end=u.end - 58) for u in rest], units[2:])

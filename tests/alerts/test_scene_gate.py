"""How much a second differs from the one before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from omnitide_cli.alerts.change import change


@dataclass
class Second:
    frame: NDArray[np.uint8] | None = None
    audio: NDArray[np.float32] | None = None


def grey(level: int, size: tuple[int, int] = (112, 112)) -> NDArray[np.uint8]:
    return np.full((*size, 3), level, np.uint8)


def noisy(seed: int) -> NDArray[np.uint8]:
    noise = np.random.default_rng(seed).normal(128, 3, (112, 112, 3))
    return np.clip(noise, 0, 255).astype(np.uint8)


def with_a_spot() -> NDArray[np.uint8]:
    frame = grey(40)
    frame[40:70, 40:70] = (230, 30, 30)
    return frame


TONE = (0.2 * np.sin(np.arange(16_000) / 9)).astype(np.float32)
HUSH = np.zeros(16_000, np.float32)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (Second(grey(40)), Second(grey(40)), "none"),
        (Second(noisy(1)), Second(noisy(2)), "none"),
        (Second(grey(40)), Second(with_a_spot()), "some"),
        (Second(grey(40)), Second(grey(90)), "changed"),
        (Second(grey(40)), Second(None), "changed"),
        (Second(grey(40)), Second(grey(40, (64, 112))), "changed"),
        (Second(None, HUSH), Second(None, HUSH), "none"),
        (Second(None, HUSH), Second(None, TONE), "changed"),
        (Second(None, TONE), Second(None, TONE), "some"),
        (Second(None, TONE), Second(None, HUSH), "some"),
        (Second(grey(40), TONE), Second(grey(90), TONE), "changed"),
        (Second(grey(1, (5, 3))), Second(grey(1, (5, 3))), "none"),
        (Second(None, np.zeros(0, np.float32)), Second(None, None), "none"),
    ],
)
def test_a_second_is_the_same_or_not(before: Second, now: Second, expected: str) -> None:
    assert change(before, now) == expected


@pytest.mark.parametrize(
    ("before", "now", "sight", "sound"),
    [
        (Second(grey(40), TONE), Second(grey(90), TONE), "changed", "some"),
        (Second(grey(40), HUSH), Second(grey(40), TONE), "none", "changed"),
        (Second(grey(40), TONE), Second(with_a_spot(), HUSH), "some", "some"),
        (Second(grey(40), HUSH), Second(grey(90), HUSH), "changed", "none"),
    ],
)
def test_a_rule_about_one_sense_is_not_asked_for_the_other(before: Second, now: Second, sight: str, sound: str) -> None:
    assert (change(before, now, "sight"), change(before, now, "sound")) == (sight, sound)


def test_the_first_second_is_news() -> None:
    assert change(None, Second(grey(1))) == "changed"

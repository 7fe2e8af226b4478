"""The sound card's clock against the computer's: drift, jitter and gaps, on invented arrivals."""

from __future__ import annotations

import random

import numpy as np
import pytest

from omnitide_cli.media.live_sound import stretched
from omnitide_cli.media.skew import LEAP_S, SampleClock
from omnitide_cli.media.unit import WHISPER

BLOCK = 320
BLOCK_S = BLOCK / WHISPER.rate


def run(clock: SampleClock, hours: float, error_ppm: float, jitter_s: float, start: float = 100.0) -> float:
    """Feed blocks of a card that is fast by `error_ppm`; the largest distance of a sample from its moment, in s."""
    noise = random.Random(7)
    real_block_s = BLOCK_S / (1 + error_ppm / 1e6)
    worst = 0.0
    for number in range(1, round(hours * 3600 / BLOCK_S) + 1):
        heard = start + number * real_block_s
        late = noise.expovariate(1 / jitter_s) if noise.random() < 0.5 else 0.0
        clock.place(BLOCK, heard + late)
        assert clock.edge is not None
        if number * BLOCK_S > 30:  # it has to get to know the card
            worst = max(worst, abs(clock.edge / WHISPER.rate - heard))
    return worst


@pytest.mark.parametrize("error_ppm", [-300, -50, 0, 50, 300])
def test_an_hour_drifts_by_less_than_a_block(error_ppm: float) -> None:
    clock = SampleClock()
    assert run(clock, 1.0, error_ppm, jitter_s=0.015) < BLOCK_S
    counted_s = clock.skew / WHISPER.rate
    assert counted_s == pytest.approx(-3600 * error_ppm / 1e6, abs=0.05)


def test_a_steady_card_is_left_alone() -> None:
    clock = SampleClock()
    run(clock, 0.1, 0.0, jitter_s=1e-6)
    assert clock.skew == 0


def test_a_late_first_block_is_corrected_sample_by_sample() -> None:
    clock = SampleClock()
    clock.place(BLOCK, 50.05)  # 50 ms late
    placings = [clock.place(BLOCK, 50.0 + number * BLOCK_S) for number in range(1, 2000)]
    assert {placing.gap for placing in placings} == {0}
    assert {placing.stretch for placing in placings} == {-1, 0}
    assert clock.edge is not None
    assert abs(clock.edge / WHISPER.rate - (50.0 + 1999 * BLOCK_S)) < 0.003


def test_lost_sound_is_a_gap_at_its_place() -> None:
    clock = SampleClock()
    for number in range(1, 100):
        assert clock.place(BLOCK, number * BLOCK_S).gap == 0
    assert clock.place(BLOCK, 100 * BLOCK_S + 0.5, broken=True).gap == WHISPER.rate // 2
    assert clock.place(BLOCK, 101 * BLOCK_S + 0.5).gap == 0


def test_sound_that_is_late_is_not_a_gap() -> None:
    """A busy machine holds blocks up for a while and then delivers them all at once."""
    clock = SampleClock()
    for number in range(1, 100):
        clock.place(BLOCK, number * BLOCK_S)
    held_up = [clock.place(BLOCK, 110 * BLOCK_S + 0.001 * number) for number in range(10)]
    assert all(placing.gap == 0 and placing.stretch == 0 for placing in held_up)


def test_sound_that_silently_went_missing_is_found_within_seconds() -> None:
    """Not every driver says so when it has lost something."""
    clock = SampleClock()
    for number in range(1, 100):
        clock.place(BLOCK, number * BLOCK_S)
    gaps = [clock.place(BLOCK, number * BLOCK_S + 1.0).gap for number in range(100, 1600)]
    assert sum(gaps) == pytest.approx(WHISPER.rate, abs=1)
    assert max(gaps) > LEAP_S * WHISPER.rate
    assert clock.edge == pytest.approx((1599 * BLOCK_S + 1.0) * WHISPER.rate, abs=1)


@pytest.mark.parametrize("by", [-1, 1])
def test_a_stretched_block_keeps_its_ends_and_its_shape(by: int) -> None:
    wave = np.sin(np.arange(BLOCK) / 10).astype(np.float32)
    longer = stretched(wave, by)
    assert len(longer) == BLOCK + by
    assert longer[0] == wave[0]
    assert longer[-1] == pytest.approx(wave[-1])
    assert np.abs(longer[: BLOCK - 1] - wave[: BLOCK - 1]).max() < 0.11

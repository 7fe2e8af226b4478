"""What waits between the devices' threads and the one that cuts units."""

from __future__ import annotations

import numpy as np
import pytest

from omnitide_cli.media.capture import DeviceCapture
from omnitide_cli.media.fit import FrameFit
from omnitide_cli.media.live_pictures import MOST_WAITING, STAYS_S, PictureQueue, Thinning
from omnitide_cli.media.live_sound import SoundQueue
from omnitide_cli.media.unit import WHISPER

BLOCK = 320
FIT = FrameFit.square(8)


def ramp(first: int, count: int) -> np.ndarray:
    """Samples that say where they are."""
    return ((first + np.arange(count)) % 1000 / 1000).astype(np.float32)


def fill(queue: SoundQueue, first: int, last: int) -> None:
    """Blocks that arrive the moment they are over."""
    for at in range(first, last, BLOCK):
        queue.push(ramp(at, BLOCK), (at + BLOCK) / WHISPER.rate)


def test_sound_is_read_as_it_came_with_what_is_around_it() -> None:
    queue = SoundQueue()
    fill(queue, 0, WHISPER.rate)
    queue.start(WHISPER.rate)
    fill(queue, WHISPER.rate, 3 * WHISPER.rate)
    stretch = queue.read(WHISPER.rate, 2 * WHISPER.rate)
    assert stretch is not None
    assert stretch.heard == WHISPER.rate
    np.testing.assert_array_equal(stretch.samples, ramp(WHISPER.rate, WHISPER.rate))
    np.testing.assert_array_equal(stretch.left, ramp(WHISPER.rate - WHISPER.before, WHISPER.before))
    np.testing.assert_array_equal(stretch.right, ramp(2 * WHISPER.rate, WHISPER.after))
    assert queue.lost_samples == 0


def test_before_the_start_only_a_moment_is_kept_and_nothing_is_lost() -> None:
    queue = SoundQueue(longest_s=5)
    fill(queue, 0, 60 * WHISPER.rate)
    queue.start(60 * WHISPER.rate)
    fill(queue, 60 * WHISPER.rate, 62 * WHISPER.rate)
    stretch = queue.read(60 * WHISPER.rate, 61 * WHISPER.rate)
    assert stretch is not None
    assert len(stretch.left) == WHISPER.before
    assert queue.lost_samples == 0
    assert queue.read(0, WHISPER.rate) is None


def test_lost_sound_is_silence_and_counted() -> None:
    queue = SoundQueue()
    queue.start(0)
    fill(queue, 0, WHISPER.rate // 2)
    gap = WHISPER.rate // 4
    at = WHISPER.rate // 2 + gap
    queue.push(ramp(at, BLOCK), (at + BLOCK) / WHISPER.rate, broken=True)
    fill(queue, at + BLOCK, 2 * WHISPER.rate)
    stretch = queue.read(0, WHISPER.rate)
    assert stretch is not None
    assert stretch.heard == WHISPER.rate - gap
    assert not stretch.samples[WHISPER.rate // 2 : at].any()
    np.testing.assert_array_equal(stretch.samples[at:], ramp(at, WHISPER.rate - at))
    assert queue.lost_samples == gap


def test_a_device_that_was_gone_lost_nothing() -> None:
    queue = SoundQueue()
    queue.start(0)
    fill(queue, 0, WHISPER.rate)
    assert queue.read(0, WHISPER.rate) is not None
    assert queue.read(WHISPER.rate, 2 * WHISPER.rate) is None
    queue.restart()
    fill(queue, 5 * WHISPER.rate, 6 * WHISPER.rate)
    assert queue.read(2 * WHISPER.rate, 3 * WHISPER.rate) is None
    stretch = queue.read(5 * WHISPER.rate, 6 * WHISPER.rate)
    assert stretch is not None
    assert len(stretch.left) == 0
    assert queue.lost_samples == 0


def test_sound_that_comes_after_its_unit_is_counted() -> None:
    queue = SoundQueue()
    queue.start(0)
    fill(queue, 0, WHISPER.rate - 2 * BLOCK)
    queue.read(0, WHISPER.rate)
    fill(queue, WHISPER.rate - 2 * BLOCK, WHISPER.rate + 2 * BLOCK)
    assert queue.lost_samples == 2 * BLOCK
    stretch = queue.read(WHISPER.rate, 2 * WHISPER.rate)
    assert stretch is not None
    assert stretch.heard == 2 * BLOCK


def test_beyond_all_bounds_the_oldest_sound_goes() -> None:
    queue = SoundQueue(longest_s=10)
    queue.start(0)
    fill(queue, 0, 14 * WHISPER.rate)
    assert queue.lost_samples == 4 * WHISPER.rate
    heard = [queue.read(second * WHISPER.rate, (second + 1) * WHISPER.rate) for second in range(14)]
    assert [stretch is not None and stretch.heard > WHISPER.before for stretch in heard] == [False] * 4 + [True] * 10
    assert queue.lost_samples == 4 * WHISPER.rate


def grey(level: int) -> np.ndarray:
    return np.full((8, 8, 3), level, np.uint8)


def shown(queue: PictureQueue, index: int) -> int | None:
    picture = queue.take(index)
    return None if picture is None else int(picture.canvas[0, 0, 0])


def offer(queue: PictureQueue, at: float, level: int) -> bool:
    wanted = queue.wants(at)
    if wanted:
        queue.put(at, grey(level))
    return wanted


def test_a_unit_shows_what_was_there_in_its_middle() -> None:
    queue = PictureQueue(FIT, 1.0)
    queue.start(100.0)
    taken = [offer(queue, 100 + frame / 10, frame) for frame in range(30)]
    assert sum(taken) == 6  # of thirty frames, the first of each unit and the one in its middle
    assert [shown(queue, index) for index in range(3)] == [5, 15, 25]


def test_a_frame_before_the_start_is_not_wanted() -> None:
    queue = PictureQueue(FIT, 1.0)
    assert not queue.wants(5.0)
    queue.start(100.0)
    assert not queue.wants(99.9)


def test_a_slow_camera_stays_on_screen_but_not_for_ever() -> None:
    queue = PictureQueue(FIT, 1.0)
    queue.start(0.0)
    offer(queue, 0.9, 7)
    assert [shown(queue, index) for index in range(4)] == [7, 7, 7, None]
    assert STAYS_S == 2.0


def test_colours_of_a_device_are_those_of_a_viewer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Driver:
        def __init__(self, *_: object) -> None: ...

        def retrieve(self) -> tuple[bool, object]:
            return True, np.full((8, 8, 3), (255, 0, 0), np.uint8)  # OpenCV's blue

    monkeypatch.setattr("cv2.VideoCapture", Driver)
    canvas = DeviceCapture("0").canvas(FIT)
    assert canvas is not None
    assert canvas[0, 0].tolist() == [0, 0, 255]


def test_waiting_pictures_are_bounded_and_counted() -> None:
    queue = PictureQueue(FIT, 1.0)
    queue.start(0.0)
    for second in range(MOST_WAITING + 5):
        offer(queue, second + 0.5, second)
    assert queue.evicted == 5
    assert shown(queue, MOST_WAITING + 4) == MOST_WAITING + 4


@pytest.mark.parametrize(
    ("waiting", "kept"),
    [
        (0, [0, 1, 2, 3, 4, 5]),
        (1, [0, 1, 2, 3, 4, 5]),
        (2, [1, 3, 5]),
        (3, [2, 5]),
        (6, [5]),
    ],
)
def test_the_more_wait_the_fewer_pictures(waiting: int, kept: list[int]) -> None:
    thinning = Thinning()
    assert [unit for unit in range(6) if thinning.keeps(waiting)] == kept

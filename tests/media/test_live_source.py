"""Units of a live stream on a clock that the test turns."""

from __future__ import annotations

import numpy as np
import pytest

from omnitide_cli.errors import UsageError
from omnitide_cli.media import FrameFit, MediaUnit, open_live
from omnitide_cli.media.device_thread import DeviceThread
from omnitide_cli.media.live import LiveSource
from omnitide_cli.media.standstill import Pulse
from omnitide_cli.media.unit import WHISPER, SoundFormat

BLOCK = 320
BLOCK_S = BLOCK / WHISPER.rate
FPS = 10


class World:
    """A camera and a microphone that do what the test says, as time goes on; time begins at second 1000."""

    def __init__(
        self,
        *,
        camera: bool = True,
        microphone: bool = True,
        duration: float | None = None,
        form: SoundFormat = WHISPER,
    ) -> None:
        self.now = 1000.0
        self.source = LiveSource(
            fit=FrameFit.square(8),
            form=form,
            camera=camera,
            microphone=microphone,
            duration=duration,
            clock=lambda: self.now,
        )
        self.block = round(BLOCK_S * form.rate)
        self.link = DeviceThread("microphone", "test", self.source.warn)
        self.link.connected = microphone
        self.source.microphone = self.link if microphone else None
        self.sees = camera
        self.card_s = self.now  # up to here the card has delivered
        self.frame_s = self.now
        self.source.start()

    def pass_time(self, seconds: float) -> None:
        """Let time go on; the devices deliver."""
        self.now = round(self.now + seconds, 6)
        while self.link.connected and self.card_s + BLOCK_S <= self.now + 1e-9:
            self.card_s += BLOCK_S
            self.source.sound.push(np.full(self.block, 0.5, np.float32), self.card_s)
        while self.sees and self.frame_s <= self.now:
            if self.source.pictures.wants(self.frame_s):
                level = int(10 * (self.frame_s - 1000))
                self.source.pictures.put(self.frame_s, np.full((8, 8, 3), level % 256, np.uint8))
            self.frame_s = round(self.frame_s + 1 / FPS, 6)

    def units(self) -> list[MediaUnit]:
        """All units that are complete by now."""
        found = []
        while (unit := self.source.poll()) is not None:
            found.append(unit)
        return found


def codes(world: World) -> list[str]:
    return [warning.code for warning in world.source.warnings]


def test_sound_comes_as_the_model_wants_it() -> None:
    world = World(form=SoundFormat(rate=24_000, before=1_000, after=480, shortest=1_920))
    world.pass_time(2.02)
    first, second = world.units()
    assert [None if unit.audio is None else len(unit.audio) for unit in (first, second)] == [24_000, 24_000]
    assert (len(second.audio_left), len(second.audio_right)) == (1_000, 480)
    assert world.source.skew_ms == 0
    assert world.source.lost_sound_s == 0


def test_a_unit_is_sealed_when_its_second_is_over_and_its_sound_is_there() -> None:
    world = World()
    world.pass_time(0.99)
    assert world.units() == []
    world.pass_time(0.01)
    assert world.units() == []  # the samples after its end are still to come
    world.pass_time(0.02)
    (unit,) = world.units()
    assert (unit.index, unit.start, unit.end) == (0, 0.0, 1.0)
    assert unit.complete_at == pytest.approx(1001.0)
    assert unit.audio is not None
    assert len(unit.audio) == WHISPER.rate
    assert len(unit.audio_right) == WHISPER.after
    assert unit.frame is not None
    assert unit.frame[0, 0, 0] == 5  # the frame of the unit's middle


def test_ten_minutes_are_six_hundred_units() -> None:
    world = World()
    found: list[MediaUnit] = []
    for _ in range(6000):
        world.pass_time(0.1)
        found += world.units()
    assert len(found) == 599  # the samples after the last one are still to come
    assert [unit.index for unit in found] == list(range(599))
    assert all(unit.frame is not None and unit.audio is not None for unit in found)
    assert all(len(unit.audio_left) == WHISPER.before for unit in found[1:])
    assert world.source.dropped_frames == 0
    assert world.source.lost_sound_s == 0
    assert codes(world) == []


def test_without_a_camera_or_a_microphone() -> None:
    deaf, blind = World(microphone=False), World(camera=False)
    for world in (deaf, blind):
        world.pass_time(2.1)
    assert [(unit.frame is None, unit.audio is None) for unit in deaf.units()] == [(False, True)] * 2
    assert [(unit.frame is None, unit.audio is None) for unit in blind.units()] == [(True, False)] * 2


def test_when_behind_pictures_are_thinned_and_all_sound_is_kept() -> None:
    world = World()
    found: list[MediaUnit] = []
    for _ in range(60):  # a model that takes 2 s for a unit with a picture, and half a second for one without
        unit = world.source.poll()
        world.pass_time(0.05 if unit is None else 2.0 if unit.frame is not None else 0.5)
        found += [unit] if unit is not None else []
    lags = [world.now - unit.complete_at for unit in found[-1:] if unit.complete_at]
    pictures = sum(unit.frame is not None for unit in found)
    assert 0.2 * len(found) < pictures < 0.8 * len(found)
    assert max(lags) < 6
    assert all(unit.audio is not None and (unit.audio == 0.5).all() for unit in found)
    assert world.source.lost_sound_s == 0
    assert world.source.dropped_frames == sum(unit.dropped_frames for unit in found) == len(found) - pictures
    assert codes(world) == ["frames-thinned"]


def test_a_microphone_that_goes_and_comes_back() -> None:
    world = World()
    world.pass_time(1.5)
    world.link.connected = False
    world.pass_time(1.6)
    first, second, third = world.units()
    assert first.audio is not None
    assert second.audio is not None  # half of it was heard
    assert not second.audio[WHISPER.rate // 2 + BLOCK :].any()
    assert third.audio is None
    world.link.connected = True
    world.card_s = world.now
    world.source.sound.restart()
    world.pass_time(2.0)
    fourth, fifth = world.units()
    assert fourth.audio is not None
    assert fifth.audio is not None
    assert (fifth.audio == 0.5).all()
    assert world.source.lost_sound_s == 0


def test_a_camera_that_stops_shows_nothing_after_a_while() -> None:
    world = World()
    world.pass_time(1.02)
    assert world.units()[0].frame is not None
    world.sees = False
    world.pass_time(5.0)
    assert world.units()[-1].frame is None
    assert world.units() == []


def test_sound_that_was_lost_is_said_once() -> None:
    world = World()
    world.pass_time(0.5)
    world.card_s += 0.2
    world.now += 0.2
    world.source.sound.push(np.full(BLOCK, 0.5, np.float32), world.card_s + BLOCK_S, broken=True)
    world.card_s += BLOCK_S
    world.pass_time(0.5)
    assert len(world.units()) == 1
    assert world.source.lost_sound_s == pytest.approx(0.2)
    assert codes(world) == ["sound-lost"]


def test_a_duration_ends_the_stream() -> None:
    world = World(duration=2.5)
    world.pass_time(10)
    found = world.units()
    assert [(unit.start, unit.end) for unit in found] == [(0, 1), (1, 2), (2, 2.5)]
    assert found[-1].audio is not None
    assert len(found[-1].audio) == WHISPER.rate // 2
    assert world.source.is_over
    assert list(world.source) == []


def test_iterating_waits_in_small_steps() -> None:
    source = LiveSource(fit=FrameFit.square(8), camera=False, microphone=False, unit_seconds=0.1, duration=0.2)
    steps = list(source)
    assert [unit.index for unit in steps if unit is not None] == [0, 1]
    assert steps.count(None) >= 4


def test_closing_ends_the_stream() -> None:
    world = World()
    world.pass_time(5)
    world.source.close()
    assert world.units() == []


def test_nothing_to_see_and_nothing_to_hear() -> None:
    with pytest.raises(UsageError, match="both --camera and --mic are none"):
        open_live("none", "none", fit=FrameFit.square(8))


def test_a_process_that_was_stopped_tells_a_gap_and_makes_no_empty_units() -> None:
    world = World()
    pulse = world.source.pulse = Pulse(world.source.stood_still, lambda: world.now)
    for _ in range(24):
        world.pass_time(0.1)
        pulse.beat()
    found = world.units()
    world.now = world.card_s = world.frame_s = round(world.now + 8.2, 6)  # nothing runs, nothing is heard
    found += world.units()
    for _ in range(20):
        world.pass_time(0.1)
        found += world.units()
    assert [(unit.index, unit.start) for unit in found] == [(0, 0), (1, 1), (2, 2), (3, 10), (4, 11)]
    assert all(unit.frame is not None and unit.audio is not None for unit in found)
    assert codes(world) == ["stood-still"]
    assert "from 0:02 to 0:10" in world.source.warnings[0].message
    assert world.source.lost_sound_s == 0
    assert world.source.dropped_frames == 0
    assert max(world.now - unit.complete_at for unit in found[2:] if unit.complete_at) < 3


def test_a_slow_model_is_no_standstill() -> None:
    world = World()
    pulse = world.source.pulse = Pulse(world.source.stood_still, lambda: world.now)
    for _ in range(60):
        world.pass_time(0.25)  # the thread that beats goes on, while nobody takes units
        pulse.beat()
    assert len(world.units()) == 14
    assert "stood-still" not in codes(world)

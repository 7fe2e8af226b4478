"""Which pictures are left out: what a person would notice is not, what the sensor and the light do is.

The thresholds are the manifests' defaults.
"""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from omnitide_cli.catalog.manifest import Changing
from omnitide_cli.errors import SessionFileError
from omnitide_cli.runtime.change import ChangeGate, Look, Thresholds

Picture = NDArray[np.uint8]
SEEDS = range(100, 108)
SIZES = [(112, 112), (252, 448)]


def gate(refresh: float = 30.0) -> ChangeGate:
    chosen = Changing()
    return ChangeGate(Thresholds(chosen.mean, chosen.peak, refresh))


def watch(gate: ChangeGate, pictures: list[Picture], start: float = 0.0) -> list[Look]:
    """A picture a second, each taken in."""
    looks = []
    for second, picture in enumerate(pictures):
        looks.append(gate.look(picture, start + second))
        gate.took(looks[-1], 16 if looks[-1].picture == "new" else 0)
    return looks


def new_at(looks: list[Look]) -> list[int]:
    return [second for second, look in enumerate(looks) if look.picture == "new"]


def room(rng: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Something with large and small structure."""
    coarse = cv2.resize(
        rng.uniform(40, 200, (5, 6, 3)).astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR
    )
    fine = cv2.resize(
        rng.uniform(-25, 25, (24, 24, 3)).astype(np.float32), (width, height), interpolation=cv2.INTER_NEAREST
    )
    return (coarse + fine).astype(np.float32)


def shot(scene: NDArray[np.float32], rng: np.random.Generator, noise: float = 0.0) -> Picture:
    """As a sensor with so many levels of noise a pixel sees it."""
    return np.clip(scene + rng.normal(0, noise, scene.shape), 0, 255).astype(np.uint8)


@pytest.fixture(params=[(seed, SIZES[seed % 2]) for seed in SEEDS[:4]], ids=str)
def world(request: pytest.FixtureRequest) -> tuple[np.random.Generator, NDArray[np.float32]]:
    seed, (height, width) = request.param
    rng = np.random.default_rng(seed)
    return rng, room(rng, height, width)


World = tuple[np.random.Generator, NDArray[np.float32]]


@pytest.mark.parametrize("noise", [0.0, 4.0, 10.0])
def test_a_room_that_stays_is_encoded_once_a_refresh(world: World, noise: float) -> None:
    rng, scene = world
    looks = watch(gate(), [shot(scene, rng, noise) for _ in range(61)])
    assert new_at(looks) == [0, 30, 60]
    assert not any(look.is_cut for look in looks)


def test_flicker_of_the_light_is_no_change(world: World) -> None:
    rng, scene = world
    looks = watch(gate(), [shot(scene * 0.9 + rng.uniform(-5, 5), rng, 3.0) for _ in range(25)])
    assert new_at(looks) == [0]


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("contrast", [40, 120])
def test_what_comes_and_goes_is_seen(world: World, share: float, contrast: int) -> None:
    rng, scene = world
    noise = float(rng.choice([0.0, 6.0]))
    height, width = scene.shape[:2]
    side = int(np.sqrt(share * height * width))
    top, left = (int(rng.integers(0, most - min(side, most - 1))) for most in (height, width))
    other = scene.copy()
    part = other[top : top + side, left : left + side]
    part += np.where(part > 128, -contrast, contrast)
    looks = watch(gate(), [shot(other if 10 <= second < 15 else scene, rng, noise) for second in range(20)])
    assert new_at(looks) == [0, 10, 15]


def test_a_small_thing_that_moves_is_followed(world: World) -> None:
    rng, scene = world
    height, width = scene.shape[:2]
    pictures = []
    for second in range(12):
        moved = scene.copy()
        cv2.circle(moved, (30 + second * (width - 60) // 11, height // 2), max(12, width // 14), (250, 20, 20), -1)
        pictures.append(shot(moved, rng, 4.0))
    assert new_at(watch(gate(), pictures)) == list(range(12))


@pytest.mark.parametrize("levels_a_second", [0.5, 2.0])
@pytest.mark.parametrize("what", ["exposure", "fade"])
def test_what_changes_slowly_is_seen_in_the_end(world: World, what: str, levels_a_second: float) -> None:
    """Never do so many levels pass unseen as a person would see side by side."""
    rng, scene = world
    target = room(rng, *scene.shape[:2])
    seconds = round(60 / levels_a_second)
    kept, watcher, worst = None, gate(refresh=1e9), 0.0
    for second in range(seconds):
        far = second / seconds
        now = scene * (1 - far) + target * far if what == "fade" else scene * (1 - 0.6 * far)
        look = watch(watcher, [shot(now, rng, 2.0)], float(second))[0]
        kept = now if look.picture == "new" or kept is None else kept
        worst = max(worst, float(np.abs(now - kept).mean()))
    assert worst < 20


def test_where_everything_changes_everything_is_encoded(world: World) -> None:
    rng, scene = world
    pictures = [shot(room(rng, *scene.shape[:2]), rng, 4.0) for _ in range(40)]
    looks = watch(gate(), pictures)
    assert new_at(looks) == list(range(40))
    assert sum(look.is_cut for look in looks) <= 2, "what is usual is no dip"


def test_a_camera_that_pans_is_followed_and_makes_no_scenes(world: World) -> None:
    rng, scene = world
    height, width = scene.shape[:2]
    wide = room(rng, height, 3 * width)
    looks = watch(gate(), [shot(wide[:, x : x + width], rng, 3.0) for x in range(0, 2 * width, max(8, width // 16))])
    assert len(new_at(looks)) >= 0.9 * len(looks)
    assert not any(look.is_cut for look in looks)


def test_a_cut_is_a_scene_once_and_encoded(world: World) -> None:
    rng, scene = world
    other = 255 - room(rng, *scene.shape[:2])
    looks = watch(gate(), [shot(scene if second < 8 else other, rng, 4.0) for second in range(16)])
    assert [second for second, look in enumerate(looks) if look.is_cut] == [8]
    assert new_at(looks) == [0, 8]
    assert looks[8].similarity < looks[9].similarity - 0.3


def test_a_look_alone_changes_nothing() -> None:
    """A unit that failed may come again, and its picture is as new as before."""
    watcher, rng = gate(), np.random.default_rng(5)
    scene, other = room(rng, 112, 112), room(rng, 112, 112)
    watch(watcher, [shot(scene, rng)])
    first = watcher.look(shot(other, rng), 1.0)
    again = watcher.look(shot(other, rng), 1.0)
    assert first.picture == again.picture == "new"


def test_another_canvas_and_a_clock_that_jumps_back_are_new() -> None:
    watcher, rng = gate(), np.random.default_rng(6)
    watch(watcher, [shot(room(rng, 112, 112), rng)], 100.0)
    assert watcher.look(shot(room(rng, 112, 224), rng), 101.0).picture == "new"
    scene = shot(room(rng, 112, 112), rng)
    watch(watcher, [scene], 101.0)
    assert watcher.look(scene, 50.0).picture == "new"


def test_what_was_lost_is_renewed_once() -> None:
    watcher, rng = gate(), np.random.default_rng(7)
    scene = shot(room(rng, 112, 112), rng)
    watch(watcher, [scene] * 2)
    watcher.renew()
    assert new_at(watch(watcher, [scene] * 3, 2.0)) == [0]


def streams() -> Iterator[list[Picture]]:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        scenes = [room(rng, 56, 112) for _ in range(3)]
        yield [shot(scenes[int(rng.random() ** 3 * 3)], rng, 3.0) for _ in range(40)]


def test_a_restored_gate_goes_on_as_if_nothing_had_been() -> None:
    for pictures in streams():
        whole, before, after = gate(), gate(), gate()
        looks = watch(whole, pictures)
        watch(before, pictures[:17])
        after.restore(before.to_bytes())
        assert after.tokens == before.tokens
        for mine, other in zip(watch(after, pictures[17:], 17.0), looks[17:], strict=True):
            assert (mine.picture, mine.similarity, mine.is_cut) == (other.picture, other.similarity, other.is_cut)
        assert after.to_bytes() == whole.to_bytes()


def test_nothing_but_a_saved_gate_is_restored() -> None:
    watcher = gate()
    watch(watcher, next(streams())[:5])
    sound = watcher.to_bytes()
    for bad in (sound[:-1], sound + b"\0", sound[:10], b"", b"\xff" * len(sound), b"\0" * len(sound)):
        with pytest.raises(SessionFileError, match="CHNG"):
            gate().restore(bad)

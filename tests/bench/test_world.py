"""The generated world: the same every time, held-out parts apart, and every answer true."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from omnitide_cli.bench.world import canvas as canvases
from omnitide_cli.bench.world.clip import write_clip
from omnitide_cli.bench.world.glyph import DIGITS, LETTERS
from omnitide_cli.bench.world.picture import COLOURS, OUTSIDE, SHAPES, Figure, Picture, one
from omnitide_cli.bench.world.question import FORMS, WORDINGS, ask
from omnitide_cli.bench.world.render import frame_of, render, units_of
from omnitide_cli.bench.world.scene import Scene, any_scene, simple_scene
from omnitide_cli.bench.world.sound import Sound
from omnitide_cli.bench.world.split import SPLITS, TEST, TRAINING, VALIDATION
from omnitide_cli.bench.world.stream import COUNT, NOW, RECALL, any_stream
from omnitide_cli.bench.world.words import FILE, RATE, VOICES, WORDS, spoken
from omnitide_cli.media import FrameFit, open_source
from omnitide_cli.runtime.engine import StreamUnit

SEEN = (
    Scene(one("red", "circle"), Sound(word="apple")),
    Scene(Picture(glyph="7"), Sound(note="sol"), typed="the letter K"),
    Scene(Picture((Figure("blue", "square"), Figure("red", "circle"))), Sound()),
    Scene(one("red", "circle"), Sound(word="apple")),
    Scene(None, Sound(word="river"), typed="the word lemon"),
    Scene(Picture(outside="noise"), None),
    Scene(one("orange", "cross"), Sound(word="apple")),
)
TRUTH = {  # question: (answer, kind, sense, age), asked after all of SEEN
    "What do you see and hear?": ("An orange cross and the word apple.", "now", "both", 0),
    "What do you see?": ("An orange cross.", "now", "image", 0),
    "What do you hear?": ("The word apple.", "now", "sound", 0),
    "What colour is it?": ("It is orange.", "now", "image", 0),
    "What shape is it?": ("It is a cross.", "now", "image", 0),
    "How many shapes are there?": ("One.", "now", "image", 0),
    "Do you see an orange cross?": ("Yes.", "now", "image", 0),
    "Do you see a red circle?": ("No.", "now", "image", 0),
    "Do you hear the word apple?": ("Yes.", "now", "sound", 0),
    "Do you hear the word river?": ("No.", "now", "sound", 0),
    "What did you see one second ago?": ("Something unclear.", "recall", "image", 1),
    "What did you hear one second ago?": ("Silence.", "recall", "sound", 1),
    "What was there two seconds ago?": ("No picture and the word river.", "recall", "both", 2),
    "What did you see four seconds ago?": ("A blue square and a red circle.", "recall", "image", 4),
    "What did you last see with the word river?": ("No picture.", "recall", "both", 2),
    "What did you last see with the note sol?": ("The digit 7.", "recall", "both", 5),
    "What did you last hear with the digit 7?": ("The note sol.", "recall", "both", 5),
    "What was the last note?": ("The note sol.", "recall", "sound", 5),
    "What was the last digit?": ("The digit 7.", "recall", "image", 5),
    "What colour was the last circle?": ("It was red.", "recall", "image", 3),
    "What was the last blue shape?": ("A blue square.", "recall", "image", 4),
    "What did I last tell you to remember?": ("The word lemon.", "recall", "text", 2),
    "Did you see a blue square?": ("Yes.", "count", "image", 4),
    "Did you see a green cross?": ("No.", "count", "image", None),
    "Did you hear the note do?": ("No.", "count", "sound", None),
    "How often did you see a red circle?": ("Three times.", "count", "image", 3),
    "How often did you hear the word apple?": ("Three times.", "count", "sound", 0),
    "How often did you hear the word river?": ("Once.", "count", "sound", 2),
    "How often did you hear the note do?": ("Never.", "count", "sound", None),
    "How often did you see a red circle with the word apple?": ("Twice.", "count", "both", 3),
    "How often did you see the digit 7 with the word apple?": ("Never.", "count", "both", None),
    "Who are you?": ("I only know this small world.", "scope", "both", None),
}


@pytest.fixture(scope="module")
def asked() -> dict[str, tuple[str, str, str, int | None]]:
    """Whatever any form asks after SEEN."""
    rng = np.random.default_rng(0)
    drawn = (ask(form, SEEN, rng) for form in FORMS for _ in range(3000))
    return {q.text: (q.answer, q.kind, q.sense, q.age) for q in drawn if q is not None}


@pytest.mark.parametrize("text", list(TRUTH))
def test_the_answer_is_true(asked: dict[str, tuple[str, str, str, int | None]], text: str) -> None:
    assert asked[text] == TRUTH[text]


def test_several_shapes_have_sides() -> None:
    rng = np.random.default_rng(0)
    answers = {form: ask(form, SEEN[:3], rng) for form in ("left", "right", "number", "see", "colour")}
    assert {form: question and question.answer for form, question in answers.items()} == {
        "left": "A blue square.",
        "right": "A red circle.",
        "number": "Two.",
        "see": "A blue square and a red circle.",
        "colour": None,
    }


def test_what_can_not_be_known_is_not_asked(asked: dict[str, tuple[str, str, str, int | None]]) -> None:
    assert "What did you last hear with the red circle?" in asked
    assert "What did you last hear with the blue square?" not in asked  # it had company
    assert "What was the last word?" not in asked  # that's now
    assert "What is on the left?" not in asked
    assert all(ask("ago", SEEN[:1], np.random.default_rng(seed)) is None for seed in range(20))


def test_a_seed_is_a_stream() -> None:
    first, again, other = (any_stream(TEST, seed, 12, 6) for seed in (5, 5, 6))
    assert first == again
    assert first.scenes != other.scenes
    for one_unit, same in zip(units_of(first), units_of(again), strict=True):
        for name in ("frame", "audio", "audio_left", "audio_right"):
            np.testing.assert_array_equal(getattr(one_unit, name), getattr(same, name))


def test_splits_share_neither_seeds_nor_voices_nor_held_out_backgrounds() -> None:
    streams = {name: any_stream(split, 5, 12, 6).scenes for name, split in SPLITS.items()}
    assert len(set(streams.values())) == len(SPLITS) == 3
    voices = [voice for split in SPLITS.values() for voice in split.voices]
    assert sorted(voices) == list(range(VOICES))
    assert not set(TRAINING.backdrops) & {*VALIDATION.backdrops, *TEST.backdrops}


def test_a_stream_asks_what_was_ordered() -> None:
    stream = any_stream(VALIDATION, 3, 60, 30)
    assert len(stream.scenes) == 60
    assert Counter(item.question.kind for item in stream.asked) == {"now": 10, "recall": 10, "count": 10}
    assert [item.unit for item in stream.asked] == sorted(item.unit for item in stream.asked)
    due = stream.due()
    assert len(due) == 60
    said = [question for questions in due for question in questions]
    assert [question for question in said if question.kind != "typed"] == [item.question for item in stream.asked]
    assert [question.text for question in said if question.kind == "typed"] == [
        f"Remember {scene.typed}." for scene in stream.scenes if scene.typed
    ]
    for item in stream.asked:
        assert item.question.age is None or item.question.age <= item.unit
        assert (item.question.kind == "recall") <= bool(item.question.age or item.question.sense == "text")
    assert {item.question.kind for item in any_stream(TEST, 3, 20, 9, kinds=["recall"]).asked} == {"recall"}


def test_a_simple_world_shows_one_figure_at_most() -> None:
    simple, whole = (any_stream(TEST, 3, 200, 60, draw=draw) for draw in (simple_scene, any_scene))
    shown = [scene.picture for scene in simple.scenes if scene.picture is not None]
    assert not [picture for picture in shown if picture.glyph or len(picture.figures) > 1]
    assert not [item for item in simple.asked if "digit" in item.question.text or "letter" in item.question.text]
    rich = [scene.picture for scene in whole.scenes if scene.picture is not None]
    assert {len(picture.figures) for picture in rich} == {0, 1, 2, 3}
    assert any(picture.glyph for picture in rich)


def test_every_form_belongs_to_a_kind() -> None:
    assert {*NOW, *RECALL, *COUNT} | {"scope"} == set(FORMS)
    assert set(WORDINGS) < set(FORMS)


def test_units_are_seconds_with_their_neighbours() -> None:
    units: list[StreamUnit] = list(render(SEEN, np.random.default_rng(1), TEST))
    assert [(unit.index, unit.start, unit.end) for unit in units] == [(i, i, i + 1) for i in range(len(SEEN))]
    for unit, scene in zip(units, SEEN, strict=True):
        assert (unit.frame is None) == (scene.picture is None)
        assert unit.frame is None or (unit.frame.shape, unit.frame.dtype) == ((112, 112, 3), np.uint8)
        assert (unit.audio is None) == (scene.sound is None)
        assert unit.audio is None or (unit.audio.shape, unit.audio.dtype) == ((16000,), np.float32)
    for before, after in pairwise(units[:5]):
        assert before.audio is not None
        assert after.audio is not None
        np.testing.assert_array_equal(after.audio_left, before.audio[-320:])
        np.testing.assert_array_equal(before.audio_right, after.audio[:200])
    assert len(units[0].audio_left) == 0


def test_a_picture_that_stays_is_the_same_picture() -> None:
    scenes = [Scene(one("red", "circle"), None), Scene(one("red", "circle"), Sound()), Scene(one("red", "cross"), None)]
    first, second, third = (unit.frame for unit in render(scenes, np.random.default_rng(1), TEST))
    assert first is second
    assert first is not None
    assert third is not None
    assert not np.array_equal(first, third)


def test_silence_is_quiet_and_words_are_loud() -> None:
    units = list(render(SEEN, np.random.default_rng(2), TEST))
    loudest = [float(np.abs(unit.audio).max()) for unit in units if unit.audio is not None]
    assert loudest[2] < 0.01
    assert min(loudest[:2] + loudest[3:]) > 0.02


@pytest.mark.parametrize("glyph", [*DIGITS, *LETTERS])
def test_glyphs_differ_and_stay_inside(glyph: str) -> None:
    def cover(name: str) -> np.ndarray:
        canvas = canvases.lay_out(Picture(glyph=name), np.random.default_rng(4), plain=True)
        return next(canvases.covers(canvas, *canvases.axes(112, 112), 0.01))

    mine = cover(glyph)
    border = [mine[0], mine[-1], mine[:, 0], mine[:, -1]]
    assert not np.concatenate(border).any()
    assert mine.sum() > 100
    for other in {*DIGITS, *LETTERS} - {glyph}:
        assert np.abs(mine - cover(other)).sum() > 0.15 * mine.sum(), other


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("colour", COLOURS)
def test_a_figure_has_its_colour(colour: str, shape: str) -> None:
    rng = np.random.default_rng(3)
    frame = frame_of(one(colour, shape), rng, TRAINING).astype(int)
    near = np.abs(frame - np.array(COLOURS[colour])).max(2) < 60
    assert near.sum() > 60


@pytest.mark.parametrize("name", OUTSIDE)
def test_pictures_from_outside_fill_the_frame(name: str) -> None:
    frames = [frame_of(Picture(outside=name), np.random.default_rng(seed), TRAINING) for seed in (1, 2)]
    assert not np.array_equal(frames[0], frames[1])


def test_every_voice_says_every_word() -> None:
    assert FILE.stat().st_size < 600_000
    lengths = {len(spoken(word, voice)) / RATE for word in WORDS for voice in range(VOICES)}
    assert min(lengths) > 0.25
    assert max(lengths) < 0.75
    first, second = (spoken("apple", voice) for voice in (0, 1))
    assert len(first) != len(second) or not np.allclose(first, second)


def test_a_clip_has_a_unit_for_each_second(tmp_path: Path) -> None:
    scenes = [Scene(one("red", "circle"), Sound(note="do"), 2), Scene(Picture(glyph="7"), Sound(word="apple"))]
    write_clip(tmp_path / "clip.mp4", scenes, seed=1)
    with open_source(str(tmp_path / "clip.mp4"), fit=FrameFit.square(112)) as media:
        units = list(media)
    assert len(units) == 3
    assert all(unit.frame is not None and unit.audio is not None for unit in units)

"""What people say that the world has no answer to."""

from __future__ import annotations

import numpy as np
import pytest

from omnitide_cli.bench.world.question import UNCLEAR, WORDINGS, Question, reworded, unknown
from omnitide_cli.bench.world.split import TEST, TRAINING
from omnitide_cli.bench.world.unknown import any_unknown


def texts(split: object, count: int) -> set[str]:
    rng = np.random.default_rng(3)
    return {any_unknown(split, rng) for _ in range(count)}  # type: ignore[arg-type]


def test_the_tests_words_are_not_those_of_training() -> None:
    trained, tested = texts(TRAINING, 20_000), texts(TEST, 2_000)
    sentences = {text for text in tested if " " in text.strip() and len(text) > 12}
    assert len(sentences) > 300
    assert not sentences & trained


def test_none_of_them_is_a_question_of_the_world() -> None:
    own = {text for wordings in WORDINGS.values() for text in wordings}
    assert not (texts(TRAINING, 5_000) | texts(TEST, 2_000)) & own


def test_they_are_unclear() -> None:
    assert unknown("Who rang?").answer == UNCLEAR


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Do you see a red circle?", "Is there a red circle?"),
        ("Did you hear the word apple?", "Was there the word apple?"),
        ("What colour is it?", "What colour is it?"),
    ],
)
def test_the_same_question_in_other_words(text: str, other: str) -> None:
    asked = Question("check", "now", "image", text, "Yes.", 0)
    assert reworded(asked) == Question("check", "now", "image", other, "Yes.", 0)

"""Below an answer stands where it comes from, or how far back history reaches."""

from __future__ import annotations

import pytest

from omnitide_cli.formats.origins import origin
from omnitide_cli.runtime.events import Answer, RecalledMoment


def answer(question: str, reaches: float | None, *recalled: tuple[float, float]) -> Answer:
    moments = tuple(RecalledMoment(start, end, 0.5) for start, end in recalled)
    return Answer(4000.0, 1, question, "I.", 1, 0.0, 0.0, "eos", recalled=moments, history_from=reaches)


def test_what_came_back_is_named() -> None:
    assert origin(answer("Who?", 200.0, (751.0, 753.0), (2410.0, 2411.0))) == "from 12:31–12:33, 40:10"


@pytest.mark.parametrize(
    "question",
    ["What was there ten minutes ago?", "Who spoke at 1:02:03?", "What did you see before?", "And in the beginning?"],
)
def test_of_questions_about_the_past_it_is_told_how_far_back_history_reaches(question: str) -> None:
    assert origin(answer(question, 200.0)) == "nothing earlier was recalled: history reaches back to 3:20"
    assert origin(answer(question, 0.0)) == ""
    assert origin(answer(question, None)) == ""


def test_a_moment_that_is_gone_is_said_to_be_gone() -> None:
    assert origin(answer("Who spoke at 0:30?", 200.0)) == "0:30 is no longer kept: history reaches back to 3:20"


@pytest.mark.parametrize("question", ["What do you see?", "Beforehand?", "What is it now?", "Score 3:2?"])
def test_questions_about_now_are_left_alone(question: str) -> None:
    assert origin(answer(question, 200.0)) == ""

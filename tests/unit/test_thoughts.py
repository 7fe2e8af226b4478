"""Thoughts are told from answers, wherever the pieces end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnitide_cli.runtime.thoughts import Thoughts

CASES = [
    ("A red circle.", "A red circle."),
    ("<think>\nhm, red\n</think>\n\nA red circle.", "A red circle."),
    ("<think></think>Yes", "Yes"),
    ("<THINK>a</Think> b <think>c</think> d", "b  d"),
    ("One <thought>never closed", "One"),
    ("<think>never closed at all", ""),
    ("1 < 2 and <thin> is no mark, <think", "1 < 2 and <thin> is no mark, <think"),
    ("<reasoning>a < b </think-not> </reasoning>ok", "ok"),
    ("the prompt began it</think>\nYes", "Yes"),
    ("思考<think>不</think>好", "思考好"),
    ("<<think>a</think>>", "<>"),
]


@pytest.mark.parametrize(("text", "answer"), CASES)
@given(data=st.data())
def test_wherever_the_pieces_end(text: str, answer: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)))) | {0, len(text)})
    thoughts = Thoughts()
    shown = [thoughts.take(text[begin:end]) for begin, end in pairwise(cuts)]
    shown.append(thoughts.take("", final=True))
    assert thoughts.answer == answer
    if "began" not in text:
        assert "".join(shown).strip() == answer


def test_what_is_certain_is_shown_at_once() -> None:
    thoughts = Thoughts()
    assert [thoughts.take(piece) for piece in ("A ", "red <", "b", "<thi", "nk>x", "</think>!")] == [
        "A ",
        "red ",
        "<b",
        "",
        "",
        "!",
    ]

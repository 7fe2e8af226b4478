"""The history without a model: what it refuses, and that a refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omnitide_cli.errors import CacheFull, RuntimeFailure, UsageError
from omnitide_cli.runtime.history import History
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.view import Part

SMALL = EngineOptions(high_watermark=60, low_watermark=40)


@pytest.fixture
def history() -> Iterator[History]:
    with History(SMALL, 128) as opened:
        opened.append("media", [Part("boundary", 1), Part("image", 12, 4)])
        yield opened


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda h: h.append("media", []), "empty"),
        (lambda h: h.append("media", [Part("audio", 0)]), "empty"),
        (lambda h: h.append("media", [Part("audio", 8, 4)]), "have a width"),
        (
            lambda h: h.append("media", [Part("audio", 2**31), Part("text", 2**31), Part("audio", 4)]),
            "more than there are",
        ),
        (lambda h: h.grow("image"), "or the role is an image"),
    ],
)
def test_wrong_calls_change_nothing(history: History, call: Callable[[History], Any], part: str) -> None:
    units, tokens = history.units(), history.tokens().tolist()
    with pytest.raises((UsageError, CacheFull), match=part):
        call(history)
    assert (history.units(), history.tokens().tolist()) == (units, tokens)


@pytest.mark.parametrize("layout", ["native", "class-packing", "eager"])
def test_a_full_cache_is_told_and_maintenance_makes_room(layout: str) -> None:
    with History(EngineOptions(layout=layout, high_watermark=120, low_watermark=40), 128) as history:
        for _ in range(6):
            history.append("media", [Part("audio", 20)])
        cells = history.cells().tolist()
        for call in (lambda: history.append("question", [Part("text", 9)]), lambda: history.grow("response", 9)):
            with pytest.raises(RuntimeFailure, match="8 of 128 cells are free"):
                call()
        assert history.cells().tolist() == cells
        assert not history.maintain().retained  # not above the high watermark
        assert history.maintain(100).retained
        history.append("question", [Part("text", 9)])


def test_an_answer_grows_token_by_token(history: History) -> None:
    history.append("response", [Part("response", 1)])
    history.grow("response", 4)
    history.grow("boundary", 2)
    assert [(span.role, span.length) for span in history.units()[-1].spans] == [("response", 5), ("boundary", 2)]
    assert history.tokens()[:, 1].tolist() == list(range(20))


def test_without_units_nothing_grows_and_nothing_is_kept_up() -> None:
    with History(SMALL, 64) as history:
        with pytest.raises(UsageError):
            history.grow("response")
        assert not history.maintain().retained
        assert history.tokens().shape == (0, 4)
        history.close()


def test_impossible_pages_are_refused() -> None:
    with pytest.raises(UsageError):
        History(SMALL, 64, page_size=0)
    with pytest.raises(UsageError):
        History(SMALL, 64, subblock_size=48)
    with pytest.raises(UsageError):
        History(SMALL, 64, span_align=0)

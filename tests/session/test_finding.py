"""Two rankings become one: what the model attends to, and what was said."""

from __future__ import annotations

from omnitide_cli.runtime.journal import Journal, Said
from omnitide_cli.runtime.recall import Found
from omnitide_cli.session.finding import Hit, best
from omnitide_cli.session.words_index import bm25, merged


def seconds(*scores: float) -> list[Found]:
    return [Found(index, "media", score, float(index), index + 1.0) for index, score in enumerate(scores)]


def test_rare_words_count_more_and_a_phrase_most() -> None:
    texts = ["the minister spoke", "the weather", "the weather and the budget", "budget weather", ""]
    scores = bm25("weather budget", texts)
    assert scores[0] == scores[4] == 0
    assert scores[2] > scores[1] > 0
    assert max(range(5), key=lambda index: bm25("budget weather", texts)[index]) == 3
    assert bm25("the minister", texts)[0] > bm25("the minister", texts)[1] > 0
    assert bm25("", texts) == [0.0] * 5
    assert bm25("x", []) == []


def test_what_both_rankings_have_is_ahead() -> None:
    scores = merged([["a", "b", "c"], ["c", "d"]])
    assert next(iter(scores)) == "c"
    assert scores["b"] == 1 / 62


def test_moments_are_joined_and_only_what_stands_out_is_listed() -> None:
    found = best("x", seconds(0.1, 0.3, 0.4, 0.05, 0.05, 0.0, 0.0, 0.3), Journal(), 8)
    assert [(hit.start, hit.end) for hit in found] == [(1.0, 3.0), (7.0, 8.0)]
    assert found[0].score == 1
    assert found[0].attention == 0.7
    assert best("x", [], Journal(), 8) == []
    assert [hit.start for hit in best("x", seconds(0.1, 0.3, 0.4, 0.0, 0.3), Journal(), 1)] == [2.0]


def test_what_was_said_brings_its_second() -> None:
    journal = Journal(
        [Said(2.0, "What?", "The minister."), Said(50.0, "News?", "The minister again."), Said(3.0, "x", "y")]
    )
    found = best("minister", seconds(0.1, 0.1, 0.1, 0.1), journal, 8)
    assert [(hit.start, hit.end, hit.words) for hit in found] == [
        (1.0, 2.0, "The minister."),
        (49.0, 50.0, "The minister again."),
    ]
    assert all(hit.attention is None or hit.attention == 0.1 for hit in found)
    assert Hit(1.0, 2.0, 0.5, None, "w").to_json(None)["attention"] is None


def test_a_second_that_is_seen_and_said_is_first() -> None:
    journal = Journal([Said(5.0, "What?", "A budget."), Said(2.0, "What?", "The budget, the budget.")])
    found = best("budget", seconds(0.0, 0.3, 0.4, 0.1, 0.0), journal, 8)
    assert (found[0].start, found[0].end) == (1.0, 3.0)

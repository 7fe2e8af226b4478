"""Texts found by their words: BM25 (Robertson and Zaragoza, 2009), and two rankings merged by reciprocal rank
(Cormack, Clarke and Büttcher, 2009). A session says some thousand texts at most: nothing is
stored, all is counted anew.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeVar

WORD = re.compile(r"\w+")
K1, B = 1.5, 0.75
RANK_CONSTANT = 60

Item = TypeVar("Item", bound=Hashable)


def words_of(text: str) -> list[str]:
    """Its words, in lower case."""
    return WORD.findall(text.casefold())


def bm25(query: str, texts: Sequence[str]) -> list[float]:
    """How well each text matches, 0 for not at all; one that has the query's words in a row is above all that don't."""
    documents = [words_of(text) for text in texts]
    if not documents:
        return []
    wanted = words_of(query)
    counts = [Counter(words) for words in documents]
    average = sum(map(len, documents)) / len(documents) or 1.0
    scores = [0.0] * len(documents)
    for word in dict.fromkeys(wanted):
        having = sum(1 for count in counts if word in count)
        rarity = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for index, count in enumerate(counts):
            often = count[word]
            length = 1 - B + B * len(documents[index]) / average
            scores[index] += rarity * often * (K1 + 1) / (often + K1 * length)
    best = max(scores)
    phrase = f" {' '.join(wanted)} "
    for index, words in enumerate(documents):
        if wanted and phrase in f" {' '.join(words)} ":
            scores[index] += best
    return scores


def merged(rankings: Sequence[Sequence[Item]]) -> dict[Item, float]:
    """Each item with the sum of 1 / (60 + its rank) over the rankings, each the best first; the best first."""
    scores: dict[Item, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1 / (RANK_CONSTANT + rank)
    return dict(sorted(scores.items(), key=lambda each: -each[1]))

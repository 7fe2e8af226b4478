"""How sure a model is of "yes", read from the scores of the token that its answer begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import ModelError

if TYPE_CHECKING:
    from omnitide_cli.runtime.model import Model

YES = ("yes", "Yes", "YES")
NO = ("no", "No", "NO")


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a model makes of a yes-or-no question."""

    probability: float
    """Of "yes" against "no", 0 … 1."""
    mass: float
    """Of both together among everything that the answer could begin with; near 0 where the model would say neither."""
    ms: float
    """Milliseconds that it took."""


@dataclass(frozen=True, slots=True)
class YesNo:
    """The tokens with which a model begins to say either, however it spells them."""

    yes: tuple[int, ...]
    no: tuple[int, ...]

    @classmethod
    def of(cls, model: Model) -> YesNo:
        """Look them up. Raises ModelError where the vocabulary doesn't tell them apart."""
        found = [_first_tokens(model, words) for words in (YES, NO)]
        both = found[0] & found[1]
        yes, no = (tuple(sorted(each - both)) for each in found)
        if not (yes and no):
            raise ModelError(
                "this model's tokens don't tell yes from no, which alerts are read from", "choose another --model"
            )
        return cls(yes, no)

    def weigh(self, logits: NDArray[np.float32], ms: float = 0.0) -> Weighed:
        """Of the scores [n_vocab] of an answer's first token."""
        scores = np.exp(logits.astype(np.float64) - float(logits.max()))
        yes, no = float(scores[list(self.yes)].sum()), float(scores[list(self.no)].sum())
        either = yes + no
        return Weighed(yes / either if either > 0 else 0.0, either / float(scores.sum()), ms)


def _first_tokens(model: Model, words: Sequence[str]) -> set[int]:
    """A token that stands for a whole word tells more than one that other words begin with as well."""
    whole: set[int] = set()
    begun: set[int] = set()
    for word in words:
        for spelt in (word, f" {word}"):
            tokens = model.tokenize(spelt, special=False)
            # Some vocabularies have the space as a token of its own, which says nothing yet.
            while len(tokens) > 1 and tokens[:1] == model.tokenize(" ", special=False)[:1]:
                tokens = tokens[1:]
            if len(tokens) == 1:
                whole.add(tokens[0])
            elif tokens:
                begun.add(tokens[0])
    return whole or begun

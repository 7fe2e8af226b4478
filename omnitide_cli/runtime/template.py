"""The prompt's template as tokens, looked up once: each special name must be a single token of the vocabulary."""

from __future__ import annotations

import re
from dataclasses import dataclass

from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.options import PromptTemplate

_SPECIAL = re.compile(r"<[^<>\s]+>")


@dataclass(frozen=True, slots=True)
class TokenTemplate:
    """Tokens of each part of the prompt layout."""

    system_prefix: list[int]
    system_text: list[int]
    system_suffix: list[int]
    unit_prefix: list[int]
    unit_suffix: list[int]
    image_prefix: list[int]
    image_suffix: list[int]
    audio_prefix: list[int]
    audio_suffix: list[int]
    question_suffix: list[int]
    response_suffix: list[int]

    @classmethod
    def of(cls, layout: PromptTemplate, model: Model) -> TokenTemplate:
        """Look up every part. The system text is what a user may have typed: names in it stay text."""

        def tokens(part: str) -> list[int]:
            for name in _SPECIAL.findall(part):
                if len(model.tokenize(name, special=True)) != 1:
                    raise ModelError(
                        f"the vocabulary has no token {name}, which this prompt template needs",
                        "give the manifest of this model with --model",
                    )
            return model.tokenize(part, special=True)

        return cls(
            system_prefix=tokens(layout.system_prefix),
            system_text=model.tokenize(layout.system_text, special=False),
            system_suffix=tokens(layout.system_suffix),
            unit_prefix=tokens(layout.unit_prefix),
            unit_suffix=tokens(layout.unit_suffix),
            image_prefix=tokens(layout.image_prefix),
            image_suffix=tokens(layout.image_suffix),
            audio_prefix=tokens(layout.audio_prefix),
            audio_suffix=tokens(layout.audio_suffix),
            question_suffix=tokens(layout.question_suffix),
            response_suffix=tokens(layout.response_suffix),
        )

    @property
    def system(self) -> list[int]:
        """The whole system unit."""
        return self.system_prefix + self.system_text + self.system_suffix

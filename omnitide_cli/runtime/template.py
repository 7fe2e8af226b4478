"""The prompt's template as tokens, looked up once: each special name must be a single token of the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.marks import Kind, Marks
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.options import NAMES, PromptTemplate


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
    same_picture: list[int]
    audio_prefix: list[int]
    audio_suffix: list[int]
    question_suffix: list[int]
    response_suffix: list[int]

    @classmethod
    def of(cls, layout: PromptTemplate, model: Model) -> TokenTemplate:
        """Look up every part. The system text is what a user may have typed: names in it stay text.

        What the template writes by name can't be typed from here on, however the file types those tokens.
        """

        def tokens(part: str) -> list[int]:
            for name in NAMES.findall(part):
                if name in layout.plain_names:
                    continue
                found = model.tokenize(name, special=True)
                model.reserve(found)
                if len(found) != 1:
                    raise ModelError(
                        f"the vocabulary has no token {name}, which this prompt template needs",
                        "give the manifest of this model with --model",
                    )
            return model.tokenize(part, special=True)

        def marks(prefix: str | None, suffix: str | None, kind: Kind) -> tuple[list[int], list[int]]:
            own = model.marks(kind) if prefix is None or suffix is None else Marks()
            return tokens(own.prefix if prefix is None else prefix), tokens(own.suffix if suffix is None else suffix)

        image_prefix, image_suffix = marks(layout.image_prefix, layout.image_suffix, "image")
        audio_prefix, audio_suffix = marks(layout.audio_prefix, layout.audio_suffix, "audio")
        system_prefix, system_suffix = tokens(layout.system_prefix), tokens(layout.system_suffix)
        unit_prefix, unit_suffix = tokens(layout.unit_prefix), tokens(layout.unit_suffix)
        question_suffix, response_suffix = tokens(layout.question_suffix), tokens(layout.response_suffix)
        return cls(
            system_prefix=system_prefix,
            system_text=model.tokenize(layout.system_text, special=False),
            system_suffix=system_suffix,
            unit_prefix=unit_prefix,
            unit_suffix=unit_suffix,
            image_prefix=image_prefix,
            image_suffix=image_suffix,
            same_picture=tokens(layout.same_picture),
            audio_prefix=audio_prefix,
            audio_suffix=audio_suffix,
            question_suffix=question_suffix,
            response_suffix=response_suffix,
        )

    @property
    def system(self) -> list[int]:
        """The whole system unit."""
        return self.system_prefix + self.system_text + self.system_suffix

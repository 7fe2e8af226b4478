"""A manifest for a model that has none, from what its files say."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from omnitide_cli.catalog.manifest import (
    LEAST_PATCHES,
    Audio,
    Changing,
    Defaults,
    Frames,
    Manifest,
    ModelFile,
    Recalling,
    Shape,
)
from omnitide_cli.catalog.turns import PLAIN, NoTurns, Turns, turns_of
from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.encoders import Encoders
from omnitide_cli.runtime.gguf_file import GgufFile, check_gguf
from omnitide_cli.runtime.options import NAMES, PromptTemplate
from omnitide_cli.runtime.parts import parts_of

DEFAULT_TOKENS = 256
"""Of a picture, where the model allows more."""
QUESTION = "What is happening now?"
MANIFEST_HINT = "write the missing parts yourself: omnitide models info FILE.gguf prints a manifest to begin with"
UNSURE = re.compile(r"<\|[^|\s]+\|>")
"""Names that are no model's plain text."""


@dataclass(frozen=True, slots=True)
class _Senses:
    sees: bool
    hears: bool

    @property
    def system_text(self) -> str:
        if self.sees and self.hears:
            return "You are watching a live stream with sound. Answer briefly, from what you see and hear."
        if self.hears:
            return "You are listening to a live stream. Answer briefly, from what you hear."
        return "You are watching a live stream. Answer briefly, from what you see."


def manifest_of(path: Path, mmproj: Path | None) -> Manifest:
    """What the files of a model tell of it. `mmproj`: its encoders; None: it knows text alone.

    Raises ModelError for what can't be a model that watches, with what to do.
    """
    check_gguf(path)
    parts_of(path)
    file = GgufFile.read(path, with_tokens=True)
    _check_kind(file)
    encoders = Encoders.read(mmproj) if mmproj else None
    if encoders:
        _check_encoders(encoders, mmproj)
    turns, notice = _turns(file)
    frames = _frames(encoders)
    sound = encoders.sound_tokens if encoders else 0
    senses = _Senses(sees=frames.mode != "none", hears=sound > 0)
    heads = _heads(file)
    own_marks = "" if frames.mode == "slices" else None  # the encoder brings them itself
    return Manifest(
        name=path.stem,
        title=file.get("general.name", "") or path.name,
        description=f"A model of the family {file.architecture}, described by its own files.",
        license=file.get("general.license", "") or "not stated in the file",
        default_question=QUESTION,
        model=ModelFile(path=str(path.absolute())),
        mmproj=ModelFile(path=str(mmproj.absolute())) if mmproj else None,
        prompt=PromptTemplate(
            system_prefix=turns.system_prefix,
            system_text=senses.system_text,
            system_suffix=turns.system_suffix,
            unit_prefix="",
            unit_suffix="",
            image_prefix=own_marks,
            image_suffix=own_marks,
            question_suffix=turns.question_suffix,
            response_suffix=turns.response_suffix,
            plain_names=_plain_names(turns, file),
        ),
        frames=frames,
        audio=_audio(encoders),
        defaults=Defaults(),
        shape=Shape(
            layers=file.of_architecture("block_count", 0),
            kv_heads=_most(file, "attention.head_count_kv", heads),
            head_dim=file.of_architecture("attention.key_length", 0)
            or file.of_architecture("embedding_length", 0) // max(heads, 1),
        ),
        recall=Recalling(),
        change=Changing(),
        folder=path.parent,
        notice=notice,
    )


def _check_kind(file: GgufFile) -> None:
    if file.is_mmproj:
        raise ModelError(
            f"{file.path} holds encoders, not a language model",
            f"give the language model with --model, and this file with --mmproj {file.path.name}",
        )
    if file.is_embedding_model:
        raise ModelError(
            f"{file.path} is an embedding model: it makes vectors of texts and can't answer",
            "choose a model that generates text",
        )


def _check_encoders(encoders: Encoders, path: Path | None) -> None:
    if encoders.frames == "unknown":
        raise ModelError(
            f"{path}: encoders of the kind '{encoders.vision}' cut pictures in a way that OmniTide can't follow",
            "choose another model; omnitide models list shows some that see",
        )
    if encoders.frames == "none" and not encoders.sound_tokens:
        raise ModelError(
            f"{path}: OmniTide can't encode sound with encoders of the kind '{encoders.audio}', the only ones in it",
            "choose another model; omnitide models list shows some that hear",
        )


def _turns(file: GgufFile) -> tuple[Turns, str]:
    """What surrounds questions and answers, and what the user should know of it."""
    template = file.get("tokenizer.chat_template", "")
    if not template:
        notice = f"{file.path.name} has no chat template: questions and answers are plain text, divided by empty lines"
        return _with_bos(PLAIN, file), notice
    try:
        turns = turns_of(template, bos=file.token("bos_token_id"), eos=file.token("eos_token_id"))
    except NoTurns as error:
        raise ModelError(f"{file.path}: its chat template gives no turns: {error}", MANIFEST_HINT) from error
    return _with_bos(turns, file), ""


def _with_bos(turns: Turns, file: GgufFile) -> Turns:
    """Begun as the tokenizer begins every text, where the template leaves that to it."""
    bos = file.token("bos_token_id")
    by_itself = file.get("tokenizer.ggml.model", "") == "llama"  # SentencePiece
    if not bos or turns.system_prefix.startswith(bos) or not file.get("tokenizer.ggml.add_bos_token", by_itself):
        return turns
    return Turns(bos + turns.system_prefix, turns.system_suffix, turns.question_suffix, turns.response_suffix)


def _plain_names(turns: Turns, file: GgufFile) -> list[str]:
    """What looks like a token's name but is none, in the template that comes with the vocabulary: it is text there."""
    written = "".join((turns.system_prefix, turns.system_suffix, turns.question_suffix, turns.response_suffix))
    names = set(NAMES.findall(written)) - set(file.tokens)
    unsure = sorted(name for name in names if UNSURE.fullmatch(name))
    if unsure:
        raise ModelError(
            f"{file.path}: its chat template writes {', '.join(unsure)}, which its vocabulary doesn't have",
            f"the file was converted wrongly, or in parts; {MANIFEST_HINT}",
        )
    return sorted(names)


def _frames(encoders: Encoders | None) -> Frames:
    if encoders is None or encoders.frames == "none":
        return Frames(mode="none", max_tokens=0)
    if encoders.frames == "fixed":
        return Frames(mode="fixed", size=encoders.side, max_tokens=encoders.max_tokens)
    if encoders.frames == "slices":
        return Frames(
            mode="slices",
            size=encoders.side,
            slice_tokens=encoders.slice_tokens,
            max_tokens=encoders.max_tokens,
            default_tokens=encoders.slice_tokens,
        )
    return Frames(
        mode="patches",
        multiple=encoders.multiple,
        min_tokens=max(encoders.min_tokens, LEAST_PATCHES),
        max_tokens=encoders.max_tokens,
        default_tokens=min(max(DEFAULT_TOKENS, encoders.min_tokens), encoders.max_tokens),
        row_tokens=int(encoders.ends_rows),
    )


def _audio(encoders: Encoders | None) -> Audio:
    if encoders is None or not encoders.sound:
        return Audio(tokens_per_second=0)
    return Audio(tokens_per_second=encoders.sound_tokens, encoder=encoders.sound)


def _heads(file: GgufFile) -> int:
    return _most(file, "attention.head_count", 1)


def _most(file: GgufFile, key: str, default: int) -> int:
    """A count, the largest of all layers where they differ."""
    value = file.values.get(f"{file.architecture}.{key}", default)
    counts = value if isinstance(value, list) else [value]
    return max((int(count) for count in counts if isinstance(count, int | float) and math.isfinite(count)), default=1)

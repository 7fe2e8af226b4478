"""A model's manifest: all that OmniTide has to know about a model before it is loaded.

One TOML file a model, in `models/`. Training, `watch` and the tests read the same file, nothing else.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import omnitide_cli
from omnitide_cli.catalog.values import did_you_mean
from omnitide_cli.errors import ModelError, UsageError
from omnitide_cli.runtime.options import SOUND_ENCODERS, Change, ChosenKnobs, PromptTemplate

DEFAULT_MODEL = "omnitide-demo"
LEAST_PATCHES = 4
MODES = ("square", "fixed", "patches", "slices", "none")
MOST_OF_A_MARK = 4
"""Tokens, at most, of a mark that libmtmd writes."""

Table = TypeVar("Table")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model: either `path`, relative to the manifest, or `repo` and `file` on the Hugging Face hub."""

    path: str = ""
    repo: str = ""
    file: str = ""
    revision: str = ""
    size: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Frames:
    """How frames become image tokens: always `size` × `size` pixels, the frame's own ratio under a cap of tokens, or a
    source image and slices, which the model's own encoder cuts. Or not at all, with models that only hear."""

    mode: str
    """"square", "fixed" (a square that the encoder scales every picture to), "patches", "slices" or "none"."""
    max_tokens: int
    """The most tokens an image has; in a square, exactly that many."""
    default_tokens: int = 0
    """The cap where none is asked for; 0: `max_tokens`."""
    size: int = 0
    """Square, fixed, slices: the side in pixels."""
    multiple: int = 28
    """Patches: the pixels of a token's side."""
    slice_tokens: int = 64
    """Slices: the tokens of the source image, and of each slice."""
    min_tokens: int = 1
    """The fewest tokens of an image: smaller ones are scaled up."""
    row_tokens: int = 0
    """Patches: tokens that the encoder adds at the end of each row."""

    def capped(self, max_tokens: int | None) -> Frames:
        """The same under a lower cap (None: the default one); a cap above the model's own changes nothing."""
        if max_tokens is None:
            max_tokens = self.default_tokens or self.max_tokens
        if max_tokens >= self.max_tokens:
            return replace(self, default_tokens=0)
        least = self.max_tokens if self.mode == "fixed" else self.min_tokens
        if max_tokens < least:
            raise UsageError(f"--image-tokens {max_tokens}: a picture takes at least {least} tokens", "raise it")
        if self.mode == "patches":
            return replace(self, max_tokens=max_tokens, default_tokens=0)
        if self.mode == "slices":
            images = max_tokens // self.slice_tokens
            if not images:
                raise UsageError(f"--image-tokens {max_tokens}: a picture takes {self.slice_tokens} tokens", "raise it")
            return replace(self, max_tokens=images * self.slice_tokens, default_tokens=0)
        cells = math.isqrt(max_tokens)
        side = self.size // math.isqrt(self.max_tokens) * cells
        return replace(self, max_tokens=cells * cells, default_tokens=0, size=side)

    @property
    def slices(self) -> int:
        """The most slices beside the source image; 0 for models that cut none."""
        return self.max_tokens // self.slice_tokens - 1 if self.mode == "slices" else 0

    @property
    def marks(self) -> int:
        """Tokens, at most, that the encoder adds: before and behind each image, and at the end of rows."""
        if self.mode == "patches":
            return self.row_tokens * 2 * math.isqrt(self.max_tokens)  # up to a ratio of 1 : 4
        return 2 + 3 * self.slices if self.mode == "slices" else 0


@dataclass(frozen=True, slots=True)
class Audio:
    """How sound becomes tokens."""

    tokens_per_second: int
    """0: llama.cpp has no encoder for this model's sound."""
    encoder: str = next(iter(SOUND_ENCODERS))
    """The kind of its encoder, one of native/src/encode/sound_encoders.def: what sound a source is asked for."""


@dataclass(frozen=True, slots=True)
class Defaults(ChosenKnobs):
    """A model's own defaults of settings, those of policies and layouts included, under the names of the flags; None
    leaves it to OmniTide's."""

    high_watermark: int | None = None
    low_watermark: int | None = None
    max_answer_tokens: int | None = None
    cache_type: str | None = None
    change: str | None = None
    refresh: float | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What a token costs in the cache."""

    layers: int
    kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class Recalling:
    """How what was cut is found again, as measured for the model (`omnitide bench recall`)."""

    layers: list[int] = field(default_factory=list)
    """Whose keys and queries are compared; none: nobody has measured, and nothing is recalled unasked."""
    reference: str = ""
    """A question about nothing in particular: what it would draw as well counts for less. None: scores are shares of
    the question's attention."""
    threshold: float = 6.0
    """So many times the score of a unit in the middle must the best one have."""


@dataclass(frozen=True, slots=True)
class Changing:
    """From when on a picture shows something new (`omnitide bench change`): levels of 255 by which its blocks differ
    from those of the last encoded one."""

    mean: float = 3.0
    """In the mean."""
    peak: float = 12.0
    """At their 99th percentile."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A model as `models/NAME.toml` describes it."""

    name: str
    title: str
    description: str
    license: str
    default_question: str
    model: ModelFile
    mmproj: ModelFile | None
    prompt: PromptTemplate
    frames: Frames
    audio: Audio
    defaults: Defaults
    shape: Shape
    recall: Recalling
    change: Changing
    folder: Path
    """Where the manifest lies; `path`s start here."""
    notice: str = ""
    """What the user should know of a model that nobody has written a manifest for."""

    @property
    def sees(self) -> bool:
        """Whether llama.cpp can encode pictures for this model."""
        return self.frames.mode != "none"

    @property
    def hears(self) -> bool:
        """Whether llama.cpp can encode sound for this model."""
        return self.audio.tokens_per_second > 0

    def unit_tokens(self, unit_seconds: float, max_image_tokens: int | None = None) -> int:
        """The largest media unit: its image, its sound and its markers (the last an upper bound)."""
        prompt = self.prompt
        markers = (
            prompt.unit_prefix,
            prompt.image_prefix,
            prompt.image_suffix,
            prompt.audio_prefix,
            prompt.audio_suffix,
            prompt.unit_suffix,
        )
        sound = math.ceil(self.audio.tokens_per_second * unit_seconds)
        frames = self.frames.capped(max_image_tokens)
        return frames.max_tokens + frames.marks + sound + sum(map(_most_tokens, markers))


def models_dir() -> Path:
    """The folder of the manifests: inside an installed package, beside it in a source tree."""
    package = Path(omnitide_cli.__file__).parent
    installed = package / "models"
    return installed if installed.is_dir() else package.parent / "models"


def model_names() -> list[str]:
    """Names of all known models, the default one first."""
    return sorted((path.stem for path in models_dir().glob("*.toml")), key=lambda name: (name != DEFAULT_MODEL, name))


def load_manifest(name: str) -> Manifest:
    """The manifest of a known model. Raises ModelError for any other name."""
    path = models_dir() / f"{name}.toml"
    if name not in model_names():
        meant, known = did_you_mean(name, model_names()), ", ".join(model_names())
        hint = f"{meant} Choose from {known}; or give the path of a .gguf file".strip()
        raise ModelError(f"no model is called '{name}'", hint)
    return read_manifest(path)


@cache
def read_manifest(path: Path) -> Manifest:
    """Read and check a manifest file. Raises ModelError that names the file and the key."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ModelError(f"{path}: the manifest can't be read: {error}", "see models/ for examples") from error
    files = _subtable(table, "files", path)
    parts: dict[str, Any] = {
        "model": _model_file(files.pop("model", None), path, "files.model"),
        "mmproj": _model_file(files.pop("mmproj"), path, "files.mmproj") if "mmproj" in files else None,
        "prompt": _build(PromptTemplate, _subtable(table, "prompt", path), path, "prompt"),
        "frames": _build(Frames, _subtable(table, "frames", path), path, "frames"),
        "audio": _build(Audio, _subtable(table, "audio", path), path, "audio"),
        "defaults": _build(Defaults, _subtable(table, "defaults", path), path, "defaults"),
        "shape": _build(Shape, _subtable(table, "shape", path), path, "shape"),
        "recall": _recall(table.pop("recall", {}), path),
        "change": _changing(table.pop("change", {}), path),
        "folder": path.parent,
        "notice": "",
    }
    if files:
        raise _wrong(path, f"unknown key files.{next(iter(files))}")
    for key in parts.keys() & table.keys():
        raise _wrong(path, f"unknown key {key}")
    manifest = _build(Manifest, {**table, **parts}, path, "")
    if manifest.name != path.stem:
        raise _wrong(path, f"name is '{manifest.name}', the file's is '{path.stem}'")
    _check_frames(manifest.frames, path)
    change = manifest.defaults.change
    if change not in (None, *get_args(Change)):
        raise _wrong(path, f"defaults.change is '{change}'; it must be {' or '.join(get_args(Change))}")
    if manifest.audio.encoder not in SOUND_ENCODERS:
        raise _wrong(path, f"audio.encoder is '{manifest.audio.encoder}'; it must be {' or '.join(SOUND_ENCODERS)}")
    return manifest


def _model_file(table: object, path: Path, where: str) -> ModelFile:
    if not isinstance(table, dict):
        raise _wrong(path, f"missing table [{where}]")
    file = _build(ModelFile, table, path, where)
    if bool(file.path) == bool(file.repo and file.file):
        raise _wrong(path, f"[{where}] needs either path, or repo and file")
    return file


def _recall(table: object, path: Path) -> Recalling:
    if not isinstance(table, dict):
        raise _wrong(path, "recall must be a table")
    recall = _build(Recalling, table, path, "recall")
    if any(type(layer) is not int or layer < 0 for layer in recall.layers) or recall.layers != sorted(
        set(recall.layers)
    ):
        raise _wrong(path, "recall.layers must be numbers of layers, ascending")
    if recall.threshold < 1:
        raise _wrong(path, f"recall.threshold is {recall.threshold:g}, below 1")
    return recall


def _changing(table: object, path: Path) -> Changing:
    if not isinstance(table, dict):
        raise _wrong(path, "change must be a table")
    change = _build(Changing, table, path, "change")
    if not 0 < change.mean <= 255 or not 0 < change.peak <= 255:
        raise _wrong(path, "change.mean and change.peak are levels above 0, at most 255")
    return change


def _check_frames(frames: Frames, path: Path) -> None:
    if frames.mode not in MODES:
        raise _wrong(path, f"frames.mode is '{frames.mode}'; it must be {', '.join(MODES[:-1])} or {MODES[-1]}")
    if frames.mode == "none":
        return
    counts = frames.max_tokens, frames.multiple, frames.slice_tokens
    if min(counts) < 1 or (frames.mode != "patches" and frames.size < 1):
        raise _wrong(path, "frames must have a size above 0")
    if not 1 <= frames.min_tokens <= frames.max_tokens or frames.row_tokens < 0:
        raise _wrong(path, f"frames.min_tokens is {frames.min_tokens}, of at most {frames.max_tokens}")
    if frames.mode == "patches" and frames.max_tokens < LEAST_PATCHES:
        raise _wrong(path, f"a frame of patches has at least {LEAST_PATCHES} tokens, not {frames.max_tokens}")
    if frames.mode == "slices" and frames.max_tokens < frames.slice_tokens:
        raise _wrong(path, f"a source image has {frames.slice_tokens} tokens, more than {frames.max_tokens}")
    if frames.mode == "square" and math.isqrt(frames.max_tokens) ** 2 != frames.max_tokens:
        raise _wrong(path, f"a square frame can't have {frames.max_tokens} tokens")


def _subtable(table: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    value = table.pop(key, None)
    if not isinstance(value, dict):
        raise _wrong(path, f"missing table [{key}]")
    return value


def _build(cls: type[Table], table: Mapping[str, Any], path: Path, where: str) -> Table:
    """A dataclass from a TOML table: no key more, no key less, each of its own type."""
    prefix = f"{where}." if where else ""
    known = {each.name: each for each in fields(cls)}  # type: ignore[arg-type]
    for key in table:
        if key not in known:
            raise _wrong(path, f"unknown key {prefix}{key}")
    for name, each in known.items():
        if name not in table and each.default is MISSING and each.default_factory is MISSING:
            raise _wrong(path, f"missing key {prefix}{name}")
    hints = get_type_hints(cls)
    for key, value in table.items():
        if type(value) is bool or not isinstance(value, list if get_origin(hints[key]) is list else hints[key]):
            raise _wrong(path, f"{prefix}{key} has the wrong type: {value!r}")
    return cls(**table)


def _most_tokens(text: str | None) -> int:
    """At most this many tokens: one a special token, one a byte of anything else."""
    if text is None:
        return MOST_OF_A_MARK
    special = re.compile(r"<[^<>]+>")
    return len(special.findall(text)) + len(special.sub("", text).encode())


def _wrong(path: Path, what: str) -> ModelError:
    return ModelError(f"{path}: {what}", "correct the manifest; the others in models/ are examples")

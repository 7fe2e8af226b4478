"""A manifest as text: what was found of a model, to be edited and given back with --model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.runtime.marks import Kind, Marks, read_marks

TEXTS = ("name", "title", "description", "license", "default_question")
COMMENTS = {
    "prompt": "what surrounds what; special tokens by name",
    "frames": "how a frame becomes tokens: docs/adding-a-model.md",
    "audio": "0: its sound can't be encoded",
    "shape": "what a token costs in the cache",
}


def manifest_lines(manifest: Manifest) -> Iterator[str]:
    """TOML, line by line. Reads the marks from the model's files where only libmtmd knows them. Raises ModelError."""
    files = {"model": manifest.model} | ({"mmproj": manifest.mmproj} if manifest.mmproj else {})
    yield f"# Found in {' and '.join(Path(file.path).name for file in files.values())}."
    yield f"# Edit it, save it as {manifest.name}.toml, and give it with --model {manifest.name}.toml."
    if manifest.notice:
        yield f"# {manifest.notice}"
    for key in TEXTS:
        yield _line(key, getattr(manifest, key))
    for role, file in files.items():
        yield from _table(f"files.{role}", {"path": file.path})
    yield from _table("prompt", _prompt(manifest))
    yield from _table("frames", _given(manifest.frames))
    yield from _table("audio", _given(manifest.audio))
    yield from _table("defaults", {})
    yield from _table("shape", _given(manifest.shape))


def _prompt(manifest: Manifest) -> dict[str, Any]:
    prompt = manifest.prompt
    found: dict[Kind, Marks] = {}
    if manifest.mmproj and prompt.image_prefix is None:
        found = read_marks(Path(manifest.model.path), Path(manifest.mmproj.path))
    parts = _given(prompt)
    for kind, marks in found.items():
        parts |= {f"{kind}_prefix": marks.prefix, f"{kind}_suffix": marks.suffix}
    return {key: value for key, value in parts.items() if value is not None and value != []}


def _given(part: Any) -> dict[str, Any]:
    """Its fields, without those that are as they would be anyway."""
    values = ((field, getattr(part, field.name)) for field in fields(part))
    return {field.name: value for field, value in values if value != field.default}


def _table(name: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[{name}]" + (f"  # {COMMENTS[name]}" if name in COMMENTS else "")
    for key, value in values.items():
        yield _line(key, value)


def _line(key: str, value: str | int | list[str]) -> str:
    """JSON's texts, numbers and lists are TOML's, too."""
    return f"{key} = {json.dumps(value, ensure_ascii=False)}"

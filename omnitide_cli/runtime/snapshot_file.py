"""A session's snapshot as a file: one JSON object, read as if a stranger had written it."""

from __future__ import annotations

import json
import math
import os
import stat
import types
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from omnitide_cli.addresses import redact
from omnitide_cli.errors import SessionFileError
from omnitide_cli.runtime.kv_state import SessionSnapshot

FORMAT = 1
MOST_BYTES = 64 << 20
LARGEST = 1 << 53
NOT_READABLE = "start the session again, or remove the file"


def write_snapshot(path: Path, snapshot: SessionSnapshot) -> None:
    """Replace the file at once: a reader sees the old one or the new one, whole. Raises OSError."""
    fresh = path.with_suffix(".new")
    text = json.dumps({"format": FORMAT, **_fields(snapshot)}, default=_fields, separators=(",", ":"))
    try:
        with open(fresh, "w", encoding="utf-8", opener=_only_for_me) as file:
            file.write(text)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()  # part of it on a full disk
        raise


def _fields(value: Any) -> dict[str, Any]:
    """A dataclass as an object; a third of the time of `asdict`, which copies everything once more."""
    return {name: getattr(value, name) for name in _names(type(value))}


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _only_for_me(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW, 0o600)


def read_snapshot(path: Path) -> SessionSnapshot:
    """Raises SessionFileError for what can't be read or isn't what a session writes."""
    try:
        fields_of_file = json.loads(_read(path))
        if not isinstance(fields_of_file, dict) or fields_of_file.get("format") != FORMAT:
            raise ValueError("it has a different format")
        snapshot = _build(SessionSnapshot, fields_of_file, "")
        _check(snapshot)
        source = snapshot.about.source  # earlier versions wrote logins
        snapshot = replace(snapshot, about=replace(snapshot.about, source=source if source == "-" else redact(source)))
    except OSError as error:
        raise SessionFileError(f"{path}: {error.strerror or error}", NOT_READABLE) from error
    except (ValueError, RecursionError) as error:  # the JSON's, the encoding's, and ours
        raise SessionFileError(f"{path} is not a session snapshot: {error}", NOT_READABLE) from error
    return snapshot


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        known = os.fstat(descriptor)
        if not stat.S_ISREG(known.st_mode):
            raise ValueError("it is not a regular file")
        if known.st_size > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES} bytes")
        return file.read(MOST_BYTES)


def _build(kind: Any, value: Any, where: str) -> Any:
    """A value of the type `kind` from JSON. Unknown keys are ignored: later versions add some."""
    if isinstance(kind, types.UnionType):
        if value is None and types.NoneType in get_args(kind):
            return None
        kind = next(each for each in get_args(kind) if each is not types.NoneType)
    if is_dataclass(kind):
        return _build_object(kind, value, where)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} is not a list")
        each, *more = get_args(kind)
        if more != [...] and len(value) != 1 + len(more):
            raise ValueError(f"{where} has the wrong length")
        return tuple(_build(each, item, where) for item in value)
    if kind is float and type(value) is int:
        value = float(value) if abs(value) <= LARGEST else math.inf
    if type(value) is not kind:
        raise ValueError(f"{where} is not a {kind.__name__}")
    if isinstance(value, int | float) and not abs(value) <= LARGEST:  # what is no number at all is neither
        raise ValueError(f"{where} is too large")
    return value


def _build_object(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'it'} is not an object")
    hints = _hints(kind)
    found = {}
    for field in fields(kind):
        if field.name in value:
            found[field.name] = _build(hints[field.name], value[field.name], f"{where}.{field.name}".lstrip("."))
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{where} lacks {field.name}".lstrip())
    return kind(**found)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _check(snapshot: SessionSnapshot) -> None:
    """What is shown must at least fit together."""
    state = snapshot.state
    if state.page_size < 1 or state.subblock_size < 1:
        raise ValueError("its pages are empty")
    if len(state.cell_map) != state.cells or not set(state.cell_map) <= set(".MSRC"):
        raise ValueError("its map is damaged")
    if state.cells - state.cell_map.count(".") != state.useful_cells:
        raise ValueError("its map and its counts differ")
    if any(unit.tokens < 0 for unit in state.units) or snapshot.moment_units < 1:
        raise ValueError("it has negative counts")

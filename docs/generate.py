"""Writes those documents that say what stands in the code: `uv run python docs/generate.py`.

docs/events.md comes from the docstrings of the event dataclasses and their fields; a test says when it is out of date.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from omnitide_cli.runtime import events, kv_state

DOCS = Path(__file__).resolve().parent

EVENTS = (
    events.SessionStarted,
    events.UnitIngested,
    events.Scene,
    events.Retention,
    events.Migration,
    events.Recalled,
    events.AnswerDelta,
    events.Answer,
    events.Alert,
    events.AlertEnded,
    events.Notice,
    events.SessionSaved,
    events.Summary,
)

EVENTS_HEAD = """# Events

Made by `docs/generate.py` from `omnitide_cli/runtime/events.py` and `event_parts.py`: change it there.

What a session does, field by field: `omnitide watch --json` and `omnitide live --json` write one JSON object a line to
standard output, Python has the same as classes in `omnitide_cli.events`. `type` says which event it is.

Within one `schema` fields are only ever added: pass over what you don't know. Names ending in `_ms` are milliseconds,
in `_s` seconds; `at`, `start`, `end` and `clock` are seconds on the media clock, which starts with the source. Spans
and histories are counted in cells of the cache, one a token. A pair is a value before and after.

`wall` is the time of day beside the media clock: ISO 8601 with milliseconds and the offset from UTC, such as
`2026-03-01T14:03:22.125+01:00`. Units, answers and alerts have one where the media is happening as it is read: with
`omnitide live`, live network streams, and `--pace realtime`.

The order: `session` first; then for each unit the warnings, `scene` (where one begins, with `--change auto`), `unit`,
and, where the history was shortened, pairs of `retention` and `migration`, then the `alert`s and `alert-ended`s of that
second; for each question `recall` (where recall is on), `answer_delta`s,
`answer` (none where a warning says that it could not be asked), and again `retention` and `migration`;
`saved` whenever the session is saved; `summary` last, also after an error (`error`) or Ctrl-C.
"""

ERROR = """## error

The session ends early; a `summary` may still follow. It is written by `--json` alone: Python raises it.

| field | type | meaning |
| --- | --- | --- |
| `type` | string | `error` |
| `code` | string | The kind of error, such as `model-error`. |
| `message` | string | What happened, for people. |
| `hint` | string | What to do about it; may be empty. |
"""

STATE_HEAD = """## inspect-kv --json

`omnitide inspect-kv --json` prints one object: the fields of a state, and those of the session that it belongs to.
"""


def events_document() -> str:
    """docs/events.md."""
    parts = [EVENTS_HEAD]
    seen: list[type] = []
    for kind in EVENTS:
        parts.append(_section(kind.type, kind, [("type", "string", f"`{kind.type}`")]))
        seen += [nested for nested in _nested(kind) if nested not in seen]
    parts.append(ERROR)
    parts.append("# Objects in events\n")
    parts += [_section(kind.__name__, kind, []) for kind in seen]
    parts.append(STATE_HEAD)
    parts.append(_section("KvState", kv_state.KvState, [], leave_out={"cell_map"}))
    parts.append(_section("SessionSnapshot", kv_state.SessionSnapshot, [], leave_out={"state", "about"}, names=RENAMED))
    parts.append(_section("CellClasses", kv_state.CellClasses, []))
    parts.append(_section("UnitState", kv_state.UnitState, []))
    parts.append(_section("SpanState", kv_state.SpanState, []))
    parts.append(_section("Moment", kv_state.Moment, []))
    return "\n".join(parts)


RENAMED = {"moments": "history", "moment_units": "history_units"}


def _section(
    title: str,
    kind: type,
    first: list[tuple[str, str, str]],
    *,
    leave_out: set[str] | None = None,
    names: dict[str, str] | None = None,
) -> str:
    rows = [*first, *(row for row in field_rows(kind) if row[0] not in (leave_out or ()))]
    lines = [f"| `{(names or {}).get(name, name)}` | {shape} | {text} |" for name, shape, text in rows]
    return "\n".join(
        [f"## {title}", "", about(kind), "", "| field | type | meaning |", "| --- | --- | --- |", *lines, ""]
    )


def about(kind: type) -> str:
    """The docstring of a class, in one paragraph."""
    return re.sub(r"\s+", " ", inspect.getdoc(kind) or "")


def field_rows(kind: type) -> list[tuple[str, str, str]]:
    """(name, type, meaning) of each field of a dataclass. Raises ValueError for one without a docstring."""
    hints, texts = get_type_hints(kind), field_texts(kind)
    rows = []
    for field in fields(kind):
        if not texts.get(field.name):
            raise ValueError(f"{kind.__name__}.{field.name} has no docstring")
        rows.append((field.name, _shape(hints[field.name]), re.sub(r"\s+", " ", texts[field.name])))
    return rows


def field_texts(kind: type) -> dict[str, str]:
    """The string below each field."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match below:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    texts[field.target.id] = text
                case _:
                    pass
    return texts


def _shape(hint: Any) -> str:
    if isinstance(hint, types.UnionType):
        return " or ".join("null" if each is types.NoneType else _shape(each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        first, *more = get_args(hint)
        return f"list of {_shape(first)}" if more == [...] else f"pair of {_shape(first)}s"
    if is_dataclass(hint):
        name = getattr(hint, "type", None) or getattr(hint, "__name__", "")
        return f"[{name}](#{name.lower()})"
    return {str: "string", int: "integer", float: "number", bool: "true or false"}[hint]


def _nested(kind: type) -> list[type]:
    hints = get_type_hints(kind)
    shapes = [hints[field.name] for field in fields(kind)]
    shapes = [get_args(shape)[0] if get_origin(shape) is tuple else shape for shape in shapes]
    return [shape for shape in shapes if is_dataclass(shape) and isinstance(shape, type)]


if __name__ == "__main__":
    (DOCS / "events.md").write_text(events_document(), encoding="utf-8")

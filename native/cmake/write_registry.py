"""Writes what Python knows of policies, planners and sound encoders: `write_registry.py SRC OUT.py` reads
the .def files below SRC.

Names are made here as the command line spells them, with dashes. Importing what is written costs next to nothing, so
help and completion need neither the native library nor llama.cpp.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

TOKEN = re.compile(r'\s+|//[^\n]*|#[^\n]*|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>[\w.]+)|(?P<mark>[(),-])')
TYPES = {"uint32_t": "int", "double": "float"}
READS = ("nothing", "attention")


class Entry(NamedTuple):
    """One line of a .def file: its macro's arguments, and those of its knobs."""

    value: int
    name: str
    column: str
    sentence: str
    knobs: list[dict[str, Any]]


class Encoder(NamedTuple):
    """One line of sound_encoders.def."""

    value: int
    name: str
    sentence: str
    numbers: list[int]


def read_entries(path: Path, macro: str) -> list[Entry]:
    """The lines `macro(...)` of a file, in order. Exits with the file's name at what can't be."""
    entries = [
        Entry(int(_one(value)), _one(name), _one(column), _text(sentence), _knobs(knobs, path))
        for value, _, name, column, sentence, knobs in _lines(path, macro, "six", 6)
    ]
    _check_unique(entries, path)
    return entries


def read_encoders(path: Path) -> list[Encoder]:
    """The lines of sound_encoders.def, in order; exits as `read_entries`."""
    entries = [
        Encoder(int(_one(value)), _one(name), _text(sentence), [int(_one(number)) for number in numbers])
        for value, _, name, sentence, *numbers in _lines(path, "SOUND_ENCODER", "eight", 8)
    ]
    _check_unique(entries, path)
    return entries


def _lines(path: Path, macro: str, how_many: str, count: int) -> list[list[list[str]]]:
    """The arguments of each line `macro(...)`."""
    lines = []
    tokens = _tokens(path)
    while tokens:
        if tokens.pop(0) != macro:
            sys.exit(f"{path}: a line is expected to begin with {macro}(")
        lines.append(_arguments(tokens, path))
        if len(lines[-1]) != count:
            sys.exit(f"{path}: {macro} takes {how_many} arguments, not {len(lines[-1])}: {lines[-1]}")
    return lines


def _check_unique(entries: Sequence[Entry | Encoder], path: Path) -> None:
    for what in ("value", "name"):
        found = [getattr(entry, what) for entry in entries]
        if len(set(found)) < len(found):
            sys.exit(f"{path}: a {what} occurs twice: {found}")


def _tokens(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    source = re.sub(r"^#define(?:[^\n]*\\\n)*[^\n]*\n", "", source, flags=re.MULTILINE)
    tokens, at = [], 0
    while at < len(source):
        found = TOKEN.match(source, at)
        if not found:
            sys.exit(f"{path}: what is this: {source[at : at + 40]!r}")
        tokens += [found[0]] if found.lastgroup else []
        at = found.end()
    return tokens


def _arguments(tokens: list[str], path: Path) -> list[list[str]]:
    """Takes `( a, b, ... )`: the tokens of each argument, those in brackets of its own included."""
    if not tokens or tokens.pop(0) != "(":
        sys.exit(f"{path}: a ( is missing")
    arguments: list[list[str]] = [[]]
    depth = 1
    while tokens:
        token = tokens.pop(0)
        depth += (token == "(") - (token == ")")
        if depth == 0:
            return arguments
        if token == "," and depth == 1:
            arguments.append([])
        else:
            arguments[-1].append(token)
    sys.exit(f"{path}: a ) is missing")


def _knobs(tokens: list[str], path: Path) -> list[dict[str, Any]]:
    knobs = []
    while tokens and tokens != ["NO_KNOBS"]:
        macro = tokens.pop(0)
        fields = _arguments(tokens, path)
        if macro not in ("KNOB", "AUTO_KNOB") or len(fields) != 6:
            sys.exit(f"{path}: {macro} with {len(fields)} arguments is no knob")
        is_auto = macro == "AUTO_KNOB"
        name, shown = _one(fields[1]), _text(fields[4]) if is_auto else "".join(fields[2])
        knobs.append(
            {
                "name": name.replace("_", "-"),
                "type": TYPES[_one(fields[0])],
                "default": None if is_auto else "".join(fields[2]),
                "least": "".join(fields[2 if is_auto else 3]),
                "metavar": _text(fields[3 if is_auto else 4]),
                "shown": shown,
                "sentence": _text(fields[5]),
            }
        )
    return knobs


def _one(tokens: list[str]) -> str:
    return "".join(tokens)


def _text(tokens: list[str]) -> str:
    """Literals that follow each other are one."""
    return "".join(token[1:-1].replace('\\"', '"').replace("\\\\", "\\") for token in tokens)


def module(policies: list[Entry], planners: list[Entry], encoders: list[Encoder]) -> str:
    """The module's text."""
    knobs = [(owner, knob) for owner in (*policies, *planners) for knob in owner.knobs]
    names = [knob["name"] for _, knob in knobs]
    if len(set(names)) < len(names):
        sys.exit(f"two knobs have one name: {names}")

    def shown(entry: Entry, kind: str, column: str) -> str:
        name = entry.name.replace("_", "-")
        knobs = "".join(f"            {_knob(knob)},\n" for knob in entry.knobs)
        knobs = f"        (\n{knobs}        ),\n" if knobs else ""
        return f"    {name!r}: {kind}(\n        {entry.value},{column}\n        {entry.sentence!r},\n{knobs}    ),\n"

    def choices(entries: list[Entry]) -> str:
        return ", ".join(repr(entry.name.replace("_", "-")) for entry in entries)

    def fields(is_default: bool) -> str:
        return "".join(
            f"    {knob['name'].replace('-', '_')}: {knob['type']}"
            + (f" = {knob['default']}\n" if is_default and knob["default"] is not None else " | None = None\n")
            + f'    """{knob["sentence"]}"""\n'
            for _, knob in knobs
        )

    for policy in policies:
        if policy.column not in READS:
            sys.exit(f"{policy.name} reads {policy.column}: one of {', '.join(READS)}")
    return "".join(
        (
            '"""Written by native/cmake/write_registry.py from the .def files of native/src."""\n\n',
            "from dataclasses import dataclass\nfrom typing import Literal\n\n",
            "from omnitide_cli.runtime.entries import Knob, LayoutEntry, PolicyEntry, SoundEncoderEntry\n\n",
            f"Policy = Literal[{choices(policies)}]\nLayout = Literal[{choices(planners)}]\n\n",
            "POLICIES: dict[str, PolicyEntry] = {\n",
            *(shown(entry, "PolicyEntry", f" {entry.column == 'attention'},") for entry in policies),
            "}\n\nLAYOUTS: dict[str, LayoutEntry] = {\n",
            *(shown(entry, "LayoutEntry", "") for entry in planners),
            "}\n\nSOUND_ENCODERS: dict[str, SoundEncoderEntry] = {\n",
            *(_encoder(entry) for entry in encoders),
            "}\n\n\n@dataclass(frozen=True, slots=True, kw_only=True)\nclass Knobs:\n",
            '    """Settings of policies and planners; None: theirs to choose."""\n\n',
            fields(True) or "    pass\n",
            "\n\n@dataclass(frozen=True, slots=True, kw_only=True)\nclass ChosenKnobs:\n",
            '    """Those of them that are set; None: not set."""\n\n',
            fields(False) or "    pass\n",
        )
    )


def _knob(knob: dict[str, Any]) -> str:
    texts = [repr(knob[name]) for name in ("metavar", "shown", "sentence")]
    values = f"{knob['name']!r}, {knob['type']}, {knob['default']}, {knob['least']}"
    return f"Knob({values}, {', '.join(texts)})"


def _encoder(entry: Encoder) -> str:
    values = ", ".join(map(str, (entry.value, repr(entry.sentence), *entry.numbers)))
    return f"    {entry.name.replace('_', '-')!r}: SoundEncoderEntry({values}),\n"


def main(source: Path, out: Path) -> None:
    """Read the files, write the module."""
    policies = read_entries(source / "pick" / "policies.def", "POLICY")
    planners = read_entries(source / "page" / "planners.def", "PLANNER")
    out.parent.mkdir(parents=True, exist_ok=True)
    encoders = read_encoders(source / "encode" / "sound_encoders.def")
    out.write_text(module(policies, planners, encoders), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

"""Rows of a benchmark: a table or one JSON object a line on standard output, CSV and a picture in a folder."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnitide_cli.formats.table import columns

if TYPE_CHECKING:
    from omnitide_cli.formats.plot import Figure

Row = dict[str, Any]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per row.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        help="Also write the rows (CSV) and a chart (SVG) to this folder.",
        file_okay=False,
        metavar="DIR",
        show_default=False,
    ),
]


def show_all(rows: Sequence[Row], json_lines: bool) -> None:
    """One object a line, or one table."""
    if json_lines:
        for row in rows:
            print(json.dumps(row))
        return
    names = [name for name in rows[0] if name != "type"]
    print("\n".join(columns([names, *([_cell(row[name]) for name in names] for row in rows)])) + "\n")


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show(row: Any, json_lines: bool) -> None:
    """A single row: an object, or a line a field."""
    fields = asdict(row)
    if json_lines:
        print(json.dumps(fields))
        return
    width = max(map(len, fields))
    for name, value in fields.items():
        if name != "type":
            print(f"{name:<{width}}  {value:.4g}" if isinstance(value, float) else f"{name:<{width}}  {value}")


def save_rows(folder: Path | None, name: str, rows: Sequence[Row], figure: Figure | None = None) -> None:
    """`name`.csv and, with a figure, `name`.svg in `folder`, which is made; nothing without a folder or rows.

    Fields of fields become columns such as kv_bytes.span; what is None is empty.
    """
    if folder is None or not rows:
        return
    folder.mkdir(parents=True, exist_ok=True)
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(column for row in flat for column in row))
    with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, names, restval="")
        table.writeheader()
        table.writerows(flat)
    if figure is not None:
        (folder / f"{name}.svg").write_text(figure.svg(), encoding="utf-8")


def _flat(row: Row) -> Row:
    flat: Row = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": found for inner, found in _flat(value).items()}
        else:
            flat[name] = value
    return flat

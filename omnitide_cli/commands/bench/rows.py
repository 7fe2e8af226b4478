"""Rows of a benchmark on standard output: a table, or one JSON object a line."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from omnitide_cli.display.table import columns

Json = Annotated[bool, typer.Option("--json", help="One JSON object a row.")]


def show_all(rows: list[dict[str, Any]], json_lines: bool) -> None:
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
    fields = asdict(row)
    if json_lines:
        print(json.dumps(fields))
        return
    width = max(map(len, fields))
    for name, value in fields.items():
        if name != "type":
            print(f"{name:<{width}}  {value:.4g}" if isinstance(value, float) else f"{name:<{width}}  {value}")

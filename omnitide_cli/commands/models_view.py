"""Models as a table, and one of them in full."""

from __future__ import annotations

from typing import Any, TextIO

from omnitide_cli.formats.status import columns
from omnitide_cli.formats.words import size
from omnitide_cli.terminal.summary import table_lines

Described = dict[str, Any]
"""What `omnitide models info --json` prints."""


def list_lines(models: list[Described], out: TextIO) -> None:
    """A line a model: name, where it is, how large, what it is; the default is marked."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("name", "senses", "state", "size"):
        table.add_column(title, no_wrap=True)
    table.add_column("description")
    for model in models:
        marked = f"{model['description']} The default." if model["default"] else model["description"]
        table.add_row(
            model["name"], _senses(model), model["state"], size(model["bytes"]), f"{marked} Licence: {model['license']}"
        )
    console = Console(file=out, width=columns(out) if out.isatty() else 100, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(table)
    out.write("\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n")


def info_lines(model: Described, out: TextIO) -> None:
    """Label and value, a line each."""
    rows = [
        ("model", f"{model['title']} ({model['name']})"),
        ("", model["description"]),
        ("licence", model["license"]),
        ("state", model["state"] + (f", {size(model['unfinished_bytes'])} so far" * bool(model["unfinished_bytes"]))),
    ]
    rows += [(file["role"], f"{size(file['bytes'])}  {file['path'] or file['name']}") for file in model["files"]]
    rows += [
        ("per second", f"{_picture(model)}, {_sound(model)}"),
        ("cache", f"{size(model['cache_bytes_per_token'])} per token (f16)"),
        ("asks", model["default_question"]),
    ]
    for line in table_lines(rows, columns(out) if out.isatty() else None):
        out.write(f"{line}\n")


def _senses(model: Described) -> str:
    return ", ".join(sense for sense in ("sees", "hears") if model[sense])


def _picture(model: Described) -> str:
    if not model["sees"]:
        return "no image"
    least, most = model["image_tokens"], model["most_image_tokens"]
    raised = f" ({most} with --image-tokens {most})" if most > least else ""
    return f"at most {least} tokens of image{raised}"


def _sound(model: Described) -> str:
    tokens = model["audio_tokens_per_second"]
    return f"{tokens} of audio" if tokens else "no audio"

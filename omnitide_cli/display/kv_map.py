"""The cache as a picture and a table: which pages are in use, by what, and where the holes are.

A character is a piece of a page. Letters say what it holds, so that the map reads without colour and in a pipe.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

from omnitide_cli.display.status import columns
from omnitide_cli.display.summary import table_lines
from omnitide_cli.display.words import counted, size
from omnitide_cli.runtime.kv_state import KvState, Simulation

if TYPE_CHECKING:
    from rich.text import Text

PIPE_COLUMNS = 80
MOST_LINES = 24
STYLES = {"M": "black on magenta", "S": "black on cyan", "R": "black on green", ".": "bright_black"}
LEGEND = (("M", " must-keep  "), ("S", " selected  "), ("R", " recent  "), (".", " empty  "))
NOTE = "capitals: no hole; small letters: partly used"


def show(state: KvState | Simulation, out: TextIO) -> None:
    """Print the map, then the table, as wide as the terminal (a pipe: 80 columns)."""
    from rich.console import Console

    width = columns(out) if out.isatty() else PIPE_COLUMNS
    console = Console(file=out, width=width, highlight=False)
    kv = state.state if isinstance(state, Simulation) else state
    for line in map_lines(kv, width):
        console.print(line, soft_wrap=True)
    for line in ("", *table_lines(rows(state), width if out.isatty() else None)):
        console.print(line, markup=False, soft_wrap=True)


def map_lines(state: KvState, width: int) -> list[Text]:
    """The pages up to the end of the cache, a line as many as fit `width` columns."""
    from rich.text import Text

    pages = [state.cell_map[i : i + state.page_size] for i in range(0, len(state.cell_map), state.page_size)]
    label = len(str(state.cells)) + 2
    for pieces in (8, 4, 2, 1):
        pieces = min(pieces, state.page_size)
        gap = " " if pieces > 1 else ""
        per_line = max((width - label) // (pieces + len(gap)), 1)
        if len(pages) <= per_line * MOST_LINES or pieces == 1:
            break
    lines = []
    for first in range(0, len(pages), per_line):
        line = Text(f"{first * state.page_size:>{label - 2}}  ")
        for page in pages[first : first + per_line]:
            for letter in _letters(page, pieces):
                line.append(letter, STYLES[letter.upper()])
            line.append(gap)
        line.rstrip()
        lines.append(line)
    legend = Text(" " * label)
    for letter, name in LEGEND:
        legend.append(letter, STYLES[letter]).append(name)
    return [*lines, legend, Text(" " * label + NOTE)]


def _letters(page: str, pieces: int) -> str:
    """One letter a piece: of the class that has most cells in it."""
    bounds = [len(page) * i // pieces for i in range(pieces + 1)]
    return "".join(_letter(page[begin:end]) for begin, end in pairwise(bounds) if end > begin)


def _letter(cells: str) -> str:
    used = len(cells) - cells.count(".")
    if not used:
        return "."
    most = max("MSR", key=cells.count)
    return most if used == len(cells) else most.lower()


def rows(state: KvState | Simulation) -> list[tuple[str, str]]:
    """Label and text of each line of the table."""
    kv = state.state if isinstance(state, Simulation) else state
    classes = kv.classes
    partial = sum(unit.partial for unit in kv.units)
    table = [
        ("session", kv.session if not isinstance(state, Simulation) else f"simulated, {counted(state.units, 'unit')}"),
        ("cells", f"{kv.cells} in {counted(-(-kv.cells // kv.page_size), 'page')} of {kv.page_size}"),
        ("useful cells", f"{kv.useful_cells}"),
        ("", f"must-keep {classes.must_keep}, selected {classes.selected_history}, recent {classes.recent_context}"),
        ("page span", f"{kv.page_span} cells, {kv.span_ratio:.2f} times the useful ones"),
        ("physical span", f"{kv.physical_span} cells, at most {kv.peak_physical_span}"),
        ("active", f"{counted(kv.active_pages, 'page')}, {counted(kv.active_subblocks, 'subblock')}"),
        ("holes", f"{kv.holes} cells, the largest {kv.largest_hole}; fragmentation {kv.fragmentation:.1%}"),
        ("history", f"{counted(len(kv.units), 'unit')}, {partial} of them in part"),
    ]
    if kv.kv_bytes:
        parts = kv.kv_bytes
        table.append(("memory", f"{size(parts.allocated)}, span {size(parts.span)}, useful {size(parts.useful)}"))
    if isinstance(state, Simulation):
        table += _mean_rows(state)
    return table


def _mean_rows(simulation: Simulation) -> list[tuple[str, str]]:
    if simulation.mean_page_span is None:
        return [("maintenance", "none: the history never rose above the high watermark")]
    return [
        ("on average", "right after each maintenance"),
        (
            "  page span",
            f"{simulation.mean_page_span:.0f} cells, {simulation.mean_span_ratio:.2f} times the useful ones",
        ),
        ("  active", f"{simulation.mean_active_pages:.1f} pages"),
        (
            "migrations",
            f"{simulation.migrations} with {counted(simulation.rows_moved, 'row')} moved;"
            f" {counted(simulation.rows_shifted, 'row')} shifted",
        ),
    ]

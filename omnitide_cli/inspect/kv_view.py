"""A session's cache as a reader sees it: map, figures and their meaning, what upkeep last did."""

from __future__ import annotations

import codecs
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from omnitide_cli.formats.charts import ASCII, BLOCKS, DRAWN, Charset, history_lines, history_words
from omnitide_cli.formats.status import columns, is_capable
from omnitide_cli.inspect import kv_table, kv_words
from omnitide_cli.inspect.kv_map import FULL, MOST_LINES, UNIT_LINES, map_lines, unit_lines
from omnitide_cli.runtime.kv_state import KvState, SessionSnapshot, Simulation

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text

PIPE_COLUMNS = 80
SVG_COLUMNS = 100
NARROW = 60
INDENT = 2
ROOMY = 48
AROUND = 42  # lines of everything but the map, at 80 columns
AROUND_LOW = 19
LEAST_MAP_LINES = 3
LABEL_COLUMNS = 13


@dataclass(frozen=True, slots=True)
class Canvas:
    """Room for a view: columns, lines (None: as many as it takes), and which characters the reader's terminal has."""

    width: int
    charset: Charset
    height: int | None = None

    @property
    def is_low(self) -> bool:
        """Too few lines for figures with their meaning."""
        return self.height is not None and self.height < ROOMY

    @property
    def map_lines(self) -> int:
        """How many the map may have."""
        if self.height is None:
            return MOST_LINES
        return max(LEAST_MAP_LINES, min(self.height - (AROUND_LOW if self.is_low else AROUND), MOST_LINES))


def canvas(out: TextIO) -> Canvas:
    """As wide as the terminal (a pipe: 80 columns of ASCII)."""
    if not out.isatty():
        return Canvas(PIPE_COLUMNS, ASCII)
    return Canvas(columns(out), BLOCKS if _is_unicode(out) and is_capable(out) else ASCII)


def show(subject: SessionSnapshot | Simulation, out: TextIO, *, history: bool = False, others: str = "") -> None:
    """Print it once. `history`: the chart instead of the map; `others`: a last remark."""
    room = canvas(out)
    shown = view(subject, room, history=history, others=others)
    printer = console(out, room)
    if out.isatty():
        printer.print(shown)
        return
    with printer.capture() as capture:
        printer.print(shown)
    out.write("\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n")
    out.flush()


def console(out: TextIO, room: Canvas) -> Console:
    """Without highlighting, and never wider than `room`."""
    from rich.console import Console

    return Console(file=out, width=room.width, highlight=False, markup=False, emoji=False)


def view(
    subject: SessionSnapshot | Simulation, room: Canvas, *, history: bool = False, others: str = ""
) -> RenderableType:
    """The whole of it, top to bottom."""
    from rich.console import Group
    from rich.text import Text

    snapshot = subject.last if isinstance(subject, Simulation) else subject
    parts: list[RenderableType] = [
        Text(kv_words.headline(snapshot), "bold"),
        Text(kv_words.subject(snapshot)),
        Text(),
    ]
    if history:
        parts += history_lines(snapshot, room.width, room.charset)
        parts += [Text(), Text(history_words(snapshot, room.charset))]
    else:
        parts += cache_parts(
            snapshot.state, room, kv_table.mean_rows(subject) if isinstance(subject, Simulation) else ()
        )
        parts += [Text(), *_upkeep(snapshot, room)]
    if others:
        parts += [Text(), Text(others, "dim")]
    return Group(*parts)


def cache_parts(state: KvState, room: Canvas, more: Sequence[kv_table.Row] = ()) -> list[RenderableType]:
    """Map, legend and figures, `more` of them at the end, and what is left of each unit; in brief where room is low."""
    from rich.text import Text

    classes = kv_table.class_rows(state)
    parts: list[RenderableType] = [*map_lines(state, room.width, room.map_lines), Text()]
    if room.is_low:
        legend = Text()
        for letter, count, _ in classes:
            legend.append_text(_styled(letter)).append(f" {count}   ")
        parts += [legend, Text(kv_table.brief(state))]
    else:
        parts += [_grid(classes, room), Text(), _grid([*kv_table.figure_rows(state), *more], room, LABEL_COLUMNS)]
    if state.units:
        parts.append(Text("tokens left of each unit, oldest first (s system, q question, a answer):", "dim"))
        steps = room.charset.steps.strip()
        for line in unit_lines(state.units, room.width - INDENT, steps, 1 if room.is_low else UNIT_LINES):
            parts.append(Text(" " * INDENT, no_wrap=True).append_text(line))
    return parts


def _upkeep(snapshot: SessionSnapshot, room: Canvas) -> list[RenderableType]:
    from rich.text import Text

    rounds = f" ({snapshot.retentions} so far)" if snapshot.retentions > 1 else ""
    return [
        Text.assemble((f"Last eviction{rounds}: ", "bold"), kv_words.retention_words(snapshot, brief=room.is_low)),
        Text.assemble(("Last move: ", "bold"), kv_words.migration_words(snapshot)),
        *([Text.assemble(("Unchanged: ", "bold"), same)] if (same := kv_words.same_words(snapshot)) else []),
    ]


def _grid(rows: list[kv_table.Row], room: Canvas, label_columns: int = 1) -> Table:
    """Label, figure, meaning; narrow terminals have the meaning below its figure."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, min_width=label_columns)
    for label, figure, meaning in rows:
        text = _styled(label)
        if room.width < NARROW:
            grid.add_row(text, f"{figure}: {meaning}" if meaning else figure)
        else:
            grid.add_row(text, figure, meaning)
    for column in grid.columns[2:]:
        column.style = "dim"
    return grid


def _styled(label: str) -> Text:
    from rich.text import Text

    return Text(label, FULL.get(label, ""))


def save_svg(subject: SessionSnapshot | Simulation, path: Path, width: int, *, history: bool = False) -> None:
    """Write what a terminal of `width` columns would show. Raises OSError."""
    from rich.console import Console

    from omnitide_cli.formats.svg import as_svg

    recorder = Console(record=True, file=io.StringIO(), width=width, force_terminal=True, color_system="truecolor")
    recorder.print(view(subject, Canvas(width, DRAWN), history=history), markup=False, highlight=False)
    path.write_text(as_svg(recorder, f"omnitide inspect-kv{' --history' if history else ''}"), encoding="utf-8")


def _is_unicode(out: TextIO) -> bool:
    try:
        return codecs.lookup(out.encoding or "").name.startswith("utf")
    except LookupError:
        return False

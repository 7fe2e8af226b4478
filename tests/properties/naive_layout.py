"""docs/omnipage.md as it is written down: placement, planners, costs. Slow and plain: the reference.

A layout is a string, one letter a cell: M must-keep, S selected-history, R recent-context, . empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

TILE = 64


@dataclass(frozen=True)
class Geometry:
    """Cells of a page, of a subblock, and of what the backend rounds the span to."""

    page: int
    subblock: int
    align: int


class Stats(NamedTuple):
    """As `ot_layout_stats`."""

    useful_cells: int
    active_pages: int
    active_subblocks: int
    page_span: int
    physical_span: int
    holes: int
    largest_hole: int


Moves = dict[int, int]  # source -> destination


def stats(cells: str, geometry: Geometry) -> Stats:
    """Counts of a layout."""
    used = used_cells(cells)
    end = used[-1] + 1 if used else 0
    runs = [len(list(run)) for letter, run in groupby(cells[:end]) if letter == "."]
    return Stats(
        len(used),
        len({cell // geometry.page for cell in used}),
        len({cell // geometry.subblock for cell in used}),
        round_up(end, geometry.page),
        min(max(round_up(end, geometry.align), geometry.align), len(cells)),
        sum(runs),
        max(runs, default=0),
    )


def round_up(cells: int, unit: int) -> int:
    return -(-cells // unit) * unit


def used_cells(cells: str) -> list[int]:
    return [cell for cell, letter in enumerate(cells) if letter != "."]


def pages(cells: str, geometry: Geometry) -> list[str]:
    return [cells[i : i + geometry.page] for i in range(0, len(cells), geometry.page)]


def moved(cells: str, moves: Moves) -> str:
    """Gather, then scatter."""
    after = list(cells)
    for source in moves:
        after[source] = "."
    for source, destination in moves.items():
        after[destination] = cells[source]
    return "".join(after)


# --- placement


def place(cells: str, n: int, placement: str, geometry: Geometry) -> list[int]:
    """Cells of the next n tokens under class or span placement; there must be room."""
    free = [cell for cell, letter in enumerate(cells) if letter == "."]
    if placement == "class":
        ranks = [_rank(page) for page in pages(cells, geometry)]
        free.sort(key=lambda cell: (ranks[cell // geometry.page], cell))
    return sorted(free[:n])


def _rank(page: str) -> int:
    """Open pages before empty ones before must-keep ones."""
    return 2 if "M" in page else 1 if set(page) == {"."} else 0


def place_natively(cells: str, n: int, head: int) -> tuple[list[int], int]:
    """llama.cpp's slot search: onwards from its head, around the end; the cells and the new head."""
    if head > len(used_cells(cells)) + 2 * n:
        head = 0
    order = [*range(head, len(cells)), *range(head)]
    free = [cell for cell in order if cells[cell] == "."][:n]
    return free, free[-1] + 1


# --- planners


def plan(planner: str, cells: str, geometry: Geometry, min_pages: int) -> Moves:
    """What moves; empty when nothing does."""
    if planner == "eager":
        return _eager(cells)
    if planner == "class-packing":
        return _class_packing(cells, geometry)
    if planner == "ordered-suffix":
        return _ordered_suffix(cells, geometry, min_pages)
    if planner == "hole-filling":
        return _hole_filling(cells, geometry)
    return {}


def _eager(cells: str) -> Moves:
    return {source: to for to, source in enumerate(used_cells(cells)) if source != to}


def _class_packing(cells: str, geometry: Geometry) -> Moves:
    now = cells
    origin = {cell: cell for cell in range(len(cells))}  # of what lies in a cell now

    def move(source: int, to: int) -> None:
        nonlocal now
        now = moved(now, {source: to})
        origin[to] = origin.pop(source)

    # Step 1: entries of shortened units into earlier holes of pages that hold nothing else.
    for source in used_cells(cells):
        if cells[source] != "S" or set(pages(cells, geometry)[source // geometry.page]) == {"S"}:
            continue
        takes = [set(page) <= {"S", "."} for page in pages(now, geometry)]
        holes = [cell for cell in range(source) if now[cell] == "." and takes[cell // geometry.page]]
        if holes:
            move(source, holes[0])
    # Step 2: the sparsest pages fall empty, as far as lower open ones have holes.
    fill = [len(page) - page.count(".") for page in pages(now, geometry)]
    for number in sorted(range(len(fill)), key=lambda i: (fill[i], -i)):
        is_open = [set(page) != {"."} and "." in page and "M" not in page for page in pages(now, geometry)]
        first = number * geometry.page
        used = [first + i for i, letter in enumerate(pages(now, geometry)[number]) if letter != "."]
        holes = [cell for cell in range(first) if now[cell] == "." and is_open[cell // geometry.page]]
        if is_open[number] and len(holes) >= len(used):
            for source, to in zip(used, holes, strict=False):
                move(source, to)
    moves = {came: cell for cell, came in origin.items() if now[cell] != "." and came != cell}
    before, after = stats(cells, geometry), stats(now, geometry)
    wins = after.active_pages < before.active_pages or after.active_subblocks < before.active_subblocks
    return moves if wins else {}


def _ordered_suffix(cells: str, geometry: Geometry, min_pages: int) -> Moves:
    used = used_cells(cells)
    before = stats(cells, geometry)
    suffixes = []
    for k in range(len(used)):
        begin = used[k - 1] + 1 if k else 0
        if "M" not in {cells[cell] for cell in used[k:]}:
            moves = {source: begin + i for i, source in enumerate(used[k:]) if source != begin + i}
            suffixes.append((moves, stats(moved(cells, moves), geometry)))
    shortest = min((after.page_span for _, after in suffixes), default=0)
    for moves, after in reversed(suffixes):
        won = before.page_span - after.page_span
        left = after.page_span - shortest
        if left > max(min_pages - 1, 0) * geometry.page or won < min_pages * geometry.page:
            continue
        if after.physical_span < before.physical_span:
            return moves
    return {}


def _hole_filling(cells: str, geometry: Geometry) -> Moves:
    used = used_cells(cells)
    end = round_up(max([len(used), *(cell + 1 for cell in used if cells[cell] == "M")]), geometry.page)
    behind = [cell for cell in used if cell >= end]
    holes = [cell for cell in range(min(end, len(cells))) if cells[cell] == "."]
    return dict(zip(behind, holes, strict=False))


# --- costs, by the native defaults


class Work(NamedTuple):
    """Tokens that will come in large batches, in small ones, one by one."""

    large: float
    small: float
    decoded: float


@dataclass(frozen=True)
class Costs:
    """As `ot_cost_model`."""

    kernel: str  # "tiled", "cells" or "span"
    threads: int
    tile_us: float
    empty_tile_us: float
    cell_us: float
    run_us: float
    empty_cell_us: float
    slice_cell_us: float
    span_cell_us: float
    key_row_us: float
    value_row_us: float

    def attention(self, cells: str, geometry: Geometry, work: Work) -> float:
        """Microseconds of attention over one layout."""
        span = stats(cells, geometry).physical_span
        if self.kernel == "span":
            return sum(work) * self.span_cell_us * span
        used = used_cells(cells)
        slice_cells = -(-span // self.threads)
        slices = [sum(cell // slice_cells == i for cell in used) for i in range(self.threads)]
        tiles = len({cell // TILE for cell in used})
        small = self.cell_us * len(used) + self.empty_cell_us * (span - len(used))
        small += self.run_us * sum(cell == 0 or cells[cell - 1] == "." for cell in used)
        if self.kernel == "cells":
            return sum(work) * small
        large = self.tile_us * tiles + self.empty_tile_us * (-(-span // TILE) - tiles)
        return work.large * large + work.small * small + work.decoded * self.slice_cell_us * max(slices)

    def moving(self, moves: Moves, shifted: set[int]) -> float:
        """Microseconds of moving; keys that are shifted anyway cost nothing."""
        return sum(self.value_row_us + self.key_row_us * (source not in shifted) for source in moves)

    def total(
        self,
        planner: str,
        cells: str,
        geometry: Geometry,
        min_pages: int,
        *,
        arriving: int,
        work: Work,
        shifted: set[int],
    ) -> float:
        """What a planner's plan costs until the next retention."""
        moves = plan(planner, cells, geometry, min_pages)
        after = moved(cells, moves)
        placement = "class" if planner == "class-packing" and moves else "span"
        new = place(after, min(arriving, after.count(".")), placement, geometry)
        full = "".join("R" if cell in set(new) else letter for cell, letter in enumerate(after))
        attention = (self.attention(after, geometry, work) + self.attention(full, geometry, work)) / 2
        return attention + self.moving(moves, shifted)

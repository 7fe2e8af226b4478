"""What attention over a layout and moving its rows cost on this machine, and how well the cost model predicts it.

Updates are measured over layouts that differ in what each kernel's time depends on (tiles with and without a used cell,
used cells and their runs, empty cells, the busiest thread's slice, the span: native/src/page/cost.h), and each case of
the cost model is fitted to them. Then updates over other layouts, as sessions leave them, are predicted and measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.runtime.costs import Costs
from omnitide_cli.runtime.history import History, Part
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import SOUND_TOKENS, Stream, image_tokens

TILE = 64
SPAN_ALIGN = 256
SMALL = 32  # tokens of an update that takes the kernel without tiles
N_CELLS = 8192
MOVED_UNIT = 60
MOVED = 30 * MOVED_UNIT  # rows of the relocations that are timed
RELOCATIONS = 8
_SESSION = "a session, "


@dataclass(frozen=True, slots=True)
class Layout:
    """Used cells of a cache, and whether the fit may see what an update over them takes."""

    name: str
    cells: tuple[int, ...]
    fitted: bool


@dataclass(frozen=True, slots=True)
class Prediction:
    """An update over a layout, predicted and measured (median)."""

    layout: str
    tokens: int
    used_cells: int
    physical_span: int
    predicted_ms: float
    measured_ms: float
    error: float  # predicted / measured - 1
    fitted: bool
    type: str = "prediction"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The fitted costs and every prediction made with them."""

    costs: Costs
    predictions: tuple[Prediction, ...]


def layouts(unit: int) -> list[Layout]:
    """Layouts to fit to, and layouts as sessions leave them, of units of `unit` tokens."""
    random = np.random.default_rng(7)
    every_third_page = np.flatnonzero(np.arange(6144) // TILE % 3 == 0)
    made = [
        ("packed 1024", np.arange(1024), True),
        ("packed 2048", np.arange(2048), True),
        ("packed 4096", np.arange(4096), True),
        ("every third cell", np.arange(0, 6144, 3), True),
        ("every third page", every_third_page, True),
        ("half of the cells", np.sort(random.permutation(4096)[:2048]), True),
        ("far end", np.concatenate([np.arange(1024), np.arange(7000, 7168)]), True),
        ("every second cell", np.arange(0, 3584, 2), False),
        ("random pages", np.flatnonzero(random.random(112)[np.arange(7168) // TILE] < 0.4), False),
    ]
    image = max(image_tokens(unit), 1)
    for layout in ("native", "class-packing", "eager"):
        options = EngineOptions(layout=layout, unit_tokens=unit)
        made.append((f"{_SESSION}{layout}", _session_cells(options, image), False))
    return [Layout(name, tuple(cells.tolist()), fitted) for name, cells, fitted in made]


def calibrate(fixture: Fixture, unit: int, repeat: int, progress: Callable[[int, int], None]) -> Calibration:
    """Measure updates of `unit`, of SMALL and of one token over all layouts, interleaved, and fit."""
    cases = layouts(unit)
    sizes = (unit, SMALL, 1)
    times: dict[tuple[int, int], list[float]] = {}
    for round_ in range(repeat):
        for index, layout in enumerate(cases):
            session = fixture.session(N_CELLS)
            fixture.occupy(session, layout.cells)
            if round_ == 0:
                fixture.update_ms(session, SMALL)  # touches what the first run of a context would pay for
            for size in sizes:
                times.setdefault((index, size), []).append(fixture.update_ms(session, size))
            progress(round_ * len(cases) + index + 1, repeat * len(cases))
    measured = {case: median(values) for case, values in times.items()}
    known = fixture.model.costs(fixture.options)
    kernel = known.kernel
    threads = fixture.model.threads
    slopes: dict[int, list[float]] = {}
    predictions: list[Prediction] = []
    for size in sizes:
        amounts = [_amounts(layout.cells, size, kernel, threads) for layout in cases]
        base, slope = _fit(
            [amounts[i] for i, layout in enumerate(cases) if layout.fitted],
            [measured[i, size] for i, layout in enumerate(cases) if layout.fitted],
        )
        slopes[size] = [per_update / size * 1000 for per_update in slope]
        for i, layout in enumerate(cases):
            predicted = base + float(np.dot(slope, amounts[i]))
            span = _physical_span(layout.cells, size)
            error = predicted / measured[i, size] - 1
            fields = (layout.name, size, len(layout.cells), span, predicted, measured[i, size], error, layout.fitted)
            predictions.append(Prediction(*fields))
    key_row, value_row = _moving(fixture)
    costs = replace(known, key_row_us=key_row, value_row_us=value_row)
    if kernel == "span":
        costs = replace(costs, span_cell_us=slopes[unit][0])
    else:
        cell, run, empty_cell = slopes[SMALL if kernel == "tiled" else unit]
        costs = replace(costs, cell_us=cell, run_us=run, empty_cell_us=empty_cell)
    if kernel == "tiled" and unit >= TILE:
        tile, empty_tile = slopes[unit]
        costs = replace(costs, tile_us=tile, empty_tile_us=empty_tile)
    if kernel == "tiled":
        costs = replace(costs, slice_cell_us=slopes[1][0])
    return Calibration(costs, tuple(predictions))


def unit_times(fixtures: Sequence[Fixture], unit: int, repeat: int) -> list[float]:
    """Milliseconds of a unit's update at each fixture, in turn: over what sessions leave, means of `repeat` medians."""
    means: list[list[float]] = [[] for _ in fixtures]
    for layout in layouts(unit):
        if not layout.name.startswith(_SESSION):
            continue
        sessions = [fixture.session(N_CELLS) for fixture in fixtures]
        times: list[list[float]] = [[] for _ in fixtures]
        for fixture, session in zip(fixtures, sessions, strict=True):
            fixture.occupy(session, layout.cells)
            fixture.update_ms(session, unit)  # touches what the first run of a context would pay for
        for _ in range(repeat):
            for fixture, session, mine in zip(fixtures, sessions, times, strict=True):
                mine.append(fixture.update_ms(session, unit))
        for mean, mine in zip(means, times, strict=True):
            mean.append(median(mine))
    return [fmean(mean) for mean in means]


def _session_cells(options: EngineOptions, image: int) -> NDArray[np.int64]:
    """Where the history lies after a few rounds of retention."""
    with History(options, 4096, mrope=True) as history:
        history.append("system", [Part("system", 16)])
        for _ in range(max(60, 8000 // options.unit_tokens)):
            history.append("media", Stream(1, image, SOUND_TOKENS).parts())
            history.maintain()
        return np.flatnonzero(history.cells())


def _physical_span(cells: Sequence[int], arriving: int) -> int:
    """The span that the backend sees while `arriving` tokens, in the lowest free cells, are computed."""
    free = np.setdiff1d(np.arange(N_CELLS), np.array(cells), assume_unique=True)[:arriving]
    end = 1 + max(max(cells), int(free[-1]))
    return -(-end // SPAN_ALIGN) * SPAN_ALIGN


def _amounts(cells: Sequence[int], tokens: int, kernel: str, threads: int) -> tuple[float, ...]:
    """What the time of an update depends on, as native/src/page/cost.cpp counts it, the update's own cells included."""
    used = np.zeros(N_CELLS, dtype=bool)
    used[list(cells)] = True
    used[np.flatnonzero(~used)[:tokens]] = True
    span = -(-int(np.flatnonzero(used)[-1] + 1) // SPAN_ALIGN) * SPAN_ALIGN
    if kernel == "span":
        return (float(span),)
    if tokens == 1 and kernel == "tiled":
        slices = np.array_split(used[:span], threads) if span % threads == 0 else [used[:span]]
        return (float(max(int(part.sum()) for part in slices)),)
    if kernel == "tiled" and tokens >= TILE:
        tiles = float(used.reshape(-1, TILE).any(axis=1).sum())
        return tiles, span / TILE - tiles
    runs = used & ~np.concatenate([[False], used[:-1]])
    return float(used.sum()), float(runs.sum()), float(span - used.sum())


def _fit(amounts: Sequence[tuple[float, ...]], times: Sequence[float]) -> tuple[float, list[float]]:
    """Base and a slope for each amount by least squares of relative errors; a slope below 0 is noise."""
    weights = 1 / np.array(times)
    matrix = np.column_stack([np.ones(len(amounts)), np.array(amounts)]) * weights[:, None]
    slopes = np.zeros(matrix.shape[1])
    kept = list(range(matrix.shape[1]))
    while kept:
        slopes[:] = 0
        slopes[kept] = np.linalg.lstsq(matrix[:, kept], np.ones(len(times)), rcond=None)[0]
        if min(slopes[kept]) >= 0:
            break
        kept.remove(min(kept, key=lambda column: slopes[column]))
    return float(slopes[0]), [float(slope) for slope in slopes[1:]]


def _moving(fixture: Fixture) -> tuple[float, float]:
    """Microseconds a row of keys that moves without a shift, and a row of values.

    From relocations of the same rows: moved alone, and shifted with and without a move.
    """
    moved, shifted, both = (
        _relocation_us(fixture, layout, positions)
        for layout, positions in (("eager", "sparse"), ("native", "compact"), ("eager", "compact"))
    )
    value_row = max(both - shifted, 0.0) / MOVED
    return max(moved / MOVED - value_row, 0.0), value_row


def _relocation_us(fixture: Fixture, layout: str, positions: str) -> float:
    """Retentions that drop the oldest of many equal units; all others then move or shift or both."""
    unit = [Part("text", MOVED_UNIT)]
    session = fixture.session(
        N_CELLS, layout=layout, positions=positions, policy="fifo", high_watermark=MOVED + 1, low_watermark=MOVED
    )
    for _ in range(MOVED // MOVED_UNIT):
        fixture.add(session, "question", unit)
    times = []
    for _ in range(RELOCATIONS):
        fixture.add(session, "question", unit)
        times.append(session.maintain().migrate_ms * 1000)
    return median(times[1:])  # the first one allocates

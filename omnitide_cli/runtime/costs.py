"""What attention and moving cost on this machine, for the layout `auto` (docs/omnipage.md, "What attention costs").

Defaults are scaled to a model's shape from one that was measured; `omnitide bench calibrate` measures the model itself
and keeps the result in the cache folder, where the next session finds it. Beside the costs it keeps what a unit takes,
which says whether flash attention is faster here.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Costs:
    """Microseconds over all layers, of which only the ratios count; see `ot_cost_model` in omnitide.h."""

    kernel: str  # tiled, cells or span: what attention's time depends on
    tile_us: float
    empty_tile_us: float
    cell_us: float
    run_us: float
    empty_cell_us: float
    slice_cell_us: float
    span_cell_us: float
    key_row_us: float
    value_row_us: float


MEASURED = Costs("tiled", 30.0, 3.0, 1.9, 0.3, 0.1, 3.8, 0.46, 1.1, 1.1)
MEASURED_QUERIES, MEASURED_KEYS = 6 * 2048, 6 * 256
"""Values of all query heads and of all key heads: 6 layers of Qwen2.5-Omni-3B's shape, measured on 2 cores, f16."""


def kernel_of(cache_type: str, *, flash_attention: bool, on_gpu: bool) -> str:
    """How the backend walks the cache. On a GPU its span is what counts."""
    if on_gpu or not flash_attention:
        return "span"
    return "tiled" if cache_type in ("f16", "f32") else "cells"


def scaled(kernel: str, queries: int, keys: int) -> Costs:
    """The measured costs for a model with this many query-head and key-head values over all layers."""
    attention, moving = queries / MEASURED_QUERIES, keys / MEASURED_KEYS
    names = [field.name for field in fields(Costs) if field.name != "kernel"]
    scales = {name: moving if name in ("key_row_us", "value_row_us") else attention for name in names}
    return Costs(kernel, **{name: getattr(MEASURED, name) * scale for name, scale in scales.items()})


def cost_key(file: Path, cache_type: str, flash_attention: bool, threads: int) -> str:
    """What a calibration is valid for."""
    size = file.stat().st_size
    return f"{file.name}:{size}:{cache_type}:{'flash' if flash_attention else 'plain'}:{threads}"


def load_costs(store: Path, key: str) -> Costs | None:
    """A kept calibration; None when there is none, or none that can be read."""
    kept: Any = _load(store).get(key)
    try:
        numbers = {field.name: float(kept[field.name]) for field in fields(Costs) if field.name != "kernel"}
        return Costs(kernel=str(kept["kernel"]), **numbers)
    except (ValueError, KeyError, TypeError):
        return None


def load_unit_ms(store: Path, key: str) -> float | None:
    """What a unit took in a kept calibration; None when that is not known."""
    kept = _load(store).get(key)
    unit_ms = kept.get("unit_ms") if isinstance(kept, dict) else None
    return float(unit_ms) if isinstance(unit_ms, int | float) else None


def save_costs(store: Path, key: str, costs: Costs, unit_ms: float) -> None:
    """Keep a calibration beside those of other models and settings."""
    kept = _load(store)
    kept[key] = {**asdict(costs), "unit_ms": unit_ms}
    store.parent.mkdir(parents=True, exist_ok=True)
    partial = store.with_suffix(f".{os.getpid()}.part")
    partial.write_text(json.dumps(kept, indent=1), encoding="utf-8")
    partial.replace(store)


def _load(store: Path) -> dict[str, Any]:
    try:
        kept = json.loads(store.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}

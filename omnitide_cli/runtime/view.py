"""What a native history is set up with and what is seen of it, with a model (session.py) and without (history.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.errors import RuntimeFailure
from omnitide_cli.runtime.events import KvBytes
from omnitide_cli.runtime.kv_state import CellClasses, KvState, SpanState, UnitState
from omnitide_cli.runtime.native import check, ffi, lib
from omnitide_cli.runtime.options import LAYOUT_ENTRIES, POLICY_ENTRIES

POLICIES = {name: entry.number for name, entry in POLICY_ENTRIES.items()}
LAYOUTS = {name: entry.number for name, entry in LAYOUT_ENTRIES.items()}
LAYOUT_NAMES = {value: name for name, value in LAYOUTS.items()}
POSITIONS = {"compact": lib.OT_POSITIONS_COMPACT, "sparse": lib.OT_POSITIONS_SPARSE}
ROLES = {
    "boundary": lib.OT_ROLE_BOUNDARY,
    "image-source": lib.OT_ROLE_IMAGE_SOURCE,
    "image": lib.OT_ROLE_IMAGE_SLICE,
    "audio": lib.OT_ROLE_AUDIO,
    "text": lib.OT_ROLE_TEXT,
    "response": lib.OT_ROLE_RESPONSE,
    "system": lib.OT_ROLE_SYSTEM,
}
UNIT_KINDS = {
    "system": lib.OT_UNIT_SYSTEM,
    "media": lib.OT_UNIT_MEDIA,
    "question": lib.OT_UNIT_QUESTION,
    "response": lib.OT_UNIT_RESPONSE,
}
UNIT_KIND_NAMES = {value: name for name, value in UNIT_KINDS.items()}
ROLE_NAMES = {value: name for name, value in ROLES.items()}
CELL_LETTERS = bytes.maketrans(bytes(range(5)), b".MSRC")  # OT_CELL_*
KERNELS = {"tiled": lib.OT_KERNEL_TILED, "cells": lib.OT_KERNEL_CELLS, "span": lib.OT_KERNEL_SPAN}


class Part(NamedTuple):
    """A span to add: `length` tokens of one role; an image `width` tokens wide is a raster."""

    role: str
    length: int
    width: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """A run of tokens of one role. Raster tokens [first, first + length) of an image `width` tokens wide are left."""

    role: str
    length: int
    first: int
    width: int
    continues: bool
    base: int
    rotations: int


@dataclass(frozen=True, slots=True)
class Unit:
    """One streaming event as the ledger has it."""

    id: int
    kind: str
    partial: bool
    tokens: int
    start_s: float
    end_s: float
    spans: tuple[Span, ...]
    recalled: bool = False
    """Put back for a question; `id` is that of the unit when it came."""


class HistoryView:
    """Looks inside a native handle whose functions are called `ot_<kind>_cells` and so on."""

    _kind: ClassVar[str]
    _handle: Any

    def _call(self, name: str, *arguments: Any) -> Any:
        if self._handle == ffi.NULL:
            raise RuntimeFailure("the session is closed")
        return getattr(lib, f"ot_{self._kind}_{name}")(self._handle, *arguments)

    def _array(self, name: str, struct: str) -> Any:
        count = self._call(name, ffi.NULL, 0)
        out = ffi.new(f"{struct}[]", count)
        self._call(name, out, count)
        return out

    def maintain(self, limit: int = 0) -> Any:
        """Retention and relocation when they are due; an `ot_maintenance`."""
        out = ffi.new("ot_maintenance *")
        check(self._call("maintain", limit, out))
        return out

    def save(self) -> NDArray[np.uint8]:
        """Everything that `restore` needs, as bytes. REQUIRES: no unfinished unit or answer."""
        size = ffi.new("size_t *")
        check(self._call("save", ffi.NULL, 0, size))
        out = np.empty(size[0], dtype=np.uint8)
        check(self._call("save", ffi.from_buffer("uint8_t[]", out), out.size, size))
        return out

    def restore(self, state: bytes | memoryview | NDArray[np.uint8]) -> None:
        """Take what `save` gave in place of what there is. Raises SessionFileError, and changes nothing, when it is
        damaged or of another model."""
        data = ffi.from_buffer("uint8_t[]", state)
        check(self._call("restore", data, len(data)))

    def snapshot(self) -> Any:
        """Counts and layout as they are now; an `ot_snapshot`."""
        out = ffi.new("ot_snapshot *")
        check(self._call("snapshot", out))
        return out

    def cells(self) -> NDArray[np.uint8]:
        """Class of every cell (OT_CELL_*)."""
        out = np.empty(self._call("cells", ffi.NULL, 0), dtype=np.uint8)
        self._call("cells", ffi.from_buffer("uint8_t[]", out), out.size)
        return out

    def scores(self) -> NDArray[np.float64]:
        """Attention that each token has received, in history order; zeros where the policy doesn't count it."""
        out = np.empty(self._call("scores", ffi.NULL, 0), dtype=np.float64)
        self._call("scores", ffi.from_buffer("double[]", out), out.size)
        return out

    def units(self) -> list[Unit]:
        """The ledger."""
        all_spans = iter(
            Span(ROLE_NAMES[s.role], s.length, s.first, s.width, bool(s.continues), s.base, s.rotations)
            for s in self._array("spans", "ot_span_info")
        )
        return [
            Unit(
                u.id,
                UNIT_KIND_NAMES[u.kind],
                bool(u.partial),
                u.tokens,
                u.start_s,
                u.end_s,
                tuple(next(all_spans) for _ in range(u.n_spans)),
                bool(u.recalled),
            )
            for u in self._array("units", "ot_unit_info")
        ]

    def tokens(self) -> NDArray[np.int64]:
        """Rows (cell, t, y, x), one a token in history order."""
        tokens = self._array("tokens", "ot_token_info")
        return np.array([(k.cell, k.t, k.y, k.x) for k in tokens], dtype=np.int64).reshape(len(tokens), 4)

    def kv_state(
        self,
        session: str,
        *,
        page_size: int,
        subblock_size: int,
        peak: int,
        kv_bytes: KvBytes | None = None,
        running: bool = False,
    ) -> KvState:
        """All of it as plain values. `peak`: the largest physical span so far."""
        now = self.snapshot()
        layout = now.layout
        active_cells = layout.active_pages * page_size
        return KvState(
            session=session,
            running=running,
            page_size=page_size,
            subblock_size=subblock_size,
            cells=now.n_cells,
            useful_cells=layout.useful_cells,
            physical_span=layout.physical_span,
            page_span=layout.page_span,
            span_ratio=span_ratio(layout),
            active_pages=layout.active_pages,
            active_subblocks=layout.active_subblocks,
            holes=layout.holes,
            largest_hole=layout.largest_hole,
            fragmentation=1 - layout.useful_cells / active_cells if active_cells else 0.0,
            classes=CellClasses(now.must_cells, now.selected_cells, now.recent_cells, now.recalled_cells),
            peak_physical_span=max(peak, layout.physical_span),
            kv_bytes=kv_bytes,
            units=tuple(
                UnitState(
                    unit.id,
                    unit.kind,
                    unit.tokens,
                    unit.partial,
                    tuple(SpanState(span.role, span.length) for span in unit.spans),
                    unit.recalled,
                )
                for unit in self.units()
            ),
            cell_map=self.cells().tobytes().translate(CELL_LETTERS).decode("ascii"),
        )


def span_ratio(layout: Any) -> float:
    """Page span ÷ useful cells of an `ot_layout_stats`."""
    return layout.page_span / layout.useful_cells if layout.useful_cells else 0.0

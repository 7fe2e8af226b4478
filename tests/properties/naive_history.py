"""A history of single tokens: where each lies and which position it has. The reference for the native one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import naive_layout
from naive_layout import Costs, Geometry, Moves, Stats, Work
from naive_policies import Rules, Token, Unit, retain

from omnitide_cli.runtime.view import Part

LARGE = 64  # tokens of a batch that takes the tiled kernel
PLACEMENTS = {"native": "native", "class-packing": "class"}  # all others: span

Position = tuple[int, int, int]  # t, y, x


@dataclass(frozen=True)
class Round:
    """What one maintenance did."""

    before_tokens: int
    freed: list[int]
    shifts: dict[int, int]  # cell -> delta
    moves: Moves
    before: Stats
    after: Stats
    layout: str  # before the moves
    dropped: int


@dataclass
class NaiveHistory:
    """The same calls as the native history."""

    rules: Rules
    planner: str
    compact: bool
    mrope: bool
    n_cells: int
    geometry: Geometry
    min_pages: int
    window: int = 0  # positions that the model was trained for; 0: no limit
    units: list[Unit] = field(default_factory=list)
    cell: dict[Token, int] = field(default_factory=dict)
    position: dict[Token, Position] = field(default_factory=dict)
    score: dict[Token, float] = field(default_factory=dict)
    next_position: int = 0
    next_id: int = 0
    head: int = 0
    placement: str = ""

    def __post_init__(self) -> None:
        self.placement = PLACEMENTS.get(self.planner, "span")

    def tokens(self) -> list[Token]:
        """In history order."""
        return [token for unit in self.units for token in unit.tokens]

    def layout(self) -> str:
        """One letter a cell."""
        cells = ["."] * self.n_cells
        for unit in self.units:
            letter = "M" if unit.kind == "system" else "S" if unit.partial else "R"
            for token in unit.tokens:
                cells[self.cell[token]] = letter
        return "".join(cells)

    def free(self) -> int:
        return self.n_cells - len(self.cell)

    # --- growth

    def append(self, kind: str, parts: Sequence[Part]) -> None:
        unit = Unit(self.next_id, kind)
        for span, part in enumerate(parts):
            unit.tokens += [Token(unit.id, span, part.role, i, part.width) for i in range(part.length)]
        self.next_id += 1
        self._settle(unit.tokens)
        self.units.append(unit)

    def grow(self, role: str) -> None:
        """One more token for the newest unit."""
        unit = self.units[-1]
        last = unit.tokens[-1]
        same = last.role == role
        token = Token(unit.id, last.span if same else last.span + 1, role, last.offset + 1 if same else 0, 0)
        self._settle([token])
        unit.tokens.append(token)

    def _settle(self, tokens: list[Token]) -> None:
        if self.placement == "native":
            cells, self.head = naive_layout.place_natively(self.layout(), len(tokens), self.head)
        else:
            cells = naive_layout.place(self.layout(), len(tokens), self.placement, self.geometry)
        self.cell.update(zip(tokens, cells, strict=True))
        positions, self.next_position = self._lay_out(tokens, self.next_position)
        self.position.update(positions)

    def _lay_out(self, tokens: list[Token], start: int) -> tuple[dict[Token, Position], int]:
        """Positions from `start` on, and the first free one behind them. Under M-RoPE a raster shares one t."""
        positions: dict[Token, Position] = {}
        following = start
        for _, group in groupby(tokens, key=lambda token: (token.unit, token.span)):
            base = following
            for token in group:
                if self.mrope and token.width:
                    row, column = divmod(token.offset, token.width)
                    positions[token] = (base, base + row, base + column)
                else:
                    positions[token] = (following, following, following)
                following = max(following, max(positions[token]) + 1)
        return positions, following

    def attend(self, scores: Sequence[float]) -> None:
        """What each token receives, in history order."""
        for token, score in zip(self.tokens(), scores, strict=True):
            self.score[token] = self.score.get(token, 0.0) + score

    # --- maintenance

    def maintain(self, limit: int, planner: str) -> Round | None:
        """One round, None when nothing is deleted. `planner`: who plans (auto's choice)."""
        rules = self.rules
        if 0 < limit < rules.high:
            rules = replace(rules, high=limit, low=min(rules.low, limit))
        before = self.tokens()
        kept = retain(self.units, rules, self.score)
        doomed = [token for unit in self.units for token in unit.tokens if token not in set(kept[unit.id])]
        if not doomed:
            return None
        freed = sorted(self.cell.pop(token) for token in doomed)
        for token in doomed:
            del self.position[token]
        self.head = min(self.head, freed[0])
        units = len(self.units)
        for unit in self.units:
            unit.partial = unit.partial or len(kept[unit.id]) < len(unit.tokens)
            unit.tokens = kept[unit.id]
        self.units = [unit for unit in self.units if unit.tokens]
        shifts = self._close_gaps() if self.compact or self._window_ends() else {}
        layout = self.layout()
        moves = naive_layout.plan(planner, layout, self.geometry, self.min_pages)
        self.cell = {token: moves.get(cell, cell) for token, cell in self.cell.items()}
        if self.planner == "auto":
            self.placement = PLACEMENTS.get(planner, "span") if planner != "native" else "span"
        return Round(
            before_tokens=len(before),
            freed=freed,
            shifts=shifts,
            moves=moves,
            before=naive_layout.stats(layout, self.geometry),
            after=naive_layout.stats(self.layout(), self.geometry),
            layout=layout,
            dropped=units - len(self.units),
        )

    def _window_ends(self) -> bool:
        """Sparse positions close up when what the cache still takes might run over the window, or half of it."""
        return self.window > 0 and self.next_position > self.window - min(self.n_cells, self.window // 2)

    def _close_gaps(self) -> dict[int, int]:
        old = self.position
        self.position, self.next_position = self._lay_out(self.tokens(), 0)
        deltas = {self.cell[token]: new[0] - old[token][0] for token, new in self.position.items()}
        return {cell: delta for cell, delta in deltas.items() if delta}

    def costs_of_plans(self, done: Round, costs: Costs) -> dict[str, float]:
        """What auto weighs: the predicted total of every planner."""
        tokens = len(self.cell)
        arriving = max(self.rules.high - tokens, 0)
        seen = {"large": 0, "small": 0, "decoded": 0}
        for unit in self.units:
            if unit.kind != "system" and not unit.partial:
                size = len(unit.tokens)
                seen["decoded" if unit.kind == "response" else "large" if size >= LARGE else "small"] += size
        total = sum(seen.values())
        work = Work(*(arriving * n / total for n in seen.values())) if total else Work(arriving, 0, 0)
        planners = ["native", "class-packing", "hole-filling", "ordered-suffix"]
        filled = naive_layout.moved(
            done.layout, naive_layout.plan("hole-filling", done.layout, self.geometry, self.min_pages)
        )
        if naive_layout.stats(filled, self.geometry).page_span > naive_layout.round_up(tokens, self.geometry.page):
            planners.append("eager")
        return {
            planner: costs.total(
                planner,
                done.layout,
                self.geometry,
                self.min_pages,
                arriving=arriving,
                work=work,
                shifted=set(done.shifts),
            )
            for planner in planners
        }

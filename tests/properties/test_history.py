"""Random histories under every policy, layout and position mode: the native one equals the naive one, whatever comes.

The invariants of docs/omnipick.md and docs/omnipage.md are checked on their own as well, so that a mistake that both
share shows.
"""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive_history import NaiveHistory, Round
from naive_layout import Costs, Geometry, Moves, Stats, plan, round_up
from naive_policies import Rules, Token

from omnitide_cli.errors import RuntimeFailure
from omnitide_cli.runtime.history import History
from omnitide_cli.runtime.native import lib, text
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.view import CELL_LETTERS, LAYOUT_NAMES, LAYOUTS, POLICIES, POSITIONS, Part

KERNEL_FLAGS = {"tiled": ("f16", "auto"), "cells": ("q8_0", "auto"), "span": ("f16", "off")}
COST_NAMES = tuple(field.name for field in fields(Costs) if field.name not in ("kernel", "threads"))

small = st.integers(1, 9)
marker = st.integers(1, 3).map(lambda n: [Part("boundary", n)])
audio = st.integers(1, 12).map(lambda n: [Part("audio", n)])
raster = st.tuples(st.integers(1, 7), st.integers(1, 7)).map(lambda wh: [Part("image", wh[0] * wh[1], wh[0])])


@st.composite
def minicpm(draw: st.DrawFn) -> list[Part]:
    """A source image and its slices, each between its own markers."""
    side = draw(st.integers(1, 5))
    parts = [Part("image-source", side * side, side)]
    for _ in range(draw(st.integers(0, 4))):
        parts += [Part("boundary", 1), Part("image", side * side, side)]
    return parts


image = st.one_of(raster, minicpm())
media = st.one_of(
    st.tuples(marker, image, marker, audio, marker),
    st.tuples(marker, image, marker),
    st.tuples(audio, marker),
    st.tuples(audio),
    st.tuples(marker),
    st.tuples(st.integers(60, 90).map(lambda n: [Part("image", n)])),  # a batch of the tiled kernel
).map(lambda groups: [part for group in groups for part in group])


class Histories(RuleBasedStateMachine):
    """Units come, answers grow, maintenance runs, on both sides alike."""

    @initialize(
        policy=st.sampled_from(["omnipick", "omnipick", "omnipick", *sorted(POLICIES)]),
        planner=st.sampled_from(["auto", "class-packing", *sorted(LAYOUTS)]),
        positions=st.sampled_from(sorted(POSITIONS)),
        mrope=st.booleans(),
        low=st.integers(1, 100),
        gap=st.integers(1, 60),
        recent_units=st.integers(0, 4),
        image_sinks=st.integers(0, 5),
        audio_sinks=st.integers(0, 5),
        text_budget=st.integers(0, 30),
        sinks=st.integers(0, 5),
        geometry=st.sampled_from([Geometry(8, 4, 16), Geometry(4, 4, 1), Geometry(16, 8, 32), Geometry(6, 2, 10)]),
        min_pages=st.integers(0, 4),
        n_cells=st.sampled_from([250, 320, 400]),
        kernel=st.sampled_from(sorted(KERNEL_FLAGS)),
        system=st.integers(0, 20),
        window=st.sampled_from([0, 0, 500, 2000]),
    )
    def create(
        self,
        *,
        policy: str,
        planner: str,
        positions: str,
        mrope: bool,
        low: int,
        gap: int,
        recent_units: int,
        image_sinks: int,
        audio_sinks: int,
        text_budget: int,
        sinks: int,
        geometry: Geometry,
        min_pages: int,
        n_cells: int,
        kernel: str,
        system: int,
        window: int,
    ) -> None:
        cache_type, flash_attn = KERNEL_FLAGS[kernel]
        options = EngineOptions(
            policy=policy,
            layout=planner,
            positions=positions,
            high_watermark=low + gap,
            low_watermark=low,
            recent_units=recent_units or None,
            image_sinks=image_sinks,
            audio_sinks=audio_sinks,
            text_budget=text_budget,
            sinks=sinks,
            min_pages=min_pages,
            cache_type=cache_type,
            flash_attn=flash_attn,
        )
        self.open = partial(
            History,
            options,
            n_cells,
            mrope=mrope,
            page_size=geometry.page,
            subblock_size=geometry.subblock,
            span_align=geometry.align,
            position_limit=window,
        )
        self.native = self.open()
        rules = Rules(policy, low + gap, low, recent_units, image_sinks, audio_sinks, text_budget, sinks)
        self.naive = NaiveHistory(rules, planner, positions == "compact", mrope, n_cells, geometry, min_pages, window)
        defaults = lib.ot_session_default_params()
        self.costs = Costs(kernel, defaults.threads, **{name: getattr(defaults.cost, name) for name in COST_NAMES})
        if system:
            self.add("system", [Part("system", system)])

    def teardown(self) -> None:
        if hasattr(self, "native"):
            self.native.close()

    # --- what comes

    @rule(parts=media)
    def see(self, parts: list[Part]) -> None:
        self.add("media", parts)

    @rule(parts=media, times=st.integers(2, 6))
    def watch(self, parts: list[Part], times: int) -> None:
        for _ in range(times):
            self.add("media", parts)

    @rule(words=small, closing=marker)
    def ask(self, words: int, closing: list[Part]) -> None:
        self.add("question", [Part("text", words), *closing])
        self.add("response", [Part("response", 1)])

    @precondition(lambda self: bool(self.naive.units) and self.naive.units[-1].kind == "response")
    @rule(tokens=st.integers(1, 20), closing=st.booleans())
    def answer(self, tokens: int, closing: bool) -> None:
        """Token by token, with maintenance in the middle where the cache is full."""
        for role in ["response"] * tokens + ["boundary"] * closing:
            if self.naive.free() == 0:
                self.maintain(self.naive.n_cells - 1)
            if self.naive.free() == 0:
                with pytest.raises(RuntimeFailure):
                    self.native.grow(role)
                return
            self.native.grow(role)
            self.naive.grow(role)

    def add(self, kind: str, parts: list[Part]) -> None:
        tokens = sum(part.length for part in parts)
        if self.naive.free() < tokens:
            with pytest.raises(RuntimeFailure):
                self.native.append(kind, parts)
            if tokens < self.naive.n_cells:
                self.maintain(self.naive.n_cells - tokens)
        if self.naive.free() >= tokens:
            assert self.native.append(kind, parts) == self.naive.next_id
            self.naive.append(kind, parts)

    @precondition(lambda self: bool(self.naive.units))
    @rule(seed=st.integers(0, 1 << 16), few=st.booleans())
    def attend(self, seed: int, few: bool) -> None:
        """Some tokens are read, many of them alike."""
        weights = np.random.default_rng(seed).integers(0, 3 if few else 1000, len(self.naive.tokens())) / 4
        self.native.attend(weights)
        self.naive.attend(weights.tolist())

    @rule()
    def save_and_resume(self) -> None:
        """Another history takes the saved one up; from here on all rules go on with it."""
        state = self.native.save()
        self.native.close()
        self.native = self.open()
        self.native.restore(state)
        assert self.native.save().tolist() == state.tolist()

    # --- maintenance

    @rule()
    def maintain_when_due(self) -> None:
        self.maintain(0)

    @rule(limit=st.integers(1, 200))
    def maintain_to_a_limit(self, limit: int) -> None:
        self.maintain(limit)

    def maintain(self, limit: int) -> None:
        naive = self.naive
        system = [(token, naive.cell[token], naive.position[token]) for token in self.system_tokens()]
        full = [list(unit.tokens) for unit in naive.units if not unit.partial]
        newest = [token for unit in naive.units for token in unit.tokens][-1:]
        window = self.recent_window()
        order = naive.tokens()

        reported = self.native.maintain(limit)
        planner = LAYOUT_NAMES[reported.planner]
        done = naive.maintain(limit, planner)
        assert bool(reported.retained) == (done is not None)
        if done is None:
            return
        self.check_report(reported, done, planner)
        self.check_plan(done, planner)

        # The must-keep prefix is intact: never deleted, never shifted, moved by eager alone.
        moves_all = planner == "eager"
        assert [(t, moves_all or naive.cell[t], naive.position[t]) for t in self.system_tokens()] == [
            (token, moves_all or cell, position) for token, cell, position in system
        ]
        # What is whole was whole; what is kept keeps its order.
        assert all(list(unit.tokens) in full for unit in naive.units if not unit.partial)
        kept = set(naive.tokens())
        assert kept.issuperset(newest)  # something is left to go on from
        # A unit is never cut by the window's edge: a recent one stays as it was, or goes whole.
        assert all(kept.issuperset(tokens) or kept.isdisjoint(tokens) for tokens in window)
        assert [token for token in order if token in kept] == naive.tokens()
        # Planning again at once deletes nothing, unless the history is still above the high watermark.
        high = min(naive.rules.high, limit or naive.rules.high)
        if len(kept) <= high:
            assert not self.native.maintain(limit).retained

    def recent_window(self) -> list[list[Token]]:
        """Tokens of the units that OmniPick's step 2 keeps whole, as far as the settings alone tell."""
        if self.naive.rules.policy != "omnipick":
            return []
        units = self.naive.units
        media = [i for i, unit in enumerate(units) if unit.kind == "media"] or [len(units) - 1]
        return [list(unit.tokens) for unit in units[media[-max(1, self.naive.rules.recent_units) :][0] :]]

    def system_tokens(self) -> list[Token]:
        first = self.naive.units[:1]
        return list(first[0].tokens) if first and first[0].kind == "system" else []

    def check_report(self, reported: Any, done: Round, planner: str) -> None:
        """The plan that is reported is the plan that was run."""
        naive = self.naive
        assert planner == naive.planner or naive.planner == "auto"
        assert (reported.before_tokens, reported.after_tokens) == (done.before_tokens, len(naive.cell))
        assert reported.dropped_units == done.dropped
        assert reported.partial_units == sum(unit.partial for unit in naive.units)
        assert reported.full_units == sum(not unit.partial for unit in naive.units)
        assert bool(reported.accepted) == bool(done.moves)
        assert text(reported.reason)
        assert (reported.rows_moved, reported.rows_shifted) == (len(done.moves), len(done.shifts))
        assert read_stats(reported.before) == done.before
        assert read_stats(reported.after) == done.after
        assert self.native.freed().tolist() == done.freed
        changed = done.moves.keys() | done.shifts.keys()
        rows = {source: (to, delta) for source, to, delta in self.native.relocated().tolist()}
        assert rows == {cell: (done.moves.get(cell, cell), done.shifts.get(cell, 0)) for cell in changed}

    def check_plan(self, done: Round, planner: str) -> None:
        naive, geometry = self.naive, self.naive.geometry
        before, after = done.before, done.after
        check_moves(done.layout, done.moves, planner)
        assert after.useful_cells == before.useful_cells == len(naive.cell)
        assert len(done.moves) <= len(plan("eager", done.layout, geometry, 0))
        assert after.active_pages <= before.active_pages
        assert after.page_span <= before.page_span
        pages = round_up(after.useful_cells, geometry.page) // geometry.page
        must_pages = len({cell // geometry.page for cell, letter in enumerate(done.layout) if letter == "M"})
        if planner == "eager":
            assert (after.active_pages, after.holes) == (pages, 0)
        elif planner == "class-packing" and done.moves and naive.n_cells % geometry.page == 0:
            assert after.active_pages <= pages + must_pages
        elif planner == "hole-filling" and "M" not in done.layout[after.useful_cells :]:
            assert after.page_span == round_up(after.useful_cells, geometry.page)
        elif planner == "ordered-suffix" and done.moves:
            assert before.page_span - after.page_span >= naive.min_pages * geometry.page
        if naive.planner == "auto":
            totals = naive.costs_of_plans(done, self.costs)
            assert totals[planner] <= min(totals.values()) * (1 + 1e-9)

    # --- what holds at all times

    @invariant()
    def the_native_history_equals_the_naive_one(self) -> None:
        if not hasattr(self, "native"):
            return
        naive, tokens = self.naive, self.naive.tokens()
        now = self.native.snapshot()
        units = self.native.units()
        assert [(u.id, u.kind, u.partial, u.tokens) for u in units] == [
            (u.id, u.kind, u.partial, len(u.tokens)) for u in naive.units
        ]
        pieces = [
            (span.role, span.width, span.first + i if span.width else None)
            for unit in units
            for span in unit.spans
            for i in range(span.length)
        ]
        assert pieces == [(token.role, token.width, token.offset if token.width else None) for token in tokens]
        rows = [(naive.cell[token], *naive.position[token]) for token in tokens]
        assert self.native.tokens().tolist() == [list(row) for row in rows]
        letters = self.native.cells().tobytes().translate(CELL_LETTERS).decode()
        assert letters == naive.layout()
        assert self.native.scores().tolist() == [naive.score.get(token, 0.0) for token in tokens]
        assert now.history_tokens == len(tokens)
        assert now.next_position == naive.next_position
        assert now.free_cells == naive.free()
        assert [now.must_cells, now.selected_cells, now.recent_cells] == [letters.count(c) for c in "MSR"]

    @invariant()
    def positions_and_cells_are_consistent(self) -> None:
        if not hasattr(self, "native"):
            return
        tokens = self.native.tokens()
        cells, times = tokens[:, 0].tolist(), tokens[:, 1].tolist()
        assert len(set(cells)) == len(cells)
        assert times == sorted(times)
        assert tokens[:, 1:].max(initial=-1) < self.native.snapshot().next_position
        places = set(map(tuple, tokens[:, 1:].tolist()))
        assert len(places) == len(cells)
        if self.naive.window and not self.naive.compact:
            assert self.naive.next_position <= self.naive.window + self.naive.n_cells
        if self.naive.compact and not self.naive.mrope:
            assert times == list(range(len(times)))


def read_stats(given: Any) -> Stats:
    return Stats(*(getattr(given, name) for name in Stats._fields))


def check_moves(layout: str, moves: Moves, planner: str) -> None:
    """No cell twice, downwards, into what is empty or has left; must-keep cells under eager alone."""
    assert len(set(moves.values())) == len(moves)
    for source, to in moves.items():
        assert to < source
        assert layout[source] != "."
        assert layout[to] == "." or to in moves
        assert layout[source] != "M" or planner == "eager"


TestHistories = Histories.TestCase


@given(
    policy=st.sampled_from(sorted(POLICIES)),
    planner=st.sampled_from(sorted(LAYOUTS)),
    stream=st.lists(media, min_size=5, max_size=30),
)
def test_the_same_history_makes_the_same_plan(policy: str, planner: str, stream: list[list[Part]]) -> None:
    def feed() -> list[list[Any]]:
        options = EngineOptions(policy=policy, layout=planner, high_watermark=120, low_watermark=70, min_pages=1)
        rounds = []
        with History(options, 3000, page_size=8, subblock_size=4, span_align=16) as history:
            for parts in stream:
                history.append("media", parts)
                done = history.maintain()
                reported = (
                    done.retained,
                    done.planner,
                    text(done.reason),
                    read_stats(done.before),
                    read_stats(done.after),
                )
                rounds.append([*reported, history.tokens().tolist(), history.relocated().tolist()])
        return rounds

    assert feed() == feed()

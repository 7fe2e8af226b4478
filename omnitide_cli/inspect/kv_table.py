"""The figures of a cache, each with what it means."""

from __future__ import annotations

from omnitide_cli.formats.words import counted, size
from omnitide_cli.runtime.kv_state import KvState, Simulation

Row = tuple[str, str, str]
"""Label, figure, meaning."""

ROLES = ("system", "boundary", "image-source", "image", "audio", "text", "response")
ROLE_WORDS = {"boundary": "markers", "image-source": "whole image", "response": "answers", "text": "questions"}


def class_rows(state: KvState) -> list[Row]:
    """The legend of the map: letter, cells, why they are still there."""
    classes = state.classes
    recalled = [("C", f"recalled {classes.recalled}", "put back for a question: they leave with the next unit")]
    return [
        ("M", f"must-keep {classes.must_keep}", "the system prompt: never evicted, never moved"),
        ("S", f"selected {classes.selected_history}", "what the policy chose to keep of older units"),
        ("R", f"recent {classes.recent_context}", "the newest units, still whole"),
        *(recalled if classes.recalled else []),
        (
            ".",
            f"empty {state.cells - state.useful_cells}",
            "free for new units; lower-case letters: a partly used subblock",
        ),
    ]


def figure_rows(state: KvState) -> list[Row]:
    """Counts are cells unless they say otherwise."""
    partial = sum(unit.partial for unit in state.units)
    pages = -(-state.cells // state.page_size)
    rows = [
        (
            "cells",
            f"{state.cells}",
            f"the cache: {counted(pages, 'page')} of {state.page_size}; one token fills one cell",
        ),
        ("useful cells", f"{state.useful_cells}", f"tokens the model can attend to: {_roles(state)}"),
        (
            "page span",
            f"{state.page_span}",
            f"up to the highest used cell, in whole pages: {state.span_ratio:.2f} times the useful cells",
        ),
        (
            "physical span",
            f"{state.physical_span}",
            f"what attention reads, as llama.cpp rounds it; at most {state.peak_physical_span} so far",
        ),
        (
            "holes",
            f"{state.holes}, largest {state.largest_hole}",
            "empty cells below the highest used one: read for nothing",
        ),
        (
            "active",
            f"{counted(state.active_pages, 'page')}, {counted(state.active_subblocks, 'subblock')}",
            f"those that hold a token; a subblock has {counted(state.subblock_size, 'cell')}",
        ),
        ("fragmentation", f"{state.fragmentation:.1%}", "share of the active pages that is empty"),
        ("history", counted(len(state.units), "unit"), f"{partial} of them partly"),
    ]
    if kv := state.kv_bytes:
        rows.insert(
            -1,
            ("memory", size(kv.allocated), f"allocated; {size(kv.span)} within the span, {size(kv.useful)} useful"),
        )
    return rows


def brief(state: KvState) -> str:
    """The figures in a sentence, for terminals with few lines."""
    return (
        f"useful {state.useful_cells} of {state.cells} cells, page span {state.page_span} ({state.span_ratio:.2f}x)"
        f", physical span {state.physical_span}, {counted(state.active_pages, 'page')} active, holes {state.holes}"
        f" (largest {state.largest_hole}), fragmentation {state.fragmentation:.1%}, {counted(len(state.units), 'unit')}"
    )


def _roles(state: KvState) -> str:
    tokens: dict[str, int] = dict.fromkeys(ROLES, 0)
    for unit in state.units:
        for span in unit.spans:
            tokens[span.role] = tokens.get(span.role, 0) + span.tokens
    return ", ".join(f"{ROLE_WORDS.get(role, role)} {count}" for role, count in tokens.items() if count) or "nothing"


def mean_rows(simulation: Simulation) -> list[Row]:
    """Means over the states right after each maintenance."""
    if simulation.mean_page_span is None:
        return [("maintenance", "none", "the history never rose above the high watermark")]
    return [
        (
            "mean page span",
            f"{simulation.mean_page_span:.0f}",
            f"right after each eviction: {simulation.mean_span_ratio:.2f} times the useful cells,"
            f" {simulation.mean_active_pages:.1f} active pages",
        ),
        (
            "migrations",
            f"{simulation.migrations}",
            f"{counted(simulation.rows_moved, 'row')} moved, {counted(simulation.rows_shifted, 'row')} shifted",
        ),
    ]

"""The 60-unit pressure run: what each layout leaves of the oracle's (eager's) compactness, and for how many moves.

The paper (section 7.2.3) reports spans of 3,840 -> 2,816 cells at 2,778 useful ones for Qwen2.5-Omni's geometry, and of
2,560 -> 2,304 at 2,095 for MiniCPM-o's. Figures are means over the states right after each maintenance.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from omnitide_cli.runtime.options import LAYOUTS, POLICIES

Omnitide = Callable[..., Any]

PAGE = 64
MIN_PAGES = 4
GEOMETRIES = {
    "qwen": ("--image", 256, "--audio", 25),
    "minicpm, 4 slices": ("--image", 64, "--slices", 4),
    "minicpm, 9 slices": ("--image", 64, "--slices", 9),
}


@pytest.fixture(params=[policy for policy in POLICIES if policy not in ("full", "h2o")])
def policy(request: pytest.FixtureRequest) -> str:
    """Every policy that forgets and needs no model for it."""
    return request.param


@pytest.fixture(params=GEOMETRIES)
def runs(request: pytest.FixtureRequest, omnitide: Omnitide, policy: str) -> dict[str, dict[str, Any]]:
    """What each layout reports, from the command line."""
    command = ("inspect-kv", "--simulate", 60, *GEOMETRIES[request.param], "--policy", policy, "--json")
    return {layout: json.loads(omnitide(*command, "--layout", layout).out) for layout in LAYOUTS}


def test_layouts_come_close_to_the_oracle(runs: dict[str, dict[str, Any]], policy: str) -> None:
    eager = runs["eager"]
    for layout in ("class-packing", "auto"):
        pages = runs[layout]["mean_active_pages"]
        assert pages <= max(1.05 * eager["mean_active_pages"], eager["mean_active_pages"] + 1), layout
    assert runs["hole-filling"]["mean_page_span"] == eager["mean_page_span"]
    # What `recent` leaves lies behind everything else: whoever packs it moves all of it.
    assert runs["hole-filling"]["rows_moved"] < eager["rows_moved"] + (policy == "recent")
    assert runs["ordered-suffix"]["mean_page_span"] <= eager["mean_page_span"] + MIN_PAGES * PAGE
    for layout, run in runs.items():
        assert run["rows_moved"] <= eager["rows_moved"], layout
        assert run["rows_shifted"] == eager["rows_shifted"], layout  # the layout has no say in what is kept
        assert run["mean_active_pages"] >= eager["mean_active_pages"], layout
    assert runs["native"]["rows_moved"] == 0

"""`inspect-kv --simulate`: the documented object, the map at any width, the errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from omnitide_cli.inspect.kv_map import map_lines
from omnitide_cli.runtime.options import LAYOUTS, EngineOptions
from omnitide_cli.runtime.simulation import Stream, simulate

Omnitide = Callable[..., Any]

PRESSURE = ("inspect-kv", "--simulate", 60, "--image", 256, "--audio", 25)

# What programs rely on: names stay, more may come.
STATE_FIELDS = [
    *("session", "running", "page_size", "subblock_size", "cells", "useful_cells", "physical_span", "page_span"),
    *("span_ratio", "active_pages", "active_subblocks", "holes", "largest_hole", "fragmentation", "classes"),
    *("peak_physical_span", "kv_bytes", "units"),
]
SIMULATION_FIELDS = [
    *("mean_page_span", "mean_span_ratio", "mean_active_pages", "rows_moved", "rows_shifted", "migrations"),
]


def test_json_is_one_object_with_the_documented_fields(omnitide: Omnitide) -> None:
    result = omnitide(*PRESSURE, "--json", "--shape", "qwen2.5-omni-3b")
    assert result.code == 0
    assert result.err == ""
    (line,) = result.out.splitlines()
    fields = json.loads(line)
    assert list(fields) == STATE_FIELDS + SIMULATION_FIELDS
    assert list(fields["classes"]) == ["must_keep", "selected_history", "recent_context", "recalled"]
    assert sum(fields["classes"].values()) == fields["useful_cells"]
    assert list(fields["units"][0]) == ["index", "kind", "tokens", "partial", "spans", "recalled"]
    assert sum(unit["tokens"] for unit in fields["units"]) == fields["useful_cells"]
    assert fields["fragmentation"] == 1 - fields["useful_cells"] / (64 * fields["active_pages"])
    assert fields["kv_bytes"]["useful"] == fields["useful_cells"] * 36 * 2 * 128 * 2 * 2


def test_without_a_shape_bytes_are_unknown(omnitide: Omnitide) -> None:
    fields = json.loads(omnitide("inspect-kv", "--simulate", 3, "--audio", 25, "--json").out)
    assert fields["kv_bytes"] is None
    assert fields["mean_page_span"] is None  # nothing was ever above the watermark
    assert [unit["tokens"] for unit in fields["units"]] == [32, 29, 29, 29]


def test_attention_can_not_be_simulated(omnitide: Omnitide) -> None:
    result = omnitide(*PRESSURE, "--policy", "h2o")
    assert (result.code, result.out) == (2, "")
    assert "--policy h2o reads attention, and a simulation has no model" in result.err
    assert "Choose another policy" in result.err


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_runs_and_is_plain_in_a_pipe(omnitide: Omnitide, layout: str) -> None:
    result = omnitide(*PRESSURE, "--layout", layout)
    assert result.code == 0
    assert "\x1b" not in result.out
    assert result.out.isascii()
    assert max(map(len, result.out.splitlines())) <= 80
    assert "page span" in result.out


def test_flags_reach_the_policy(omnitide: Omnitide) -> None:
    flags = (
        "--policy",
        "fifo",
        "--high-watermark",
        1000,
        "--low-watermark",
        700,
        "--system-tokens",
        0,
        "--boundary",
        1,
    )
    fields = json.loads(omnitide(*PRESSURE, *flags, "--page-size", 128, "--json").out)
    assert (fields["page_size"], fields["subblock_size"]) == (128, 64)
    assert fields["useful_cells"] <= 1000
    assert {unit["tokens"] for unit in fields["units"]} == {282}


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--simulate", 5), "--image"),
        (("mine", "--simulate", 5, "--image", 16), "can't be used together"),
        (("--watch", "--simulate", 5, "--image", 16), "can't be used together"),
        (("--simulate", 5, "--image", 16, "--low-watermark", 3000), "low watermark"),
        (("--simulate", 5, "--image", 1800), "low watermark"),
        (("--simulate", 0, "--image", 16), "--simulate"),
        (("--simulate", 100_000_000, "--image", 256, "--policy", "full"), "too large to simulate"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(omnitide: Omnitide, arguments: tuple[object, ...], part: str) -> None:
    result = omnitide("inspect-kv", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert part in result.err


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("page_size", [1, 3, 64, 256])
def test_the_map_shows_every_page_at_every_width(width: int, page_size: int) -> None:
    state = simulate(EngineOptions(layout="class-packing"), Stream(30, 256, 25), page_size=page_size).state
    lines = map_lines(state, width)
    assert max(len(line.plain) for line in lines) <= width
    cells = "".join(line.plain.split(maxsplit=1)[1] for line in lines).replace(" ", "")
    pages = len(state.cell_map) // page_size
    assert len(cells) % pages == 0
    pieces = len(cells) // pages
    for page in range(pages):
        shown = cells[page * pieces : (page + 1) * pieces]
        held = state.cell_map[page * page_size : (page + 1) * page_size]
        assert (shown.isupper() and "." not in shown) == ("." not in held)
        assert set(shown) == {"."} if set(held) == {"."} else set(shown) != {"."}


def test_the_map_has_colours_where_they_are_wanted() -> None:
    state = simulate(EngineOptions(), Stream(5, 256, 25)).state
    colourful = Console(color_system="standard", force_terminal=True, width=80)
    plain = Console(color_system=None, force_terminal=True, width=80)
    for console in (colourful, plain):
        with console.capture() as capture:
            console.print(map_lines(state, 80)[0])
        assert ("\x1b[" in capture.get()) == (console is colourful)


def test_a_picture_is_svg_and_nothing_else(omnitide: Omnitide, tmp_path: Path) -> None:
    done = omnitide("inspect-kv", "--simulate", "9", "--image", "16", "--svg", tmp_path / "a.png")
    assert (done.code, done.out) == (2, "")
    assert "only SVG files are written" in done.err
    assert f"--svg {tmp_path / 'a.svg'}" in done.err
    assert list(tmp_path.glob("a.*")) == []
    assert omnitide("inspect-kv", "--simulate", "9", "--image", "16", "--svg", tmp_path / "A.SVG").code == 0


def test_half_an_hour_is_a_sawtooth_between_the_watermarks(omnitide: Omnitide, tmp_path: Path) -> None:
    size = ["--simulate", "1800", "--image", "16", "--audio", "25"]
    done = omnitide("inspect-kv", *size, "--history", "--svg", tmp_path / "h.svg")
    rows = done.out.splitlines()
    assert sum("++++++++++" in row for row in rows) >= 2, "between the low and the high watermark"
    assert [row[:4] for row in rows if "____" in row] == ["2500", "1800"]
    assert "+ between the least and the most" in done.out
    assert (tmp_path / "h.svg").read_text().count("▒") > 100


def test_a_damaged_file_that_is_looked_at_needs_no_resume(omnitide: Omnitide, tmp_path: Path) -> None:
    path = tmp_path / "broken.tide"
    path.write_bytes(b"TIDE\r\n\x1a\n" + bytes(100))
    looked, resumed = omnitide("inspect-kv", path), omnitide("watch", "x.mp4", "--resume", path)
    assert looked.code == resumed.code == 3
    assert "--resume" not in looked.err
    assert "start afresh without --resume" in resumed.err


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ("auto", "which leaves the shortest span. In use before"),
        ("class-packing", "which leaves fewer active pages. In use before"),
        ("ordered-suffix", "which leaves a shorter span. In use before"),
        ("eager", "which closes all holes. In use before"),
    ],
)
def test_what_moved_is_a_sentence(omnitide: Omnitide, layout: str, words: str) -> None:
    shown = " ".join(omnitide(*PRESSURE, "--layout", layout).out.split())
    assert words in shown

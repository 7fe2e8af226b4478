"""The parts of the dashboard: chart, page map, picture, sound, and the painter that puts them on a terminal."""

from __future__ import annotations

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style

from omnitide_cli.terminal.dashboard.chart import HistoryChart, ranges, reach
from omnitide_cli.terminal.dashboard.pages import lines, pieces
from omnitide_cli.terminal.dashboard.picture import half_blocks, sound_bars, without_bars
from omnitide_cli.terminal.dashboard.state import Cells, Trace
from omnitide_cli.terminal.painter import Painter


def highs(trace: Trace, width: int, units_total: int | None) -> list[int | None]:
    return [each and each[1] for each in ranges(trace, width, units_total)]


def test_a_chart_of_a_file_has_room_for_all_of_it() -> None:
    trace = Trace()
    for tokens in (10, 20, 30):
        trace = trace.add(tokens)
    assert highs(trace, 6, 6) == [10, 20, 30, None, None, None]
    assert highs(trace, 12, 6) == [10, 10, 20, 20, 30, 30, *[None] * 6]
    assert highs(trace, 3, 6) == [20, 30, None]


def test_a_chart_of_a_stream_doubles_its_time() -> None:
    trace = Trace()
    for index in range(9):
        trace = trace.add(index)
    assert reach(trace, 8, None) == 16
    assert highs(trace, 8, None) == [1, 3, 5, 7, 8, None, None, None]


def test_a_column_of_many_units_goes_from_the_lowest_to_the_highest() -> None:
    trace = Trace()
    for index in range(4000):
        trace = trace.add(1800 + 41 * (index % 17))
    assert set(ranges(trace, 60, 4000)) == {(1800, 1800 + 41 * 16)}
    chart = HistoryChart(trace, 2500, 1800, 4000, 4000, 0.0, 1.0, 4000.0)
    drawn = Console(width=67, height=15, color_system=None)
    rows = ["".join(s.text for s in row) for row in drawn.render_lines(chart, drawn.options.update(height=15))]
    assert "▒" * 60 in rows[2]
    assert "█" * 60 in rows[-3]
    assert [row[:5].strip() for row in rows if "┄" in row] == ["2,500", "1,800"]


def test_pieces_of_the_cache_cover_each_cell_once() -> None:
    for total, page, width, height in ((2816, 64, 76, 2), (100_000, 64, 76, 2), (100, 64, 20, 1), (64, 1, 9, 3)):
        rows = lines(Cells(b"." * total, page), width, height)
        assert 1 <= len(rows) <= height
        assert all(1 <= len(begin) <= width for begin, _ in rows)
        edges = np.concatenate([np.append(begin, end[-1]) for begin, end in rows])
        assert edges[0] == 0
        assert edges[-1] == total
        assert (np.diff(edges) >= 0).all()


def test_a_piece_has_the_class_of_most_of_its_cells_and_says_how_full_it_is() -> None:
    cells = Cells(b"MMMMSSSRR.......", 4)
    (row,) = lines(cells, 4, 1)
    assert pieces(cells, *row) == (["M", "S", "R", "M"], [4, 4, 1, 0])


def test_half_blocks_keep_shape_and_colours() -> None:
    frame = np.zeros((80, 80, 3), np.uint8)
    frame[:40] = (248, 0, 0)
    rows = half_blocks(frame, 40, 10)
    assert len(rows) == 10
    assert {sum(len(segment.text) for segment in row) for row in rows} == {20}
    top, bottom = rows[0][0].style, rows[-1][0].style
    assert top == Style.parse("#f80000 on #f80000")
    assert bottom == Style.parse("#000000 on #000000")
    assert half_blocks(frame, 0, 3) == []


def test_only_black_bars_are_cut_off() -> None:
    frame = np.zeros((100, 100, 3), np.uint8)
    frame[25:75] = 9
    assert without_bars(frame, 2.0).shape == (50, 100, 3)
    assert without_bars(frame, None).shape == (100, 100, 3)
    frame[3, 3] = 1
    assert without_bars(frame, 2.0).shape == (100, 100, 3)


def test_bars_of_sound_are_its_loudness() -> None:
    sound = np.concatenate([np.ones(100), np.full(100, 10 ** (-27 / 20)), np.zeros(100)]).astype(np.float32)
    assert sound_bars(sound, 3, 2) == ["█  ", "██ "]
    assert sound_bars(np.zeros(0, np.float32), 4, 1) == ["    "]


def test_only_lines_that_changed_are_written() -> None:
    painter = Painter(None)
    first = [[Segment("one")], [Segment("two")]]
    assert "one" in painter.paint(first, None)
    again = painter.paint([[Segment("one")], [Segment("TWO")]], (1, 0))
    assert "one" not in again
    assert "\x1b[2;1HTWO" in again
    assert again.endswith("\x1b[1;2H\x1b[?25h")
    painter.forget()
    assert "one" in painter.paint(first, None)


def test_what_follows_a_character_of_doubtful_width_stands_right() -> None:
    painted = Painter(None).paint([[Segment("👩‍👩‍👧x"), Segment("│")]], None)
    assert f"\x1b[{cell_len('👩‍👩‍👧x') + 1}G│" in painted
    assert "G" not in Painter(None).paint([[Segment("─█▀ ❯"), Segment("│")]], None)

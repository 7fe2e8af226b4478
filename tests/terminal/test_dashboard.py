"""The dashboard without a terminal: events as a state, a state as a screen of exactly the right size."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment

from omnitide_cli.runtime.events import (
    Alert,
    AlertEnded,
    Answer,
    AnswerDelta,
    Migration,
    Notice,
    Retention,
    SessionStarted,
    TokenCounts,
    UnitIngested,
)
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.simulation import Stream, simulate
from omnitide_cli.terminal.dashboard.cache_page import CachePage
from omnitide_cli.terminal.dashboard.conversation import Talk
from omnitide_cli.terminal.dashboard.screen import Screen, View, header, prompt_line
from omnitide_cli.terminal.dashboard.scroll import Scroll
from omnitide_cli.terminal.dashboard.sink import DashboardSink
from omnitide_cli.terminal.dashboard.state import (
    MOST_BUCKETS,
    MOST_TALK,
    Cells,
    Exchange,
    Remark,
    State,
    Trace,
    asking,
    fold,
    remark,
)
from omnitide_cli.terminal.dashboard.upkeep import lag_words, migration_words, retention_words, speed_words, time_words
from omnitide_cli.terminal.line import Line

SESSION = SessionStarted(
    version="0.1.0",
    model="tiny",
    source="clip.mp4",
    policy="omnipick",
    layout="eager",
    positions="compact",
    high_watermark=2500,
    low_watermark=1800,
    n_ctx=2816,
    page_size=64,
    subblock_size=32,
    cache_type="f16",
    threads=2,
    flash_attn=False,
)
RETENTION = Retention(7, 2513, 1796, 717, 30, 12, 4, 0.2)
MIGRATION = Migration(7, "eager", True, "", 312, 1700, 9, (40, 29), (80, 57), (2560, 1856), (2560, 2048), 0.84)
FISH = "你看到了什么？🐟 e\u0301 👩‍👩‍👧 "


def unit(index: int, history: int = 100, **more: float) -> UnitIngested:
    """A media unit of a second."""
    counts = TokenCounts(image=16, audio=25, boundary=4, total=45)
    times = {"encode_ms": 4.0, "prefill_ms": 5.0, "maintain_ms": 1.0} | more
    return UnitIngested(index, float(index), index + 1.0, counts, history, 128, 256, **times)  # type: ignore[arg-type]


def answer(text: str, stop: str = "eos") -> Answer:
    return Answer(1.0, 0, "What?", text, 3, 5.0, 10.0, stop)


def state_after(*events: object, **more: object) -> State:
    """A state that a started session and some events lead to."""
    state = fold(State(source="clip.mp4"), SESSION)
    for event in events:
        state = fold(state, event)  # type: ignore[arg-type]
    return replace(state, **more)  # type: ignore[arg-type]


def full_state() -> State:
    """A session that has seen and said much."""
    state = state_after(*(unit(i, 45 * i) for i in range(60)), RETENTION, MIGRATION, units_total=240)
    state = remark(fold(asking(state, FISH, 60.0), answer(FISH * 9)), FISH)
    return replace(
        state,
        frame=np.random.default_rng(0).integers(0, 255, (112, 200, 3), np.uint8),
        sound=np.ones(16_000, np.float32),
        cells=Cells((b"M" * 40 + b"S" * 900 + b"R" * 700).ljust(2816, b"."), 64),
    )


FULL = full_state()


def screen_of(state: State, view: View) -> list[list[Segment]]:
    console = Console(width=view.width, height=view.height, force_terminal=True, color_system="truecolor")
    return console.render_lines(Screen(state, view), console.options.update(width=view.width, height=view.height))


def text_of(state: State, width: int, height: int, **more: object) -> list[str]:
    view = View(width, height, **more)  # type: ignore[arg-type]
    return ["".join(segment.text for segment in row) for row in screen_of(state, view)]


# --- events as a state


def test_an_answer_grows_and_ends() -> None:
    state = asking(state_after(unit(0)), "What\nis it?", 1.0)
    assert state.phase == "answering"
    state = fold(fold(state, AnswerDelta(1.0, "A re")), AnswerDelta(1.0, "d"))
    assert state.talk == (Exchange(1.0, "What is it?", "A red"),)
    state = fold(fold(state, Notice("c", "careful", "really")), answer("A red circle."))
    assert state.talk == (Exchange(1.0, "What is it?", "A red circle.", "eos"), Remark("careful. Really."))
    assert (state.phase, state.answers) == ("watching", 1)
    assert fold(state, AnswerDelta(1.0, "late")).talk == state.talk


def test_after_the_end_the_dashboard_says_so() -> None:
    sink = DashboardSink("clip.mp4")
    sink.emit(SESSION)
    sink.ended()
    assert sink.state.phase == "ended"
    sink.asking("a", 1.0)
    sink.emit(answer("b"))
    assert sink.state.phase == "ended"
    assert "the end" in text_of(sink.state, 80, 24)[-1]


def test_a_long_talk_is_bounded() -> None:
    state = State()
    for index in range(3 * MOST_TALK):
        state = remark(state, str(index))
    assert len(state.talk) == MOST_TALK
    assert state.talk[-1] == Remark(str(3 * MOST_TALK - 1), is_warning=False)


@pytest.mark.parametrize("units", [1, MOST_BUCKETS, MOST_BUCKETS + 1, 5 * MOST_BUCKETS + 3])
def test_a_trace_keeps_every_height_in_bounded_memory(units: int) -> None:
    trace = Trace()
    for index in range(units):
        trace = trace.add(index)
    assert trace.units == units
    assert len(trace.buckets) <= MOST_BUCKETS
    assert (trace.buckets[0][0], trace.buckets[-1][1]) == (0, units - 1)
    assert trace.raised(9999).buckets[-1][1] == 9999


def test_the_cells_are_looked_at_but_not_after_every_unit() -> None:
    looks = []
    sink = DashboardSink("clip.mp4")
    sink.look = lambda: looks.append(1) or b"MR.."
    sink.emit(SESSION)
    for index in range(50):
        sink.emit(unit(index))
    assert 1 <= len(looks) < 25
    assert sink.state.cells == Cells(b"MR..", 64)


def test_a_state_is_the_same_object_until_something_happens() -> None:
    sink = DashboardSink("clip.mp4")
    before = sink.state
    assert sink.state is before
    sink.emit(SESSION)
    after = sink.state
    assert after is not before
    assert sink.state is after


def test_of_pictures_that_were_not_shown_only_the_newest_is_kept() -> None:
    class Seen:
        audio = None
        start, end = 0.0, 1.0

        def __init__(self) -> None:
            self.frame = np.zeros((2, 2, 3), np.uint8)

    sink, kept = DashboardSink("clip.mp4"), []
    for _ in range(9):
        seen = Seen()
        sink.watching(seen)
        kept.append(weakref.ref(seen))
        del seen
    assert [ref() is not None for ref in kept] == [False] * 8 + [True]
    assert sink.state.frame is kept[-1]().frame


# --- words


def test_words() -> None:
    assert retention_words(RETENTION) == "kept 1,796 of 2,513 tokens: 30 units whole, 12 in part, 4 dropped"
    assert migration_words(MIGRATION) == "moved 312 rows, span 2,560 → 1,856, 0.8 ms"
    assert migration_words(replace(MIGRATION, accepted=False, reason="too dear")) == "moved nothing: too dear"
    assert migration_words(replace(MIGRATION, rows_moved=0)) == "shifted 1,700 rows in place, span 1,856, 0.8 ms"
    state = state_after(unit(0), units_total=90)
    assert (speed_words(state), time_words(state), lag_words(state)) == ("100× real time", "0:01 / 1:30", "")
    slow = state_after(unit(0, prefill_ms=395.0, lag_ms=2300.0), dropped_frames=3)
    assert (speed_words(slow), time_words(slow)) == ("2.5× real time", "0:01")
    assert lag_words(slow) == "2.3 s behind, 3 frames dropped"


# --- a state as a screen


@pytest.mark.parametrize("colours", [True, False])
@pytest.mark.parametrize("state", [State(source="clip.mp4", model=FISH), state_after(), FULL], ids=["new", "0", "full"])
def test_every_row_is_exactly_as_wide_as_the_terminal(state: State, colours: bool) -> None:
    for width in (*range(20, 130, 7), 200):
        for height in (1, 2, 3, 5, 8, 11, 12, 13, 20, 21, 22, 24, 33, 60):
            rows = screen_of(state, View(width, height, line=Line(FISH, 3), colours=colours, pictures=colours))
            assert len(rows) == height
            assert {sum(segment.cell_length for segment in row) for row in rows} == {width}, (width, height)


def test_without_colours_there_are_none() -> None:
    rows = screen_of(FULL, View(80, 24, colours=False, pictures=False))
    map_row = next(row for row in rows if "RRR" in "".join(segment.text for segment in row))
    assert not any(segment.style and segment.style.color for segment in map_row)
    assert not any("▀" in segment.text for row in rows for segment in row)


def test_what_is_shown_at_80_by_24() -> None:
    text = "\n".join(text_of(FULL, 80, 24))
    for part in (
        "clip.mp4 · tiny",
        "1:00 / 4:00",
        "100× real time",
        "2,500 ┄",
        "1,800 ┄",
        "▀▀▀",
        "kept 1,796 of 2,513",
    ):
        assert part in text
    assert "moved 312 rows" in text
    assert "你看到了什么？🐟" in text


def test_loading_shows_how_far() -> None:
    sink = DashboardSink("clip.mp4")
    sink.loading("Tiny 3B", 0.42)
    rows = text_of(sink.state, 60, 12)
    assert any("loading Tiny 3B" in row for row in rows)
    assert any("42%" in row for row in rows)
    assert any(row.count("━") == 40 for row in rows)


def test_neither_a_source_nor_a_model_drives_the_terminal() -> None:
    state = remark(asking(State(source="a\x1b[2J.mp4", model="m\x07", session=SESSION), "q\x1b", 1.0), "r\x9b")
    assert not any(set("\x1b\x07\x9b") & set(row) for row in text_of(state, 80, 24))


@given(st.text(max_size=60), st.integers(0, 60), st.integers(4, 60))
@settings(max_examples=300)
def test_the_cursor_of_a_long_line_stays_on_the_screen(text: str, cursor: int, width: int) -> None:
    line = Line().insert(text)
    line = replace(line, cursor=min(cursor, len(line.text)))
    shown, column = prompt_line(View(width, 1, line=line), State())
    assert 2 <= column <= width - 1
    assert shown.cell_len <= width or not line.text  # the hint is cut where it is drawn


def test_the_header_gives_up_words_from_the_right() -> None:
    state = replace(FULL, source="a-rather-long-name.mp4")
    assert "1:00 / 4:00 · 100× real time" in header(state, 80).plain
    assert "1:00 / 4:00 " in header(state, 30).plain
    assert header(state, 20).plain.endswith(" 1:00 ")
    for width in range(4, 120):
        assert header(state, width).cell_len <= max(width, 1) + 1


def test_old_talk_can_be_scrolled_to() -> None:
    talk = tuple(Exchange(float(i), f"q{i}", f"a{i}", "eos") for i in range(9))
    console = Console(width=60)
    lines, has_earlier = Talk(talk, Scroll(6)).window(console, 60, 4)
    assert [line.plain for line in lines] == ["0:04 q4", "     a4", "0:05 q5", "     a5"]
    assert has_earlier
    spaced = [line.plain for line in Talk(talk[:2], spaced=True).window(console, 60, 9)[0]]
    assert spaced == ["0:00 q0", "     a0", "", "0:01 q1", "     a1"]


def test_a_long_answer_is_scrolled_by_lines_and_never_beyond_its_beginning() -> None:
    talk = (Exchange(1.0, "why?", "because " * 40, "eos"),)
    scroll = Scroll()
    console = Console(width=40)
    lines, has_earlier = Talk(talk, scroll).window(console, 40, 5)
    assert (len(lines), has_earlier, scroll.page) == (5, True, 5)
    for _ in range(9):
        scroll.by_page(1)
        lines, has_earlier = Talk(talk, scroll).window(console, 40, 5)
    assert (lines[0].plain, has_earlier) == ("0:01 why?", False)
    first = scroll.lines
    scroll.by_page(-1)
    assert scroll.lines == first - 4, "one line stays in sight"
    for _ in range(9):
        scroll.by_page(-1)
    assert scroll.lines == 0


def test_a_talk_says_where_there_is_more() -> None:
    talk = tuple(Exchange(float(i), f"q{i}", f"a{i}", "eos") for i in range(20))
    state = replace(FULL, talk=talk)
    assert "PgUp: earlier" in "\n".join(text_of(state, 80, 30))
    assert "9 lines below: PgDn" in "\n".join(text_of(state, 80, 30, scroll=Scroll(9)))
    assert "PgUp: earlier" not in "\n".join(text_of(replace(FULL, talk=talk[:1]), 80, 30))


def test_the_cache_can_be_scrolled_where_it_does_not_fit() -> None:
    stream = Stream(60, 16, 25, 0, 32, 4)
    snapshot = simulate(EngineOptions(), stream, page_size=64, bytes_per_cell=0).last
    scroll = Scroll()
    console = Console(width=40, height=13)

    def rows() -> list[str]:
        drawn = console.render_lines(CachePage(snapshot, scroll), console.options.update(height=13))
        return ["".join(segment.text for segment in row).rstrip() for row in drawn]

    first = rows()
    assert first[-1].startswith("1–12 of ")
    seen = set(first[:-1])
    for _ in range(20):
        scroll.by_page(1)
        seen |= set(rows()[:-1])
    assert any(row.startswith("Last move:") for row in seen)
    assert rows() == rows(), "it ends at its end"


def test_a_live_stream_is_not_said_to_be_faster_than_it_is() -> None:
    state = state_after(unit(0, prefill_ms=2.0))
    assert "real time" in speed_words(state)
    live = replace(state, is_live=True)
    assert speed_words(live) == ""
    assert "real time" not in header(live, 80).plain


@pytest.mark.parametrize(
    ("stop", "sign"), [("", "▌"), ("interrupted", "(interrupted)"), ("length", "(cut off: too long)")]
)
def test_how_an_answer_ended_is_said(stop: str, sign: str) -> None:
    line = Talk((Exchange(1.0, "q", "word", stop),)).window(Console(width=60), 60, 5)[0][-1]
    assert line.plain == f"     word{'' if not stop else ' '}{sign}"


def test_a_resumed_stream_ends_where_it_would_have_ended() -> None:
    state = fold(State(units_total=53), unit(44))
    assert (state.unit and state.unit.end, state.end_s) == (45.0, 53.0)
    assert fold(state, unit(45)).end_s == 53.0


def test_alerts_are_shown_until_they_are_over() -> None:
    fox = Alert("fox", "Is there a fox?", 5.0, 4.0, 0.97, "A fox eats.", 4)
    state = state_after(SESSION, unit(0), fox, replace(fox, rule="door"))
    assert (state.alerts, state.active) == (2, ("fox", "door"))
    for width, height in ((140, 40), (80, 24)):
        rows = text_of(state, width, height)
        assert "‼ fox, door" in rows[0]
        assert any("‼ 0:05 fox: A fox eats. (97 %)" in row for row in rows)
    assert any("2, now: fox, door" in row for row in text_of(state, 140, 40))
    assert "‼ 2 alerts" in text_of(state, 30, 10)[0]
    over = fold(fold(state, AlertEnded("fox", 9.0, 4.0, 0.1, 0.97)), AlertEnded("door", 9.0, 4.0, 0.1, 0.97))
    assert over.active == ()
    assert "‼" not in text_of(over, 80, 24)[0]
    assert any("fox: over after 5 s" in row for row in text_of(over, 80, 24))

"""What people see of a session."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from omnitide_cli.errors import ModelError
from omnitide_cli.formats.status import StatusLine
from omnitide_cli.formats.words import counted, error_code, one_line, size, with_hint
from omnitide_cli.runtime.events import (
    Alert,
    AlertEnded,
    Answer,
    AnswerDelta,
    KvBytes,
    Notice,
    RuleTotals,
    Summary,
)
from omnitide_cli.terminal.plain import Detail, PlainSink
from omnitide_cli.terminal.summary import summary_lines, summary_rows
from omnitide_cli.times import clock

SUMMARY = Summary(
    units=90,
    media_s=90.0,
    stream_loop_s=30.0,
    answers=1,
    history_tokens=1800,
    peak_history_tokens=2540,
    page_span=1856,
    physical_span=2048,
    peak_physical_span=2560,
    kv_bytes=KvBytes(20_000_000, 10_000_000, 9_000_000),
    retentions=2,
    peak_rss_bytes=210_000_000,
)


def answer(text: str, stop: str = "eos") -> Answer:
    return Answer(at=75.0, unit=74, question="What\nis it?", text=text, tokens=3, ttft_ms=1, tokens_per_s=9, stop=stop)


def streams(encoding: str = "utf-8") -> tuple[io.TextIOWrapper, io.TextIOWrapper]:
    return tuple(io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace") for _ in range(2))  # type: ignore[return-value]


def text_of(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode(stream.encoding)


def sink_on(out: io.TextIOWrapper, err: io.TextIOWrapper, detail: Detail = "normal") -> PlainSink:
    return PlainSink(out, err, StatusLine(err), detail=detail)


def test_in_a_pipe_an_answer_is_written_once_whole() -> None:
    out, err = streams()
    sink = sink_on(out, err)
    sink.asking("What\nis it?", 75.0)
    sink.emit(AnswerDelta(75.0, "A red"))
    assert text_of(out) == ""
    sink.emit(answer(" A red circle. "))
    assert text_of(out) == "[1:15] What is it?\nA red circle.\n"
    assert text_of(err) == ""


def test_notices_go_to_standard_error_unless_quiet() -> None:
    out, err = streams()
    sink_on(out, err).emit(Notice("c", "the clip is cut off", "copy it again"))
    assert (text_of(out), text_of(err)) == ("", "warning: the clip is cut off. Copy it again.\n")
    out, err = streams()
    sink_on(out, err, "quiet").emit(Notice("c", "the clip is cut off", "copy it again"))
    assert text_of(err) == ""


def test_an_answer_that_was_cut_says_so() -> None:
    out, err = streams()
    sink_on(out, err).emit(answer("A red", stop="length"))
    assert "cut off at 3 tokens" in text_of(err)


def test_an_interrupted_answer_is_written_as_far_as_it_came() -> None:
    out, err = streams()
    sink_on(out, err).emit(answer("", stop="interrupted"))
    assert text_of(out) == ""
    sink_on(out, err).emit(answer("A", stop="interrupted"))
    assert text_of(out) == "[1:15] What is it?\nA\n"


def test_a_model_cannot_drive_the_terminal() -> None:
    out, err = streams()
    sink = sink_on(out, err)
    sink.emit(answer("A \x1b[2Jcircle\x07\x9b\n\tand a square"))
    sink.emit(Notice("c", "clip\x1b]0;x\x07.mp4 is cut off"))
    assert text_of(out) == "[1:15] What is it?\nA ?[2Jcircle??\n\tand a square\n"
    assert text_of(err) == "warning: clip?]0;x?.mp4 is cut off.\n"


def test_the_summary_is_a_table_on_standard_error() -> None:
    out, err = streams()
    sink_on(out, err, detail="verbose").emit(SUMMARY)
    table = text_of(err)
    assert text_of(out) == ""
    for part in (
        "1:30 in 90 units",
        "30.00 s, 3.0x real time",
        "2540",
        "2560",
        "2 rounds",
        "cache 20.0 MB",
        "210.0 MB",
    ):
        assert part in table
    assert table.isascii()


def test_the_summary_is_three_lines_unless_more_is_wanted_or_something_was_lost() -> None:
    out, err = streams()
    sink_on(out, err).emit(SUMMARY)
    lines = text_of(err).splitlines()
    assert [line.split()[0] for line in lines] == ["media", "history", "memory"]
    assert "1:30 in 90 units, 30.0 s of work (3.0x real time)" in lines[0]
    lost = replace(SUMMARY, dropped_frames=3, lost_sound_s=0.5)
    text = "\n".join(summary_lines(None, lost, 80, in_full=False, is_live=True))
    assert "3 frames" in text
    assert "0.50 s of sound" in text
    assert "real time" not in text


@pytest.mark.parametrize("width", [22, 40, 80, 200])
def test_the_summary_wraps_in_a_narrow_terminal_and_loses_nothing(width: int) -> None:
    lines = summary_lines(None, SUMMARY, width, in_full=True)
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    assert "2540" in "".join(lines)
    assert len(summary_lines(None, SUMMARY, None, in_full=True)) == len(summary_rows(None, SUMMARY))


def test_in_ascii_every_character_is_shown_or_replaced() -> None:
    out, err = streams("ascii")
    sink = sink_on(out, err)
    sink.emit(answer("一条鱼 🐟 swims"))
    sink.emit(SUMMARY)
    assert text_of(out) == "[1:15] What is it?\n??? ? swims\n"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (8.99, "0:08"), (75, "1:15"), (3599, "59:59"), (3723, "1:02:03")]
)
def test_clock(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1200, "1.2 kB"), (2_104_931_648, "2.1 GB"), (10**16, "10000.0 TB")]
)
def test_size(count: int, text: str) -> None:
    assert size(count) == text


def test_words() -> None:
    assert (counted(1, "unit"), counted(0, "unit")) == ("1 unit", "0 units")
    assert one_line(" a\n  b ") == "a b"
    assert with_hint("it broke.", "mend it") == "it broke. Mend it."
    assert with_hint("it broke", "") == "it broke."
    assert with_hint("it broke", "is it whole?") == "it broke. Is it whole?"
    assert error_code(ModelError("m")) == "model-error"


def test_a_live_answer_has_its_time_of_day_beside_the_media_time() -> None:
    out, err = streams()
    sink = PlainSink(out, err, StatusLine(err))
    sink.emit(replace(answer("A fish."), wall="2026-03-01T14:03:22.125+01:00"))
    assert text_of(out) == "[1:15 14:03:22] What is it?\nA fish.\n"


# --- alerts

FOX = Alert("fox", "Is there a fox?", 75.0, 74.0, 0.996, "A fox\neats.\x1b[2J", 74)
OVER = AlertEnded("fox", 87.0, 74.0, 0.1, 0.97)


def test_alerts_are_answers_in_a_pipe_and_their_end_a_remark() -> None:
    out, err = streams()
    sink = sink_on(out, err)
    sink.emit(FOX)
    sink.emit(OVER)
    assert text_of(out) == "[1:15] ALERT fox: A fox eats.?[2J (99 %)\n"
    assert text_of(err) == "[1:27] fox: over after 13 s\n"
    out, err = streams()
    quiet = sink_on(out, err, "quiet")
    quiet.emit(replace(FOX, rule="Is it?", text=""))
    quiet.emit(OVER)
    assert (text_of(out), text_of(err)) == ("[1:15] ALERT Is it? (99 %)\n", "")


@pytest.mark.parametrize(("no_colour", "coloured"), [("", True), ("1", False)])
def test_a_terminal_rings_and_shows_an_alert_in_red(
    monkeypatch: pytest.MonkeyPatch, no_colour: str, coloured: bool
) -> None:
    monkeypatch.setattr("omnitide_cli.terminal.plain.is_capable", lambda stream: True)
    monkeypatch.setenv("NO_COLOR", no_colour)
    out, err = streams()
    sink_on(out, err).emit(FOX)
    assert text_of(out).startswith("\a[1:15] ")
    assert ("\x1b[1;31mALERT" in text_of(out)) == coloured
    assert text_of(out).count("\x1b") == (2 if coloured else 0)


def test_the_summary_names_rules_that_tell_nothing() -> None:
    totals = RuleTotals("fox", "Is there a fox?", 310, 0, 0, 0.0, 0.01, 0.034, 0.9, 1.0, "never")
    others = [replace(totals, rule="door", fired=2, verdict="always"), replace(totals, rule="x", verdict="neither")]
    told = replace(SUMMARY, alerts=(totals, *others, replace(totals, rule="y", asked=1, fired=1, verdict="")))
    for full in (False, True):
        text = "\n".join(summary_lines(None, told, None, in_full=full))
        assert "fox: 0 alerts in 310 checks; it never said yes: at most 3 %" in text
        assert "door: 2 alerts in 310 checks; it says yes to nearly everything" in text
        assert "x: 0 alerts in 310 checks; the model answers it with neither yes nor no" in text
        assert "y: 1 alert in 1 check\n" in text

"""Transcripts that players and programs can read, whatever happens to the process, the disk and the file before."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from omnitide_cli.errors import UsageError
from omnitide_cli.formats.transcript import Existing, TranscriptSink, open_transcripts
from omnitide_cli.runtime.events import Alert, Answer, AnswerDelta, Event, Notice, SessionStarted

SESSION = SessionStarted(
    version="0.1.0",
    model="m",
    source="s",
    policy="omnipick",
    layout="eager",
    positions="compact",
    high_watermark=2500,
    low_watermark=1800,
    n_ctx=4096,
    page_size=64,
    subblock_size=32,
    cache_type="f16",
    threads=2,
    flash_attn=True,
)
FRESH = Existing()
GO_ON = Existing(goes_on=True)
SUFFIXES = [".jsonl", ".vtt", ".srt"]


def open_one(path: Path, existing: Existing = FRESH, told: list[Event] | None = None) -> TranscriptSink:
    """A sink as a session has it."""
    (sink,) = open_transcripts([path], existing, (told if told is not None else []).append)
    return sink


def say(sink: TranscriptSink, at: float, text: str, question: str = "Q?") -> None:
    sink.asking(question, at)
    sink.emit(AnswerDelta(at, text))
    sink.emit(Answer(at=at, unit=0, question=question, text=text, tokens=1, ttft_ms=1.0, tokens_per_s=1.0, stop="eos"))


def transcript(
    path: Path, *answers: tuple[float, str], existing: Existing = FRESH, resumed_at: float | None = None
) -> str:
    """The file after these answers."""
    sink = open_one(path, existing)
    sink.emit(replace(SESSION, resumed_at=resumed_at))
    for at, text in answers:
        say(sink, at, text)
    sink.close()
    return path.read_text("utf-8")


def starts(text: str) -> list[str]:
    return re.findall(r"^(\d\d:\d\d:\d\d.\d{3}) -->", text, re.MULTILINE)


def spans(text: str) -> list[tuple[str, str]]:
    return re.findall(r"00:00:(\S+) --> 00:00:(\S+)", text)


def test_jsonl_holds_the_answers_alone(tmp_path: Path) -> None:
    lines = transcript(tmp_path / "a.jsonl", (1, "grün"), (2, "b")).splitlines()
    assert [json.loads(line)["text"] for line in lines] == ["grün", "b"]
    assert json.loads(lines[0])["type"] == "answer"


def test_srt_shows_an_answer_until_the_next_or_for_some_seconds(tmp_path: Path) -> None:
    assert transcript(tmp_path / "a.srt", (1, "a"), (3.5, "b"), (3661.25, "c")) == (
        "1\n00:00:01,000 --> 00:00:03,500\nQ?\na\n\n"
        "2\n00:00:03,500 --> 00:00:11,500\nQ?\nb\n\n"
        "3\n01:01:01,250 --> 01:01:09,250\nQ?\nc\n"
    )


def test_vtt_escapes_and_has_no_empty_line_within_a_cue(tmp_path: Path) -> None:
    assert transcript(tmp_path / "a.vtt", (1, "1 < 2 & \n\n3 --> 4")) == (
        "WEBVTT\n\n00:00:01.000 --> 00:00:09.000\nQ?\n1 &lt; 2 &amp; 3 --&gt; 4\n"
    )


def test_answers_at_one_moment_share_a_cue(tmp_path: Path) -> None:
    assert transcript(tmp_path / "a.vtt", (1, "a"), (1, "b")).count("-->") == 1


def test_a_session_without_answers_leaves_a_valid_file(tmp_path: Path) -> None:
    assert transcript(tmp_path / "a.vtt") == "WEBVTT\n"


def test_a_session_that_never_starts_leaves_none(tmp_path: Path) -> None:
    open_one(tmp_path / "a.vtt").close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_older_file_is_refused_and_replaced_where_that_is_asked_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    before = transcript(path, (1, "older"))
    with pytest.raises(UsageError, match="already exists") as error:
        open_one(path)
    assert "--overwrite" in error.value.hint
    sink = open_one(path, Existing(replaces=True))
    sink.close()
    assert path.read_text() == before, "a session that never starts costs nothing"
    assert "older" not in transcript(path, (1, "newer"), existing=Existing(replaces=True))
    path.write_text("something else\n")
    with pytest.raises(UsageError, match=r"can't be continued"):
        open_one(path, GO_ON)
    assert path.read_text() == "something else\n"


def test_an_empty_file_is_free(tmp_path: Path) -> None:
    (tmp_path / "a.vtt").touch()
    assert transcript(tmp_path / "a.vtt", (1, "a")).startswith("WEBVTT\n\n00:00:01.000")


def test_an_unknown_ending_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown file extension"):
        open_one(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_resumed_session_goes_on_as_if_nothing_had_been(tmp_path: Path, suffix: str) -> None:
    answers = [(2.0, "grün"), (4.0, "b"), (6.0, "c"), (8.0, "d")]
    whole = transcript(tmp_path / f"whole{suffix}", *answers)
    halves = tmp_path / f"halves{suffix}"
    transcript(halves, *answers[:2], resumed_at=None)
    assert transcript(halves, *answers[2:], existing=GO_ON, resumed_at=4.0) == whole
    assert transcript(halves, existing=GO_ON, resumed_at=8.0) == whole


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_answers_after_the_checkpoint_stay_in_their_order(tmp_path: Path, suffix: str) -> None:
    """Killed at 9 s, resumed from 4 s: what is asked again stands once, what was typed stays."""
    path = tmp_path / f"a{suffix}"
    sink = open_one(path)
    sink.emit(SESSION)
    for at, text in ((2, "a"), (4, "b"), (6, "c"), (7, "typed"), (8, "d")):
        say(sink, at, text)
    os.close(sink._descriptor)  # as a kill does
    text = transcript(path, (6, "c"), (8, "another d"), (10, "e"), existing=GO_ON, resumed_at=4.0)
    for said in ("a", "b", "c", "typed", "d", "another d", "e"):
        assert len(re.findall(rf'^(.*"text": ")?{said}(".*)?$', text, re.MULTILINE)) == 1
    if suffix != ".jsonl":
        assert [start[6:8] for start in starts(text)] == ["02", "04", "06", "07", "08", "10"]
    if suffix == ".srt":
        assert re.findall(r"^(\d+)$", text, re.MULTILINE) == ["1", "2", "3", "4", "5", "6"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_answer_is_in_the_file_at_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    sink = open_one(path)
    sink.emit(SESSION)
    for at in range(1, 9):
        say(sink, at, f"answer {at}")
        text = path.read_text()
        assert all(f"answer {number}" in text for number in range(1, at + 1))
        assert suffix == ".jsonl" or len(starts(text)) == at
    sink.close()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_cut_off_anywhere_is_gone_on_with(tmp_path: Path, suffix: str) -> None:
    whole = transcript(tmp_path / f"whole{suffix}", (2, "first"), (4, "second"))
    least = whole.index("\n" if suffix == ".jsonl" else "first") + len("first")
    for length in range(least, len(whole)):
        path = tmp_path / f"cut{suffix}"
        path.write_text(whole[:length])
        text = transcript(path, (6, "third"), existing=GO_ON, resumed_at=4.0)
        if suffix == ".jsonl":
            assert all(json.loads(line) for line in text.split("\n")[:-1])
        else:
            blocks = text.rstrip("\n").split("\n\n")[suffix == ".vtt" :]
            assert all(re.match(r"(\d+\n)?\S+ --> \S+\nQ", block) for block in blocks), text
        assert "third" in text
        assert "first" in text


def test_crlf_and_notes_of_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_bytes("\ufeff1\r\n00:00:01,000 --> 00:00:09,000\r\nQ?\r\na\r\n\r\n".encode())
    text = transcript(path, (3, "b"), existing=GO_ON, resumed_at=2.0)
    assert starts(text) == ["00:00:01,000", "00:00:03,000"]
    assert "\r" not in text
    path = tmp_path / "a.vtt"
    path.write_text("WEBVTT - mine\nKind: captions\n\nNOTE by hand\n\n00:01.000 --> 00:02.000\nx\n\nNOTE end\n")
    text = transcript(path, (3, "b"), existing=GO_ON, resumed_at=2.0)
    assert text.startswith("WEBVTT - mine\nKind: captions\n\nNOTE by hand\n\n00:01.000 --> 00:02.000\nx\n\nNOTE end\n")
    assert "00:00:03.000 --> 00:00:11.000\nQ?\nb\n" in text


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_second_session_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    sink = open_one(path)
    for existing in (Existing(), GO_ON, Existing(replaces=True)):
        with pytest.raises(UsageError, match="another session"):
            open_one(path, existing)
    (tmp_path / f"link{suffix}").symlink_to(path)
    with pytest.raises(UsageError, match="another session"):
        open_one(tmp_path / f"link{suffix}")
    sink.emit(SESSION)
    say(sink, 1, "a")
    sink.close()
    open_one(path, GO_ON).close()


def test_several_are_written_and_one_named_twice_once(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.vtt", "b.jsonl", "c.srt", "a.vtt")]
    sinks = open_transcripts(paths, Existing(), [].append)
    assert len(sinks) == 3
    for sink in sinks:
        sink.emit(SESSION)
        say(sink, 1, "said")
        sink.close()
    assert all("said" in path.read_text() for path in paths)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ([], [("01.000", "12.000")]),
        ([1.0], [("01.000", "02.000"), ("02.000", "12.000")]),
        ([3.5], [("03.500", "04.500"), ("03.750", "12.000")]),
    ],
)
@pytest.mark.parametrize("asked_before_the_end", [False, True])
def test_a_cue_at_the_end_begins_before_it(
    tmp_path: Path, before: list[float], expected: list[tuple[str, str]], asked_before_the_end: bool
) -> None:
    sink = open_one(tmp_path / "a.vtt")
    sink.emit(SESSION)
    for at in before:
        say(sink, at, "early")
    if asked_before_the_end:
        say(sink, 4.0, "last")
    sink.media_over(4.0)
    if not asked_before_the_end:
        say(sink, 4.0, "last")
    say(sink, 4.0, "one more")
    sink.close()
    found = spans((tmp_path / "a.vtt").read_text())
    assert [start for start, _ in found] == [start for start, _ in expected]
    assert all(float(start) < 4.0 for start, _ in found)
    assert found[-1] == expected[-1]


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """As `ulimit -f`: what is written beyond fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert signal.getsignal(signal.SIGXFSZ) is signal.SIG_IGN
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_full_disk_is_told_once_and_tried_again(tmp_path: Path, suffix: str) -> None:
    told: list[Event] = []
    path = tmp_path / f"a{suffix}"
    sink = open_one(path, told=told)
    with file_size_limit(300):
        sink.emit(SESSION)
        for at in range(0, 40, 2):
            say(sink, at, f"answer {at}")
        assert len(path.read_text()) == 300
        unwritten = sink.unwritten
        assert unwritten is not None
        assert 10 < unwritten.answers < 20
        assert unwritten.reason == "File too large"
    (notice,) = told
    assert isinstance(notice, Notice)
    assert "File too large" in notice.message
    say(sink, 40, "there is room again")
    assert sink.unwritten is None
    sink.close()
    whole = transcript(
        tmp_path / f"whole{suffix}", *((at, f"answer {at}") for at in range(0, 40, 2)), (40, "there is room again")
    )
    assert path.read_text() == whole
    assert len(told) == 1


def test_a_device_that_is_always_full(tmp_path: Path) -> None:
    (tmp_path / "a.vtt").symlink_to("/dev/full")
    told: list[Event] = []
    sink = open_one(tmp_path / "a.vtt", told=told)
    sink.emit(SESSION)
    for at in range(5):
        say(sink, at, "x")
    assert sink.unwritten is not None
    assert (sink.unwritten.answers, len(told)) == (5, 1)
    sink.close()


def test_what_was_being_said_is_kept_when_the_process_is_left_at_once(tmp_path: Path) -> None:
    sink = open_one(tmp_path / "a.vtt")
    sink.rescue()
    sink.emit(SESSION)
    say(sink, 1, "whole")
    sink.asking("And now?", 3.0)
    sink.emit(AnswerDelta(3.0, "half an"))
    sink.rescue()
    assert (tmp_path / "a.vtt").read_text().endswith("And now?\nhalf an\n")


WALL = "2026-03-01T14:03:22.125+01:00"


def test_a_live_answer_has_its_time_of_day_where_no_player_shows_it(tmp_path: Path) -> None:
    texts = {}
    for suffix in SUFFIXES:
        sink = open_one(tmp_path / f"a{suffix}")
        sink.emit(SESSION)
        for at in (2.0, 1.0):  # out of order: the file is sorted when it is closed
            answer = Answer(at, 0, "Q?", f"a{at:g}", tokens=1, ttft_ms=1.0, tokens_per_s=1.0, stop="eos", wall=WALL)
            sink.emit(answer)
        sink.close()
        texts[suffix] = (tmp_path / f"a{suffix}").read_text("utf-8")
    cue = f"{WALL}\n00:00:01.000 --> 00:00:02.000\nQ?\na1"
    assert texts[".vtt"].startswith(f"WEBVTT\n\n{cue}\n\n{WALL}\n00:00:02.000")
    assert texts[".srt"].startswith("1\n00:00:01,000")
    assert WALL not in texts[".srt"]
    assert json.loads(texts[".jsonl"].splitlines()[0])["wall"] == WALL


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_alerts_stand_among_the_answers_and_are_not_written_twice(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"talk{suffix}"
    fox = Alert("fox", "Is there a fox?", 20.0, 19.0, 0.97, "A fox <eats>.", 19)
    for existing, resumed_at in ((FRESH, None), (GO_ON, 15.0)):
        sink = open_one(path, existing)
        sink.emit(replace(SESSION, resumed_at=resumed_at))
        if resumed_at is None:
            say(sink, 10.0, "one")
        sink.emit(fox)
        sink.close()
        text = path.read_text(encoding="utf-8")
        if suffix == ".jsonl":
            assert [json.loads(line)["type"] for line in text.splitlines()] == ["answer", "alert"]
        else:
            assert len(starts(text)) == 2
            assert text.count("Alert: fox\n") == 1
            assert ("A fox &lt;eats&gt;." if suffix == ".vtt" else "A fox <eats>.") in text

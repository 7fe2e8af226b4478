"""Bytes as keys, and what keys do to a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnitide_cli.terminal.keys import Key, KeyReader
from omnitide_cli.terminal.line import LONGEST, Line, after, before
from omnitide_cli.terminal.slash import completed

FAMILY = "👩‍👩‍👧"


def typed(*keys: str) -> Line:
    """A line after keys; names of keys stand in angle brackets."""
    line = Line()
    for key in keys:
        line = line.press(key[1:-1]) if key.startswith("<") else line.insert(key)
    return line


@pytest.mark.parametrize(
    ("keys", "text", "cursor"),
    [
        (["abc"], "abc", 3),
        (["abc", "<left>", "<left>", "x"], "axbc", 2),
        (["abc", "<home>", "<delete>"], "bc", 0),
        (["abc", "<backspace>", "<end>"], "ab", 2),
        (["<backspace>", "<left>", "<delete>", "<right>"], "", 0),
        (["你好🐟", "<backspace>"], "你好", 2),
        ([f"a{FAMILY}", "<backspace>"], "a", 1),
        (["e\u0301", "<left>"], "e\u0301", 0),
        (["👍🏽x", "<left>", "<backspace>"], "x", 0),
        (["one two  ", "<cut-word>"], "one ", 4),
        (["one two", "<word-left>", "<cut-before>"], "two", 0),
        (["one two", "<home>", "<word-right>", "<cut-after>"], "one", 3),
        (["a\r\nb\tc\x1b[0m\x07d"], "a b c[0md", 9),
        (["x" * (LONGEST + 9)], "x" * LONGEST, LONGEST),
        (["abc", "<nonsense>"], "abc", 3),
    ],
)
def test_keys_edit_a_line(keys: list[str], text: str, cursor: int) -> None:
    line = typed(*keys)
    assert (line.text, line.cursor) == (text, cursor)


def test_earlier_lines_come_back_and_the_draft_is_kept() -> None:
    line = Line().insert("one").entered().insert("two").entered().insert("two").entered().insert("  ").entered()
    assert line.earlier == ("one", "two")
    line = line.insert("dra").press("up")
    assert line.text == "two"
    line = line.press("up").press("up")
    assert (line.text, line.cursor) == ("one", 3)
    line = line.press("down").press("down").press("down")
    assert line.text == "dra"
    assert line.press("up").insert("!").entered().earlier == ("one", "two", "two!")


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"ab", [Key("text", "ab")]),
        ("é🐟".encode(), [Key("text", "é🐟")]),
        (b"a\r", [Key("text", "a"), Key("enter")]),
        (b"\x1b[A\x1bOB\x1b[C\x1b[D", [Key("up"), Key("down"), Key("right"), Key("left")]),
        (b"\x1b[1;5D\x1b[1;3C\x1bb\x1bf", [Key("word-left"), Key("word-right"), Key("word-left"), Key("word-right")]),
        (b"\x1b[3~\x1b[H\x1b[4~\x1b[5~", [Key("delete"), Key("home"), Key("end"), Key("page-up")]),
        (b"\x1b[200~a\rb\x1b[A\x1b[201~c", [Key("paste", "a\rb\x1b[A"), Key("text", "c")]),
        (b"\x7f\x15\x04", [Key("backspace"), Key("cut-before"), Key("end-of-input")]),
        (b"\x1b[99;99u\x1b[?1;2cx", [Key("text", "x")]),
        (b"\xff", [Key("text", "\ufffd")]),
        (b"\x1b\x1b[A", [Key("escape"), Key("up")]),
    ],
)
def test_bytes_are_keys_however_they_are_split(data: bytes, keys: list[Key]) -> None:
    for size in (len(data), 1, 3):
        reader = KeyReader()
        found = [key for i in range(0, len(data), size) for key in reader.feed(data[i : i + size])]
        assert joined(found) == keys


def joined(keys: list[Key]) -> list[Key]:
    """With neighbouring text put together."""
    whole: list[Key] = []
    for key in keys:
        if whole and key.name == whole[-1].name == "text":
            whole[-1] = Key("text", whole[-1].text + key.text)
        else:
            whole.append(key)
    return whole


def test_a_lone_escape_is_a_key_after_a_moment() -> None:
    reader = KeyReader()
    assert reader.feed(b"\x1b") == []
    assert reader.flush() == [Key("escape")]
    assert reader.flush() == []


@given(st.text(max_size=20), st.integers(0, 20))
def test_steps_to_the_left_and_right_stay_within_the_text(text: str, cursor: int) -> None:
    cursor = min(cursor, len(text))
    assert 0 <= before(text, cursor) <= cursor <= after(text, cursor) <= len(text)
    assert cursor == 0 or before(text, cursor) < cursor
    assert cursor == len(text) or after(text, cursor) > cursor


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    line = Line()
    for key in KeyReader().feed(data):
        line = line.insert(key.text) if key.text else line.press(key.name)
    assert 0 <= line.cursor <= len(line.text)
    assert line.text.isprintable() or "\u200d" in line.text or "\u200b" in line.text


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("/s", "/save "),
        ("/save", "/save "),
        ("/save a", "/save a"),
        ("/k", "/kv"),
        ("/kv", "/kv"),
        ("/", "/"),
        ("", ""),
    ],
)
def test_tab_completes_a_command(typed: str, text: str) -> None:
    assert completed(typed) == text


def test_tab_is_a_key_and_no_text() -> None:
    assert KeyReader().feed(b"/q\t") == [Key("text", "/q"), Key("tab")]
    assert Line("/q", 1).changed("/quit") == Line("/quit", 5)
    assert completed("what") == "what"

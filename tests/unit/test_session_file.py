"""Session files: always a whole one on disk, and nothing that is none is taken for one."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnitide_cli.errors import RuntimeFailure, SessionFileError, UsageError
from omnitide_cli.runtime import session_file
from omnitide_cli.runtime.fingerprint import EDGE, fingerprint
from omnitide_cli.runtime.saved import (
    Saved,
    SavedEngine,
    SavedMedia,
    SavedModel,
    SavedOptions,
    SavedQuestions,
    SavedTotals,
)
from omnitide_cli.runtime.session_file import (
    DIGEST_BYTES,
    PREFIX,
    SECTION,
    SessionFile,
    check_writable,
    read_session,
    write_session,
)

OPTIONS = SavedOptions("omnipick", "auto", "compact", 2500, 1800, None, "f16", "auto", 128, 0.0, 4_000_000_000, sinks=3)
MEDIA = SavedMedia("clip.mp4", "/videos/clip.mp4", 123, 1.0, None, True, True, 0.0, 6.5, 2, 3.0, 9.5, 10, 1)
QUESTIONS = SavedQuestions(
    timed=((12.5, "What is this?"),),
    asked=((1.0, "Et ça ?"),),
    repeated=((10.0, "What is new?", True, 0.0),),
    last=("And now?",),
)
SUMS: dict[str, Any] = {field.name: 1.5 if field.type == "float" else 2 for field in fields(SavedTotals)}
TOTALS = SavedTotals(**SUMS)
SAVED = Saved(
    "0.1.0",
    SavedModel("omnitide-demo", "1:ab", None, "Be brief."),
    OPTIONS,
    MEDIA,
    QUESTIONS,
    SavedEngine(9, 8, TOTALS),
)
STATE = np.arange(1000, dtype=np.uint8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound session file."""
    path = tmp_path / "sound.tide"
    write_session(path, SessionFile(SAVED, STATE))
    return path


def sealed(body: bytes | bytearray) -> bytes:
    """With the checksum that belongs to it, as one who means harm would write it."""
    return bytes(body) + hashlib.sha256(body).digest()


def with_header(data: bytes, header: Any) -> bytes:
    """The file with another header."""
    magic, number, old, state = PREFIX.unpack_from(data)
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    rest = data[PREFIX.size + old : -DIGEST_BYTES]
    return sealed(PREFIX.pack(magic, number, len(text), state) + text + rest)


def test_what_was_written_is_read(path: Path) -> None:
    found = read_session(path)
    assert found.saved == SAVED
    np.testing.assert_array_equal(found.state, STATE)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RuntimeFailure, match="No space left"):
        write_session(path, SessionFile(SAVED, STATE[:10]))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_one(path: Path) -> None:
    link = path.with_name("link.tide")
    link.symlink_to(path)
    write_session(link, SessionFile(SAVED, STATE[:10]))
    assert link.is_symlink()
    assert read_session(path).state.size == 10


def test_places_that_can_not_be_written_are_refused_beforehand(tmp_path: Path) -> None:
    check_writable(tmp_path / "new.tide", "--save-session")
    for wrong in (tmp_path, tmp_path / "none" / "new.tide"):
        with pytest.raises(UsageError, match="--save-session"):
            check_writable(wrong, "--save-session")


def test_files_of_another_kind_are_not_replaced(path: Path, tmp_path: Path) -> None:
    check_writable(path, "--save-session")
    for name, content in (
        ("clip.mp4", b"\0\0\0\x20ftypisom"),
        ("notes.txt", b"TI"),
        ("page.html", b"<!doctype html>x"),
    ):
        other = tmp_path / name
        other.write_bytes(content)
        with pytest.raises(UsageError, match="a file of another kind is there"):
            check_writable(other, "--save-session")
    check_writable(tmp_path / "page.html", "--html", begins=b"<!doctype html>")
    (tmp_path / "empty").touch()
    check_writable(tmp_path / "empty", "--save-session")
    os.mkfifo(tmp_path / "pipe")
    check_writable(tmp_path / "pipe", "--save-session")


def test_files_that_are_no_sessions_are_named(path: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo.tide"
    os.mkfifo(fifo)
    foreign = tmp_path / "foreign.tide"
    for content in (b"", b"TIDE", b"GGUF" * 100):
        foreign.write_bytes(content)
        with pytest.raises(SessionFileError, match="not an OmniTide session"):
            read_session(foreign)
    for other, words in (
        (tmp_path / "none.tide", "does not exist"),
        (tmp_path, "read"),
        (fifo, "not an OmniTide session"),
    ):
        with pytest.raises(SessionFileError, match=words):
            read_session(other)


def test_another_format_is_told_from_damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[8] = 99
    path.write_bytes(data)
    with pytest.raises(SessionFileError, match="has format 99"):
        read_session(path)


def test_every_cut_and_every_changed_byte_is_found(path: Path) -> None:
    data = path.read_bytes()
    for place in range(0, len(data), 23):
        for damaged in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], data + b"x"):
            path.write_bytes(damaged)
            with pytest.raises(SessionFileError) as refused:
                read_session(path)
            assert refused.value.hint


@pytest.mark.parametrize(
    "header",
    [
        b"\xff\xfe",
        b"",
        b"[" * 100_000,
        b"1" * 10_000,
        [],
        {},
        {**SAVED.to_json(), "more": 1},
        {**SAVED.to_json(), "version": 1},
        {**SAVED.to_json(), "media": {**SAVED.to_json()["media"], "clock": -1}},
        {**SAVED.to_json(), "media": {**SAVED.to_json()["media"], "clock": float("nan")}},
        {**SAVED.to_json(), "media": {**SAVED.to_json()["media"], "position": 1e300}},
        {**SAVED.to_json(), "media": {**SAVED.to_json()["media"], "unit_seconds": 0}},
        {**SAVED.to_json(), "media": {**SAVED.to_json()["media"], "index": -1}},
        {**SAVED.to_json(), "media": {**SAVED.to_json()["media"], "loops": True}},
        {**SAVED.to_json(), "options": {**SAVED.to_json()["options"], "seed": 1 << 70}},
        {**SAVED.to_json(), "questions": {"timed": [[1.0]]}},
        {**SAVED.to_json(), "questions": {"last": "text"}},
        {**SAVED.to_json(), "engine": {**SAVED.to_json()["engine"], "used_cells": 10}},
    ],
)
def test_headers_that_say_nonsense_are_refused(path: Path, header: Any) -> None:
    path.write_bytes(with_header(path.read_bytes(), header))
    with pytest.raises(SessionFileError, match="is damaged"):
        read_session(path)


def test_lengths_are_not_trusted(path: Path) -> None:
    data = path.read_bytes()
    magic, number, header, state = PREFIX.unpack_from(data)
    for lengths in ((header, 1 << 60), (0xFFFFFFFF, state), (header + state, 0), (0, header + state)):
        path.write_bytes(sealed(PREFIX.pack(magic, number, *lengths) + data[PREFIX.size : -DIGEST_BYTES]))
        with pytest.raises(SessionFileError, match="is damaged"):
            read_session(path)


def test_a_thousand_mutations_with_the_right_checksum_are_refused_or_read(path: Path) -> None:
    random = np.random.default_rng(0)
    data = path.read_bytes()[:-DIGEST_BYTES]
    header_end = PREFIX.size + PREFIX.unpack_from(data)[2]
    refused = 0
    for _ in range(1000):
        mutated = bytearray(data)
        for place in random.integers(0, header_end, int(random.integers(1, 4))):
            mutated[place] = int(random.integers(0, 256))
        path.write_bytes(sealed(mutated))
        try:
            read_session(path)
        except SessionFileError:
            refused += 1
    assert 500 < refused < 1000


def test_a_fingerprint_tells_files_of_one_size_apart(tmp_path: Path) -> None:
    weights = tmp_path / "weights.gguf"
    size = 8 * EDGE
    weights.write_bytes(bytes(size))
    found = {fingerprint(weights)}
    for place in (0, EDGE - 1, size - 1, size * 3 // 17):  # head, tail, a sample between
        data = bytearray(size)
        data[place] = 1
        weights.write_bytes(data)
        found.add(fingerprint(weights))
    assert len(found) == 5
    weights.write_bytes(bytes(10))
    assert fingerprint(weights).startswith("10:")


def test_the_header_may_be_as_large_as_many_questions(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_file, "LARGEST_HEADER", 100)
    with pytest.raises(SessionFileError, match="size"):
        read_session(path)


def test_sections_come_back_and_strange_ones_are_kept_apart(path: Path) -> None:
    write_session(path, SessionFile(SAVED, STATE, {b"JRNL": b"abc", b"LATR": b""}))
    found = read_session(path)
    assert found.sections == {b"JRNL": b"abc", b"LATR": b""}
    np.testing.assert_array_equal(found.state, STATE)


def test_files_from_before_there_were_sections_are_read(path: Path) -> None:
    magic, _, header, state = PREFIX.unpack_from(path.read_bytes())
    old = PREFIX.pack(magic, 1, header, state) + path.read_bytes()[PREFIX.size : -DIGEST_BYTES]
    path.write_bytes(sealed(old))
    assert read_session(path).saved == SAVED
    assert read_session(path).sections == {}
    path.write_bytes(sealed(old + SECTION.pack(b"JRNL", 0)))
    with pytest.raises(SessionFileError, match="size"):
        read_session(path)


@pytest.mark.parametrize(
    "sections",
    [b"x", SECTION.pack(b"JRNL", 1), SECTION.pack(b"JRNL", 1 << 63), SECTION.pack(b"JRNL", 0) * 2],
)
def test_sections_that_can_not_be_are_refused(path: Path, sections: bytes) -> None:
    path.write_bytes(sealed(path.read_bytes()[:-DIGEST_BYTES] + sections))
    with pytest.raises(SessionFileError, match="section"):
        read_session(path)

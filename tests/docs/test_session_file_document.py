"""A session that was really saved, read by the tables of docs/session-file.md and by nothing of the product's."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import omnitide_cli as omnitide
from omnitide_cli.runtime.saved import Saved, SavedMedia, SavedModel, SavedOptions, SavedQuestions
from omnitide_cli.runtime.session_file import read_session

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "session-file.md").read_text(encoding="utf-8")
FORMATS = {"u8": "B", "u32": "I", "u64": "Q", "i32": "i", "f64": "d"}


def table(before: str) -> list[str]:
    """The first column of the table that follows a line that begins so."""
    rows = DOCUMENT[DOCUMENT.index(f"\n{before}") :].split("\n| --- ", 1)[1].split("\n")[1:]
    found = []
    for row in rows:
        if not row.startswith("|"):
            break
        found.append(row.split("|")[1].strip())
    return found


class Reader:
    """Bytes one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        assert self.at + count <= len(self.data)
        self.at += count
        return self.data[self.at - count : self.at]

    def numbers(self, kind: str, count: int) -> tuple[int, ...]:
        layout = struct.Struct(f"<{count}{kind}")
        return layout.unpack(self.take(layout.size))

    def record(self, before: str) -> list[Any]:
        """The fixed values at the head of a documented record; what repeats is up to the caller."""
        kinds = [kind for kind in table(before) if kind in FORMATS]
        layout = struct.Struct("<" + "".join(FORMATS[kind] for kind in kinds))
        return list(layout.unpack(self.take(layout.size)))


@pytest.fixture(scope="module", params=["omnipick", "h2o"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, omnitide.Session]:
    """A file, and the session as it was then."""
    path = tmp_path_factory.mktemp("saved") / "lesson.tide"
    options: omnitide.Options = {"policy": request.param, "high_watermark": 400, "low_watermark": 250, "threads": 2}
    options["change"] = "auto"
    with omnitide.load(**options) as session:
        for unit in omnitide.read(ROOT / "examples" / "shapes-and-notes.mp4", for_=session, duration=14):
            session.add(unit)
        session.ask("What do you see and hear?")
        session.save(path)
        assert session.summary().retentions
        native = session._engine.session
        session.seen = native.units(), native.tokens()  # type: ignore[attr-defined]
    return path.read_bytes(), session


def test_a_real_file_is_what_the_document_says(saved: tuple[bytes, Any]) -> None:
    data, session = saved
    units, tokens = session.seen
    file = Reader(data)
    magic = bytes.fromhex(re.findall(r"magic: `([0-9A-F ]+)`", DOCUMENT)[0])
    assert table("## The file") == ["8", "4", "4", "8", "H", "S", "…", "32"]
    assert file.take(8) == magic
    number, header_bytes, state_bytes = struct.unpack("<IIQ", file.take(16))
    assert f"| u32 | format: {number}." in DOCUMENT
    header = json.loads(file.take(header_bytes).decode("utf-8"))
    state = Reader(file.take(state_bytes))
    sections: dict[str, bytes] = {}
    while file.at < len(data) - 32:
        tag, size = struct.unpack("<4sQ", file.take(12))
        sections[tag.decode()] = file.take(size)
    assert sorted(sections) == sorted(name.strip("`") for name in table("A section is a tag"))
    journal = Reader(sections["JRNL"])
    assert table("## The section JRNL") == ["4", "J", "…"]
    known = json.loads(journal.take(struct.unpack("<I", journal.take(4))[0]))
    assert [said["question"] for said in known["answers"]] == ["What do you see and hear?"]
    assert set(known["answers"][0]) == {"at", "question", "text", "wall", "recalled"}
    assert known["pictures"]
    for start, end, size in known["pictures"]:
        assert start < end
        assert journal.take(size).startswith(b"\xff\xd8")
    assert journal.at == len(journal.data)
    seen = Reader(sections["CHNG"])
    rows, columns, at, renews, tokens_of_it, noises, similar = seen.record("Only with `--change auto`")
    assert (rows, columns, tokens_of_it) == (14, 14, 18)
    assert 0 <= at < 14
    assert renews in (0, 1)
    assert noises == 13
    assert all(0 <= number <= 1 for number in seen.numbers("d", noises + similar)[noises:])
    seen.take(2 * rows * columns * 3)
    assert seen.at == len(seen.data)
    assert hashlib.sha256(data[: file.at]).digest() == file.take(32)
    assert file.at == len(data)
    assert list(header) == re.findall(r"^\| `(\w+)` \|", DOCUMENT[DOCUMENT.index("## The header") :], re.M)

    mrope, placement, head, next_id, _, n_units = state.record("What the cache holds")
    assert placement in (0, 1, 2)
    assert head <= header["engine"]["cells"]
    cells: list[int] = []
    for known in units[:n_units]:
        ident, kind, flags, start, end, n_spans, n_tokens = _unit_head(state)
        spans = [state.record("A span, a run") for _ in range(n_spans)]
        own = struct.unpack(f"<{n_tokens}I", state.take(4 * n_tokens))
        scores = struct.unpack(f"<{n_tokens}d", state.take(8 * n_tokens)) if flags & 2 else ()
        assert bool(scores) == (header["options"]["policy"] == "h2o")
        cells += own
        assert (ident, ["system", "media", "question", "response"][kind]) == (known.id, known.kind)
        assert (bool(flags & 1), start, end, n_tokens) == (known.partial, known.start_s, known.end_s, known.tokens)
        assert sum(span[2] for span in spans) == n_tokens
        roles = ["boundary", "image-source", "image", "audio", "text", "response", "system"]
        assert [(roles[s[0]], bool(s[1]), *s[2:]) for s in spans] == [
            (s.role, s.continues, s.length, s.first, s.width, s.base, s.rotations) for s in known.spans
        ]
    assert n_units == len(units)
    assert next_id > units[-1].id
    assert cells == tokens[:, 0].tolist()
    assert len(set(cells)) == len(cells)
    assert max(cells) + 1 == header["engine"]["used_cells"]
    assert mrope in (0, 1)

    stored, _, context, n_layers, n_rows, n_original = state.record("Keys and values of every token")
    assert (stored, n_rows) == (4, len(cells))
    assert context >= header["engine"]["used_cells"]
    layers = [state.record("The shape of a layer") for _ in range(n_layers)]
    rows = [state.record("An original key's row") for _ in range(n_original)]
    assert n_original > 0
    assert rows == sorted(rows)
    assert len(table("The data of a layer")) == 3
    for _, _, key_bytes, _, value_bytes in layers:
        state.take(n_rows * key_bytes + n_rows * value_bytes + n_original * key_bytes)
    assert state.at == len(state.data)


def _unit_head(state: Reader) -> list[Any]:
    kinds = table("A unit:")
    fixed = kinds[: kinds.index("…")]
    layout = struct.Struct("<" + "".join(FORMATS[kind] for kind in fixed))
    return list(layout.unpack(state.take(layout.size)))


@pytest.mark.parametrize(
    ("key", "kind"),
    [("model", SavedModel), ("options", SavedOptions), ("media", SavedMedia), ("questions", SavedQuestions)],
)
def test_every_key_of_the_header_is_documented(key: str, kind: type) -> None:
    row = next(line for line in DOCUMENT.splitlines() if line.startswith(f"| `{key}` |"))
    for field in fields(kind):
        assert f"`{field.name}`" in row, field.name
    assert [field.name for field in fields(Saved)] == re.findall(
        r"^\| `(\w+)` \|", DOCUMENT[DOCUMENT.index("## The header") :], re.M
    )


def test_the_archive_is_what_the_document_says(tmp_path: Path) -> None:
    path = tmp_path / "lesson.tide"
    options: omnitide.Options = {"high_watermark": 400, "low_watermark": 250, "threads": 1, "recall_tokens": 100}
    with omnitide.load(**options) as session:
        for unit in omnitide.read(ROOT / "examples" / "shapes-and-notes.mp4", for_=session, duration=14):
            session.add(unit)
        session.ask("What do you see and hear?")
        session.save(path)
        recall = session._engine.recall
        assert recall is not None
        counts, layers = recall.archive(), recall.settings.layers
    section = Reader(bytes(read_session(path).sections[b"RCLL"]))
    version, _, key, row, n_layers = section.record("What a question may bring back")
    assert f"version: {version} |" in DOCUMENT
    assert section.numbers("I", n_layers) == layers
    _, _, n_units = struct.unpack("<QQI", section.take(20))
    assert n_units == counts.units > 0
    ids = []
    for _ in range(n_units):
        ident, kind, flags, start, end, whole, tokens, n_spans, n_keys, text, picture = section.record(
            "An archived unit"
        )
        ids.append(ident)
        assert kind in (1, 2, 3)
        assert flags == 0
        assert start <= end
        assert 0 < tokens <= whole
        spans = [section.record("A span, a run") for _ in range(n_spans)]
        assert sum(span[2] for span in spans) == tokens
        assert sorted(section.numbers("I", tokens)) == list(range(tokens))
        section.take(2 * key * n_keys + text + picture + row * tokens)
    assert ids == sorted(set(ids))
    (n_notes,) = section.numbers("I", 1)
    words = []
    for _ in range(n_notes):
        _, text, picture = section.record("A note, of a unit")
        words.append(section.take(text).decode())
        section.take(picture)
    assert "What do you see and hear?" in words
    assert section.at == len(section.data)

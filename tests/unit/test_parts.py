"""Models in several files: the first is named, all are there, and all are part of the fingerprint."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest

from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.fingerprint import fingerprint, is_same
from omnitide_cli.runtime.parts import parts_of

COUNT = 3


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """As gguf-split writes them, without tensors."""
    paths = [tmp_path / f"tiny-{number:05}-of-{COUNT:05}.gguf" for number in range(1, COUNT + 1)]
    for number, path in enumerate(paths):
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", COUNT)
        writer.add_int32("split.tensors.count", 0)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
    return paths


def test_the_first_names_all(parts: list[Path]) -> None:
    assert parts_of(parts[0]) == parts


@pytest.mark.parametrize("given", [1, 2])
def test_another_than_the_first_is_told_which_to_name(parts: list[Path], given: int) -> None:
    with pytest.raises(ModelError, match=f"part {given + 1} of a model in 3 files") as refused:
        parts_of(parts[given])
    assert str(parts[0]) in refused.value.hint


def test_what_is_missing_is_named(parts: list[Path]) -> None:
    parts[1].unlink()
    with pytest.raises(ModelError, match=rf"{parts[1].name} is missing") as refused:
        parts_of(parts[0])
    assert str(parts[0].parent) in refused.value.hint


@pytest.mark.parametrize("given", range(COUNT))
def test_a_renamed_part_is_recognised(parts: list[Path], given: int) -> None:
    renamed = parts[given].rename(parts[given].with_name("model.gguf"))
    with pytest.raises(ModelError, match=f"part {given + 1} of a model in 3 files") as refused:
        parts_of(renamed)
    assert "00001-of-00003" in refused.value.hint


def test_every_part_changes_the_fingerprint(parts: list[Path]) -> None:
    before = fingerprint(parts[0])
    for part in parts:
        content = part.read_bytes()
        part.write_bytes(content + b"x")
        assert not is_same(fingerprint(parts[0]), before)
        part.write_bytes(content)
    assert is_same(fingerprint(parts[0]), before)
    assert is_same(before, before.partition("+")[0]), "a session saved when the first alone was looked at"


def test_one_file_is_its_own_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    assert parts_of(path) == [path]
    assert "+" not in fingerprint(path)

"""Damaged files of every kind end in units or in one error that says why: no crash, no hang, no other exception."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import mutants
import pytest

SLOWEST_S = 20.0
"""A reader that says nothing for so long hangs."""


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sound files."""
    folder = tmp_path_factory.mktemp("seeds")
    mutants.make_seeds(folder)
    return folder


def read_all(how: str, folder: Path, first: int, last: int) -> dict[int, str]:
    """What became of each mutant; one that ends or stops its reader is "crashed" or "hangs", and the next go on."""
    found: dict[int, str] = {}
    while first < last:
        first = _read_some(how, folder, first, last, found)
    return found


def _read_some(how: str, folder: Path, first: int, last: int, found: dict[int, str]) -> int:
    command = [sys.executable, mutants.__file__, how, str(folder), str(first), str(last)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as reader:
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_pass_on, args=(reader, lines), daemon=True).start()
        number, words = first, ["", "", "before the first"]
        while True:
            try:
                line = lines.get(timeout=SLOWEST_S)
            except queue.Empty:
                reader.kill()
                found[number] = f"{words[2]}: hangs"
                return number + 1
            if line is None:
                break
            words = line.split(maxsplit=3)
            if words[:1] == ["begin"]:
                number = int(words[1])
            elif words[:1] == ["end"]:
                found[number] = f"{words[2]}: {words[3]}"
                first = number + 1
            else:
                found[number] = f"{words[2:]}: wrote {line}"
    if reader.returncode:
        found[number] = f"{words[2]}: crashed with {reader.returncode}"
        return number + 1
    return first


def _pass_on(reader: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert reader.stdout is not None
    for line in reader.stdout:
        lines.put(line.rstrip())
    lines.put(None)


def assert_all_end_well(found: dict[int, str], count: int) -> None:
    assert len(found) == count
    ends = Counter("units" if text.endswith(" units") else text.split(": ")[1] for text in found.values())
    print(f"\n{count} mutants: {dict(ends)}")
    bad = {number: text for number, text in found.items() if ": refused: " not in text and not text.endswith(" units")}
    assert not bad
    assert min(ends["units"], ends["refused"]) > count / 20, "damage must be neither harmless nor hopeless"


def test_a_hundred_and_fifty_mutants_end_well(seeds: Path) -> None:
    assert_all_end_well(read_all("media", seeds, 0, 150), 150)


def test_the_command_ends_with_0_or_3(seeds: Path) -> None:
    assert_all_end_well(read_all("watch", seeds, 150, 180), 30)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", ["media", "watch"])
def test_a_thousand_mutants_end_well(seeds: Path, how: str) -> None:
    """`pytest -m long -k thousand -s tests/media` prints the counts; OMNITIDE_MUTANTS=5000-9000 reads others."""
    first, last = map(int, os.environ.get("OMNITIDE_MUTANTS", "0-1000").split("-"))
    assert_all_end_well(read_all(how, seeds, first, last), last - first)

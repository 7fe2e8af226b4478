"""What is written about the code, against the code: documents, files and commands that are named are there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_tree import commands

ROOT = Path(__file__).resolve().parents[2]
TEXT = {".py", ".pyi", ".h", ".cpp", ".md", ".toml", ".txt", ".in"}
LEFT_OUT = {".venv", ".git", "build", "shared", ".hypothesis", ".pytest_cache", ".ruff_cache"}

MOST_WORDS = 1350
DOCUMENT = re.compile(r"(?<![\w/.:-])((?:[\w.-]+/)*[\w-]+\.md)(#[\w-]+)?\b")
CODE = re.compile(r"`((?:[\w.*-]+/)*[\w.*-]+\.(?:py|h|cpp|toml))`")
FOLDERS = ("", "omnitide_cli", "native", "native/src", "tests", "models")
USERS_OWN = {"omnitide.toml", "NAME.toml", "models/NAME.toml"}


def texts() -> Iterator[Path]:
    """Every text file of the repository."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and not LEFT_OUT & set(parts) and (path.suffix in TEXT or parts[0] == ".ci"):
            yield path


def documents() -> list[Path]:
    return [path for path in texts() if path.suffix == ".md"]


def anchors(document: Path) -> set[str]:
    """The fragments by which GitHub links to the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_document_that_is_named_is_there() -> None:
    missing = []
    for path in texts():
        if path == Path(__file__):
            continue
        for name, anchor in DOCUMENT.findall(path.read_text(encoding="utf-8", errors="replace")):
            found = [place for place in (path.parent / name, ROOT / name, ROOT / "docs" / name) if place.is_file()]
            if not found or (anchor and anchor[1:] not in anchors(found[0])):
                missing.append(f"{path.relative_to(ROOT)}: {name}{anchor}")
    assert not missing


def test_a_document_that_is_not_there_would_be_found() -> None:
    assert DOCUMENT.findall('// See docs/omnipage.md, "Planners".') == [("docs/omnipage.md", "")]
    assert DOCUMENT.findall("[OmniPick](omnipick.md#the-rules)") == [("omnipick.md", "#the-rules")]
    assert not DOCUMENT.findall("https://example.org/a.md")
    assert "the-rules" in anchors(ROOT / "docs" / "omnipick.md")


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_files_in_a_document_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert target.startswith(("http://", "https://")) or (document.parent / target).exists(), target
    for name in set(CODE.findall(text)) - USERS_OWN:
        if f"`{name}`, a new file" in text:  # an example that the document itself gives
            continue
        places = [ROOT / folder for folder in FOLDERS] if "/" in name else [ROOT]
        found = any(True for place in places for _ in place.glob(name if "/" in name else f"**/{name}"))
        assert found, f"{name}: no such file"


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for document in (ROOT / "docs").glob("*.md"):
        assert document.name == "README.md" or f"({document.name})" in index, document.name


def test_the_readme_stays_short() -> None:
    words = [word for word in (ROOT / "README.md").read_text(encoding="utf-8").split() if re.search(r"\w", word)]
    assert len(words) <= MOST_WORDS


HELP_OF_ALL = """
from command_tree import ROOT_COMMAND, commands

for path, _ in commands():
    print("===", path, flush=True)
    try:
        ROOT_COMMAND([*path.split()[1:], "--help"], prog_name="omnitide")
    except SystemExit:
        pass
"""


def test_help_fits_80_columns() -> None:
    environment = {
        "COLUMNS": "80",
        "PATH": "/usr/bin:/bin",
        "PYTHONUTF8": "1",
        "TERM": "dumb",
        "PYTHONPATH": str(ROOT / "tests"),
    }
    command = [sys.executable, "-c", HELP_OF_ALL]
    shown = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = shown.splitlines()
    assert sum(line.startswith("===") for line in lines) > 15
    assert not [line for line in lines if len(line) > 80]


@pytest.mark.parametrize(("path", "command"), [pytest.param(*each, id=each[0]) for each in commands()])
def test_prose_in_help_is_not_broken_twice(path: str, command: Any) -> None:
    """Line ends in help are kept: what is wider than 80 columns is broken again and leaves lines of a word."""
    paragraphs = [*(command.help or "").split("\n\n")[1:], *(command.epilog or "").split("\n\n")]
    for paragraph in paragraphs:
        lines = paragraph.strip("\n").splitlines()
        assert len(lines) == 1 or all(len(line.strip()) <= 78 for line in lines), paragraph

"""What the README and the documents say of the command line, against the command line itself."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from command_tree import ROOT_COMMAND, below, commands

from omnitide_cli.errors import OmniTideError

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"\bomnitide(?: [^`|&#\n]+)?")


def named_commands(text: str = README) -> list[str]:
    """Every command line that a document names, in its blocks, its text and its tables."""
    blocks = [block.replace("\\\n", " ") for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]
    spoken = re.findall(r"`([^`\n]*\bomnitide [^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    lines = [line for block in blocks for line in block.splitlines()] + spoken
    return [found.group().strip() for line in lines for found in COMMAND.finditer(line) if "/" not in found.group()[:9]]


def flags(command: Any) -> set[str]:
    return {"--help", *(flag for option in command.params for flag in (*option.opts, *option.secondary_opts))}


def test_the_readme_names_commands() -> None:
    assert len(named_commands()) > 10


def other_commands() -> list[str]:
    """Those of all other documents, but for the changelog, which says what once was."""
    documents = [*ROOT.glob("docs/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "models" / "demo" / "README.md"]
    found = [line for document in documents for line in named_commands(document.read_text(encoding="utf-8"))]
    return sorted(line for line in set(found) if "COMMAND" not in line)


@pytest.mark.parametrize("line", [*named_commands(), *other_commands()])
def test_a_command_in_a_document_exists_with_its_flags(line: str) -> None:
    words = shlex.split(line.replace("…", "MORE"))[1:]
    command: Any = ROOT_COMMAND
    while words and words[0] in below(command):
        command = below(command)[words.pop(0)]
    named = {word.partition("=")[0] for word in words if word.startswith("-") and len(word) > 1}
    assert not named - flags(command) - flags(ROOT_COMMAND)


def test_every_flag_in_the_readme_exists_somewhere() -> None:
    known = set().union(*(flags(command) for _, command in commands()))
    own = re.sub(r"`(?!omnitide)[^`\n]*(?:pytest|pip|uv|nohup)[^`\n]*`", "", README)  # other programs' flags
    named = set(re.findall(r"(?<=`)--[a-z][a-z-]+|(?<=/)--no-[a-z-]+", own))
    assert "--high-watermark" in named
    assert not named - known


def test_defaults_in_the_readme_are_those_of_the_help() -> None:
    watch = below(ROOT_COMMAND)["watch"]
    for flag, default in re.findall(r"`(--[a-z-]+)` \((\d+)(?: tokens)?\)", README):
        option = next(option for option in watch.params if flag in option.opts)
        assert option.show_default == default, flag


def test_exit_codes_in_the_readme_are_those_of_the_errors() -> None:
    codes = {kind.default_exit_code for kind in (OmniTideError, *OmniTideError.__subclasses__())}
    sentence = re.search(r"Exit codes: (.*?)\.", README, re.DOTALL)
    assert sentence
    said = {int(code) for code in re.findall(r"(?:^|,\s+)(\d+) ", sentence.group(1))}
    assert said == codes | {0, 130}


def test_every_command_has_a_help_text_that_names_each_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_FORCE_DISABLE_TERMINAL", "1")
    for _, command in commands():
        assert command.help, command.name
        assert all(param.param_type_name == "argument" or param.help for param in command.params), command.name


@pytest.mark.parametrize("picture", re.findall(r'(?:src|srcset)="(docs/[^"]+)"', README))
def test_pictures_are_there_and_need_no_network(picture: str) -> None:
    text = (ROOT / picture).read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert not re.search(r'(?:href|src|url)\s*[=(]\s*"?https?:', text)

"""What the README says of the command line, against the command line itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from omnitide_cli.app import app
from omnitide_cli.errors import OmniTideError

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROOT_COMMAND = typer.main.get_command(app)
COMMAND = re.compile(r"\bomnitide(?: [^`|&#\n]+)?")


def named_commands() -> list[str]:
    """Every command line that the README names, in its blocks, its text and its tables."""
    blocks = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    spoken = re.findall(r"`([^`\n]*\bomnitide [^`\n]+)`", re.sub(r"```.*?```", "", README, flags=re.DOTALL))
    lines = [line for block in blocks for line in block.splitlines()] + spoken
    return [found.group().strip() for line in lines for found in COMMAND.finditer(line) if "/" not in found.group()[:9]]


def commands(command: Any = ROOT_COMMAND) -> Iterator[Any]:
    """A command and all below it."""
    yield command
    for name in getattr(command, "commands", {}):
        yield from commands(inner(command, name))


def inner(group: Any, name: str) -> Any:
    """A command of a group, imported where it is only known by name."""
    return group.loaded(name) if hasattr(group, "loaded") else group.commands[name]


def flags(command: Any) -> set[str]:
    return {"--help", *(flag for option in command.params for flag in (*option.opts, *option.secondary_opts))}


def test_the_readme_names_commands() -> None:
    assert len(named_commands()) > 10


@pytest.mark.parametrize("line", named_commands())
def test_a_command_in_the_readme_exists_with_its_flags(line: str) -> None:
    words = shlex.split(line.replace("…", "MORE"))[1:]
    command: Any = ROOT_COMMAND
    while words and words[0] in getattr(command, "commands", {}):
        command = inner(command, words.pop(0))
    named = {word.partition("=")[0] for word in words if word.startswith("-") and len(word) > 1}
    assert not named - flags(command) - flags(ROOT_COMMAND)


def test_every_flag_in_the_readme_exists_somewhere() -> None:
    known = set().union(*(flags(command) for command in commands()))
    own = re.sub(r"`(?!omnitide)[^`\n]*(?:pytest|pip|uv|nohup)[^`\n]*`", "", README)  # other programs' flags
    named = set(re.findall(r"(?<=`)--[a-z][a-z-]+|(?<=/)--no-[a-z-]+", own))
    assert "--high-watermark" in named
    assert not named - known


def test_defaults_in_the_readme_are_those_of_the_help() -> None:
    watch = inner(ROOT_COMMAND, "watch")
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
    for command in commands():
        assert command.help, command.name
        assert all(param.param_type_name == "argument" or param.help for param in command.params), command.name


@pytest.mark.parametrize("picture", re.findall(r'(?:src|srcset)="(docs/[^"]+)"', README))
def test_pictures_are_there_and_need_no_network(picture: str) -> None:
    text = (ROOT / picture).read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert not re.search(r'(?:href|src|url)\s*[=(]\s*"?https?:', text)

"""What can be typed instead of a question."""

from __future__ import annotations

import shlex

import pytest

from omnitide_cli.formats.words import saved
from omnitide_cli.terminal.slash import help_line, unquoted


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("my file.tide", "my file.tide"),
        ('"my file.tide"', "my file.tide"),
        ("'my file.tide'", "my file.tide"),
        ('"it\'s"', "it's"),
        ('"', '"'),
        ("\"a'", "\"a'"),
        ("", ""),
    ],
)
def test_names_are_taken_as_a_shell_takes_them(typed: str, name: str) -> None:
    assert unquoted(typed) == name


def test_the_hint_can_be_pasted_into_a_shell() -> None:
    hint = saved("my file.tide", 44.0).partition("; ")[2]
    assert shlex.split(hint)[:2] == ["--resume", "my file.tide"]


def test_keys_are_those_of_the_dashboard() -> None:
    assert "PgUp" in help_line(keys=True)
    assert "PgUp" not in help_line()

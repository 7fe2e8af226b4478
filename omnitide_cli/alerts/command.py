"""What is run at an alert: split once into arguments, no shell; texts go in as they are."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping

from omnitide_cli.errors import UsageError

FIELDS = ("text", "rule", "at", "picture", "probability")
_FIELD = re.compile(rf"\{{({'|'.join(FIELDS)})\}}")
_BRACED = re.compile(r"\{(\w+)\}")
PREFIX = "OMNITIDE_ALERT_"


def check_command(command: str, where: str) -> None:
    """Raise UsageError for a command that could never run; an empty one runs nothing."""
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"{where}: {error}: {command}", "close every quote") from error
    if not arguments:
        return
    for field in _BRACED.findall(command):
        if field not in FIELDS:
            known = ", ".join(f"{{{each}}}" for each in FIELDS)
            raise UsageError(f"{where}: there is no {{{field}}}", f"there are {known}")
    if _FIELD.search(arguments[0]):
        raise UsageError(f"{where}: the program's name can't come from an alert: {arguments[0]}", "name the program")
    if shutil.which(arguments[0]) is None:
        raise UsageError(f"{where}: there is no program {arguments[0]}", "give its whole path; no shell is used")


def filled(command: str, values: Mapping[str, str]) -> list[str]:
    """The arguments, each with its fields replaced once: what a text holds stays text. REQUIRES: it was checked."""
    clean = {key: value.replace("\0", "") for key, value in values.items()}
    return [_FIELD.sub(lambda found: clean.get(found[1], ""), each) for each in shlex.split(command)]


def variables(values: Mapping[str, str]) -> dict[str, str]:
    """The same for the command's environment: OMNITIDE_ALERT_TEXT and so on."""
    return {f"{PREFIX}{key.upper()}": value.replace("\0", "") for key, value in values.items()}

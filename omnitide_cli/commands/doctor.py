"""`omnitide doctor`: what works here, and what to do for the rest."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer

EPILOG = """
[bold]Examples[/bold]

omnitide doctor

omnitide doctor --json | jq '.findings[] | select(.state != "ok")'

Exit code 1 means that omnitide watch can't run here.
A missing optional part, such as a camera, is no failure.
"""


def doctor(
    context: typer.Context,
    json_object: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check versions, libraries, codecs, devices, folders and the terminal, and say how to fix what is missing."""
    from omnitide_cli.diagnostics import libraries, machine
    from omnitide_cli.diagnostics.report import is_well, show

    found = [*libraries.findings(), *machine.findings(context)]
    order = list(dict.fromkeys(each.group for each in found))
    found.sort(key=lambda each: order.index(each.group))
    well = is_well(found)
    if json_object:
        print(json.dumps({"ok": well, "findings": [asdict(each) for each in found]}))
    else:
        show(found, sys.stdout)
    if not well:
        raise typer.Exit(1)

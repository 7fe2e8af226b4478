"""The options before the command."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class GlobalOptions:
    """How much is printed; every command finds them as `context.obj`."""

    quiet: bool = False
    verbose: bool = False
    debug: bool = False

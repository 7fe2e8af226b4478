"""The entry point of `omnitide`: what happens before anything else is imported.

Python's own answer to a Ctrl-C that comes while it imports is a traceback. Until the command's code is there, the
signal ends the process as it ends any program.
"""

from __future__ import annotations

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Import the command, then run it."""
    as_python = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not where the caller has it ignored
    if as_python:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from omnitide_cli.app import main as run

    if as_python:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()

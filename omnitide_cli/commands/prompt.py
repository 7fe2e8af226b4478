"""Questions that a person types at the end of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from omnitide_cli.commands.interrupt import Interrupt

PROMPT = "> "
HELP = "Type a question and press Enter; /quit or Ctrl-D ends."


def typed_questions(interrupt: Interrupt) -> Iterator[str]:
    """What is typed, a question a line, until /quit or the end of input. Ctrl-C raises KeyboardInterrupt."""
    with suppress(ImportError):
        import readline as readline  # makes input() a line editor with a history
    print(HELP)
    while True:
        try:
            with interrupt.raising():
                line = input(PROMPT).strip()
        except EOFError:
            print()
            return
        if line == "/quit":
            return
        if line.startswith("/"):
            print(HELP)
        elif line:
            yield line

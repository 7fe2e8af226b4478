"""Questions that a person types at the end of a stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from omnitide_cli.commands.interrupt import Interrupt

PROMPT = "> "
HELP = "Type a question and press Enter; /quit or Ctrl-D ends."


def typed_questions(interrupt: Interrupt) -> Iterator[str]:
    """What is typed, a question a line, until /quit or the end of input. Ctrl-C raises KeyboardInterrupt.

    The terminal edits the line, so that nothing about it is changed and nothing has to be restored.
    """
    print(HELP)
    print(PROMPT, end="", flush=True)
    for typed in _lines(interrupt):
        line = typed.strip()
        if line == "/quit":
            return
        if line.startswith("/"):
            print(HELP)
        elif line:
            yield line
        print(PROMPT, end="", flush=True)
    print()


def _lines(interrupt: Interrupt) -> Iterator[str]:
    stdin = sys.stdin.fileno()
    rest = b""
    while True:
        with interrupt.raising():
            interrupt.wait_for_input(stdin)
            chunk = os.read(stdin, 4096)
        *whole, rest = (rest + chunk).split(b"\n")
        if not chunk and rest:
            whole.append(rest)
        for line in whole:
            yield line.decode(sys.stdin.encoding, "replace")
        if not chunk:
            return

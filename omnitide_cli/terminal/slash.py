"""What can be typed instead of a question, said once: help, completion and the session know the same."""

from __future__ import annotations

COMMANDS = {
    "/kv": "shows the cache",
    "/save FILE": "saves the session",
    "/help": "shows this",
    "/quit": "or Ctrl-D ends",
}
"""A command as it is typed, and what it does."""

NAMES = tuple(command.partition(" ")[0] for command in COMMANDS)


KEYS = "Tab completes a command; PgUp and PgDn scroll the talk; Ctrl-C ends the session, a second one at once."
"""Of the dashboard."""


def help_line(*, keys: bool = False) -> str:
    """All of it in a sentence, with the dashboard's keys in another."""
    typed = "Type a question and press Enter; " + ", ".join(f"{name} {does}" for name, does in COMMANDS.items()) + "."
    return f"{typed} {KEYS}" if keys else typed


def unquoted(argument: str) -> str:
    """A name as a shell would take it, without the quotes around it."""
    is_quoted = len(argument) > 1 and argument[0] == argument[-1] and argument[0] in "'\""
    return argument[1:-1] if is_quoted else argument


def completed(text: str) -> str:
    """A command that has been begun, where it is clear which is meant; other text as it is."""
    found = [command for command in COMMANDS if command.startswith(text)]
    if not text or len(found) != 1:
        return text
    name, space, _ = found[0].partition(" ")
    return text if text.startswith(name + " ") else name + space

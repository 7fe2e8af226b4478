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


def help_line() -> str:
    """All of it in a sentence."""
    return "Type a question and press Enter; " + ", ".join(f"{name} {does}" for name, does in COMMANDS.items()) + "."


def completed(text: str) -> str:
    """A command that has been begun, where it is clear which is meant; other text as it is."""
    found = [command for command in COMMANDS if command.startswith(text)]
    if not text or len(found) != 1:
        return text
    name, space, _ = found[0].partition(" ")
    return text if text.startswith(name + " ") else name + space

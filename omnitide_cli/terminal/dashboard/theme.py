"""The colours and signs of the dashboard, each said once.

Only the terminal's own colours and the strength of its text: so it fits a light theme as well as a dark one.
"""

from __future__ import annotations

NAME = "bold cyan"
TITLE = "bold not dim"
ON_BORDER = "not dim"
BORDER = "dim"
FAINT = "dim"
STRONG = "bold"
HISTORY = "cyan"
SOUND = "green"
HIGH = "red"
LOW = "green"
QUESTION = "bold cyan"
WARNING = "red"
ALERT = "bold red"
BUSY = "green"

CLASSES = {"M": "magenta", "S": "cyan", "R": "green", "C": "yellow"}
CLASS_NAMES = {"M": "must-keep", "S": "selected", "R": "recent", "C": "recalled"}

BARS = " ▁▂▃▄▅▆▇█"
SHADES = "·░▒▓█"  # of a piece of the cache: empty … full
BAND = "▒"  # between the lowest and the highest of a column
WATERMARK = "┄"
PROMPT = "❯ "
CARET = "▌"
UPPER_HALF = "▀"

"""What a rich console has recorded, as an SVG file that needs nothing from a network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# rich's own template loads its font from a server. Widths are given for every run of text, so any monospace font fits.
TEMPLATE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; white-space: pre; }}
.{unique_id}-title {{ font-family: sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


LEADING = re.compile(r'x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)" ([^>]*)>((?:&#160;)+)')
SPACE = "&#160;"
COLUMN = 12.2  # pixels of a character in rich's drawing


def as_svg(recorded: Console, title: str) -> str:
    """The recording in a window with a title; the same recording gives the same file."""
    drawn = recorded.export_svg(title=title, code_format=TEMPLATE, unique_id="omnitide")
    return LEADING.sub(_without_leading, drawn)


def _without_leading(found: re.Match[str]) -> str:
    """A text that begins further right instead of with spaces, which some readers of SVG drop."""
    x, y, length, rest, spaces = found.groups()
    indent = len(spaces) // len(SPACE) * COLUMN
    return f'x="{float(x) + indent:g}" y="{y}" textLength="{float(length) - indent:g}" {rest}>'

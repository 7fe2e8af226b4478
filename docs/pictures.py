"""Makes the README's pictures of the dashboard: `uv run python docs/pictures.py [FOLDER]`.

The shipped model watches the shipped example, exactly as `omnitide watch` does it; what the dashboard shows in the end
is written as SVG, in the colours of a dark and of a light terminal. Speeds are those of the machine it runs on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from itertools import groupby
from pathlib import Path

from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import TerminalTheme

from omnitide_cli.catalog.files import fetch_files, find_manifest
from omnitide_cli.media import MediaSource, MediaUnit, open_source
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.session.configuration import engine_options, frame_fit
from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.session.loop import SessionLoop
from omnitide_cli.session.schedule import Repeated, Schedule, Timed
from omnitide_cli.terminal.dashboard.screen import Screen, View
from omnitide_cli.terminal.dashboard.sink import DashboardSink
from omnitide_cli.terminal.dashboard.state import State
from omnitide_cli.terminal.line import Line

ROOT = Path(__file__).resolve().parents[1]
CLIP = ROOT / "examples" / "shapes-and-notes.mp4"
LOOPS = 3
SECONDS = 101.0
SIZES = {"dashboard": (100, 30), "dashboard-80x24": (80, 24), "dashboard-200x60": (200, 60)}

DARK = TerminalTheme(
    (22, 24, 33),
    (205, 210, 224),
    [
        *[(60, 64, 80), (240, 113, 120), (149, 210, 122), (230, 192, 104)],
        *[(110, 160, 250), (199, 146, 234), (86, 200, 216), (205, 210, 224)],
    ],
)
LIGHT = TerminalTheme(
    (252, 252, 250),
    (56, 58, 66),
    [
        *[(56, 58, 66), (214, 56, 72), (60, 140, 60), (170, 120, 0)],
        *[(40, 100, 220), (160, 50, 160), (0, 130, 150), (160, 161, 167)],
    ],
)
COLUMN, ROW, MARGIN = 10, 21, 14
FAINT = 0.5
EDGES = {"─": "WE", "│": "NS", "╭": "SE", "╮": "SW", "╰": "NE", "╯": "NW", "━": "WE", "┄": "WE"}
SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75, "█": 1.0}
LOWER = {block: (index + 1) / 8 for index, block in enumerate("▁▂▃▄▅▆▇")}


def watch() -> State:
    """The dashboard's state after the clip has been watched for a while."""
    manifest = find_manifest(None)
    options = engine_options(manifest, {})
    sink = DashboardSink(CLIP.name)
    schedule = Schedule(
        [
            Timed(45.0, "What do you hear?"),
            Timed(73.0, "What colour is it?"),
        ],
        [Repeated(10.0, "What do you see and hear?")],
    )
    with (
        Interrupt() as interrupt,
        open_source(str(CLIP), fit=frame_fit(manifest, None), duration=None, loops=LOOPS) as media,
        Engine.open(fetch_files(manifest, None, print), manifest.prompt, options) as engine,
    ):
        sink.look = engine.cell_letters
        sink.expect(media.units_total, media.info.width / media.info.height)
        watched = _Until(media, SECONDS)
        SessionLoop(engine, watched, sink, interrupt).run(CLIP.name, schedule)
    return replace(sink.state, units_total=LOOPS * 44)


class _Until:
    """A source's first seconds."""

    def __init__(self, media: MediaSource, seconds: float) -> None:
        self.warnings = media.warnings
        self._media, self._seconds = media, seconds

    def __iter__(self) -> Iterator[MediaUnit]:
        for unit in self._media:
            if unit.start >= self._seconds:
                return
            yield unit


def rows(state: State, width: int, height: int, typed: str) -> list[list[Segment]]:
    """What the terminal shows, a list of segments a row."""
    console = Console(width=width, height=height, force_terminal=True, color_system="truecolor", legacy_windows=False)
    screen = Screen(state, View(width, height, line=Line(typed, len(typed))))
    return console.render_lines(screen, console.options.update(width=width, height=height))


def svg(lines: list[list[Segment]], theme: TerminalTheme) -> str:
    """Lines and blocks as shapes, so that they fit together whatever font a viewer has."""
    columns = max(sum(segment.cell_length for segment in line) for line in lines)
    width, height = columns * COLUMN + 2 * MARGIN, len(lines) * ROW + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        '<style>text{font:16px "DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre}</style>',
        f'<rect width="{width}" height="{height}" rx="10" fill="{_hex(theme.background_color)}"/>',
    ]
    for number, line in enumerate(lines):
        x, y = MARGIN, MARGIN + number * ROW
        for text, style, _ in line:
            parts += _run(text, style or Style(), x, y, theme)
            x += cell_len(text) * COLUMN
    return "\n".join([*parts, "</svg>", ""])


def _run(text: str, style: Style, x: int, y: int, theme: TerminalTheme) -> list[str]:
    front = _colour(style.color, theme, True)
    parts = []
    if style.bgcolor and not style.bgcolor.is_default:
        parts.append(_rect(x, y, cell_len(text) * COLUMN, ROW, _colour(style.bgcolor, theme, False)))
    opacity = FAINT if style.dim else 1.0
    words, begin = "", x
    for letter, run in groupby(text):
        count = len(list(run))
        shape = _shape(letter, count, x, y, front, opacity)
        if shape:
            parts += [*_words(words, begin, y, front, opacity, style), *shape]
            words, begin = "", x + count * COLUMN
        else:
            words += letter * count
        x += cell_len(letter) * count * COLUMN
    return parts + _words(words, begin, y, front, opacity, style)


def _words(words: str, x: int, y: int, colour: str, opacity: float, style: Style) -> list[str]:
    if not words.strip():
        return []
    head, gap, tail = words.partition("  ")
    if gap and tail.strip():  # not every viewer keeps several spaces
        rest = x + (cell_len(head) + 2) * COLUMN
        return _words(head, x, y, colour, opacity, style) + _words(tail, rest, y, colour, opacity, style)
    x += (len(words) - len(words.lstrip())) * COLUMN
    words = words.strip()
    bold = ' font-weight="bold"' if style.bold else ""
    length = f' textLength="{cell_len(words) * COLUMN}" lengthAdjust="spacingAndGlyphs"'
    return [f'<text x="{x}" y="{y + 16}" fill="{colour}" opacity="{opacity}"{bold}{length}>{escape(words)}</text>']


def _shape(letter: str, count: int, x: int, y: int, colour: str, opacity: float) -> list[str]:
    """So many letters that are shapes; nothing for those that need a font."""
    width = count * COLUMN
    if letter in SHADES:
        return [_rect(x, y, width, ROW, colour, SHADES[letter] * opacity)]
    if letter in LOWER:
        part = ROW * LOWER[letter]
        return [_rect(x, y + ROW - part, width, part, colour, opacity)]
    if letter == "▀":
        return [_rect(x, y, width, ROW / 2, colour, opacity)]
    if letter not in EDGES:
        return []
    middle, centre = x + COLUMN / 2, y + ROW / 2
    ends = {"N": (middle, y), "S": (middle, y + ROW), "E": (x + width, centre), "W": (x, centre)}
    first, second = (ends[edge] for edge in EDGES[letter])
    dashes = ' stroke-dasharray="2.4 0.93"' if letter == "┄" else ""
    weight = 3 if letter == "━" else 1.2
    path = f"M{first[0]:g} {first[1]:g}Q{middle:g} {centre:g} {second[0]:g} {second[1]:g}"
    return [f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{weight}" opacity="{opacity}"{dashes}/>']


def _rect(x: float, y: float, width: float, height: float, colour: str, opacity: float = 1.0) -> str:
    shade = f' opacity="{opacity:g}"' if opacity < 1 else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{colour}"{shade}'
        ' shape-rendering="crispEdges"/>'
    )


def _colour(colour: Color | None, theme: TerminalTheme, is_front: bool) -> str:
    if colour is None:
        return _hex(theme.foreground_color)
    return _hex(colour.get_truecolor(theme, foreground=is_front))


def _hex(colour: tuple[int, int, int]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def main() -> None:
    """Write the pictures: without a folder the README's alone."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs"
    names = list(SIZES) if len(sys.argv) > 1 else ["dashboard"]
    state = watch()
    for name in names:
        width, height = SIZES[name]
        lines = rows(state, width, height, "Which note was it?")
        for theme_name, theme in (("dark", DARK), ("light", LIGHT)):
            (folder / f"{name}-{theme_name}.svg").write_text(svg(lines, theme), encoding="utf-8")


if __name__ == "__main__":
    main()

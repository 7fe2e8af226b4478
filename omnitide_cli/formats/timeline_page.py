"""A session as one page of HTML: answers and pictures by time. The pictures are inside; no request leaves the page."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from omnitide_cli.formats.words import CONTROL_CODES, stretch
from omnitide_cli.times import clock

BEGINS = b"<!doctype html>"


@dataclass(frozen=True, slots=True)
class Shot:
    """A picture of what was seen, as a JPEG file."""

    start: float
    end: float
    jpeg: bytes


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer; `moments`: what was recalled for it."""

    at: float
    question: str
    text: str
    wall: str | None
    moments: tuple[tuple[float, float], ...]


STYLE = """
:root { color-scheme: light dark; --back: #fbfbf9; --ink: #1c1e21; --soft: #5b6069; --line: #d9dad6; --card: #fff;
  --mark: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --back: #14161a; --ink: #e8e9ea; --soft: #a2a8b1; --line: #33373e;
  --card: #1d2025; --mark: #7cb7f2; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
main, header { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.4rem; margin: 0.5rem 0 0; overflow-wrap: anywhere; }
header p { margin: 0.2rem 0 0; color: var(--soft); }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 0.5rem; }
a { color: var(--mark); }
:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; }
ol { list-style: none; margin: 0; padding: 0; }
.shots { display: grid; grid-template-columns: repeat(auto-fill, minmax(6.5rem, 1fr)); gap: 0.6rem; margin: 0.8rem 0; }
figure { margin: 0; scroll-margin: 4rem; border-radius: 6px; }
figure img { display: block; width: 100%; height: auto; border-radius: 6px; background: var(--line); }
figcaption { color: var(--soft); font-size: 0.85rem; font-variant-numeric: tabular-nums; }
figure:target { outline: 3px solid var(--mark); outline-offset: 3px; }
article { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 0.7rem 1rem; margin: 0.8rem 0; }
article h2 { font-size: 1rem; margin: 0; font-weight: 600; overflow-wrap: anywhere; }
article time { color: var(--soft); font-weight: 400; margin-right: 0.5rem; font-variant-numeric: tabular-nums; }
article p { margin: 0.25rem 0 0; overflow-wrap: anywhere; white-space: pre-line; }
.from { color: var(--soft); font-size: 0.9rem; }
"""  # noqa: E501

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def timeline_page(title: str, about: str, shots: Sequence[Shot], exchanges: Sequence[Exchange]) -> str:
    """The page. A moment that an answer was drawn from leads to its picture, where there is one."""
    return "\n".join(_page(title, about, sorted(shots, key=lambda shot: shot.start), exchanges)) + "\n"


def _page(title: str, about: str, shots: Sequence[Shot], exchanges: Sequence[Exchange]) -> Iterator[str]:
    yield BEGINS.decode()
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{_text(title)}</title><style>{STYLE}</style></head><body>"
    yield '<a class="skip" href="#timeline">Skip to the timeline</a>'
    yield f"<header><h1>{_text(title)}</h1><p>{_text(about)}</p></header>"
    yield '<main id="timeline" tabindex="-1"><ol>'
    waiting = list(shots)
    for exchange in sorted(exchanges, key=lambda each: each.at):
        before = [shot for shot in waiting if shot.start < exchange.at]
        waiting = waiting[len(before) :]
        yield from _shots(before)
        yield from _exchange(exchange, shots)
    yield from _shots(waiting)
    yield "</ol></main></body></html>"


def _shots(shots: Iterable[Shot]) -> Iterator[str]:
    figures = [_figure(shot) for shot in shots]
    if figures:
        yield f'<li class="shots">{"".join(figures)}</li>'


def _figure(shot: Shot) -> str:
    when = stretch(shot.start, shot.end)
    data = base64.b64encode(shot.jpeg).decode()
    return (
        f'<figure id="{_anchor(shot)}"><img loading="lazy" alt="What was seen at {when}"'
        f' src="data:image/jpeg;base64,{data}"><figcaption>{when}</figcaption></figure>'
    )


def _exchange(exchange: Exchange, shots: Sequence[Shot]) -> Iterator[str]:
    wall = f" {exchange.wall[11:19]}" if exchange.wall else ""
    yield f"<li><article><h2><time>{clock(exchange.at)}{_text(wall)}</time>{_text(exchange.question)}</h2>"
    yield f"<p>{_text(exchange.text)}</p>"
    if exchange.moments:
        links = ", ".join(_link(start, end, shots) for start, end in exchange.moments)
        yield f'<p class="from">from {links}</p>'
    yield "</article></li>"


def _link(start: float, end: float, shots: Sequence[Shot]) -> str:
    words = stretch(start, end)
    shot = next((each for each in shots if each.start < max(end, start + 1e-6) and each.end > start), None)
    return f'<a href="#{_anchor(shot)}">{words}</a>' if shot else words


def _anchor(shot: Shot) -> str:
    return f"at-{round(shot.start * 1000)}"


def _text(text: str) -> str:
    return escape(text.translate(CONTROL_CODES))

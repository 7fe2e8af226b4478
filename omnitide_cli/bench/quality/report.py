"""What `omnitide bench quality` found, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from omnitide_cli.formats.table import columns

Row = dict[str, Any]
"""A row as `--json` prints it."""


def quality_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Tables for each pair of watermarks and kind of positions.

    Shares of right answers in percent by sense and by age, what they differ by from another policy or setting, and what
    the history and time came to.
    """
    places = dict.fromkeys(row["positions"] for row in rows)
    pairs = dict.fromkeys((row["high_watermark"], row["low_watermark"]) for row in rows if row["high_watermark"])
    for pair, place in product(pairs or [(None, None)], places):
        chosen = [row for row in rows if row["policy"] == "full" or (_pair(row) == pair and row["positions"] == place)]
        if pair[0]:
            yield f"watermarks {pair[0]}/{pair[1]}" + (f", {place} positions" if len(places) > 1 else "")
            yield ""
        totals = [row for row in chosen if row["kind"] == "all"]
        yield from columns([_SHARES, *map(_shares, chosen)])
        yield ""
        if any(row["ages"] for row in chosen):
            yield "right %, by seconds since it happened"
            yield ""
            yield from columns([_AGES, *map(_ages, totals)])
            yield ""
        if any(row["difference"] for row in chosen):
            yield from columns([_DIFFERENCES, *(_difference(row) for row in chosen if row["difference"])])
            yield ""
        yield from columns([_COSTS, *map(_costs, totals)])
        yield ""


_SENSES = ("image", "sound", "both", "text")
_SPANS = ("0-4", "5-16", "17-32", "33-")
_SHARES = ("policy", "kind", "right %", "95 % interval", "n", *(f"{sense} %" for sense in _SENSES))
_AGES = ("policy", *_SPANS)
_DIFFERENCES = ("policy", "kind", "difference from", "points", "95 % interval")
_COSTS = ("policy", "history tokens", "physical span", "stream loop s")


def _pair(row: Row) -> tuple[int | None, int | None]:
    return row["high_watermark"], row["low_watermark"]


def _name(row: Row) -> str:
    if not row["setting"]:
        return row["policy"]
    return row["setting"] if row["policy"] == "omnipick" else f"{row['policy']} {row['setting']}"


def _shares(row: Row) -> list[str]:
    return [
        _name(row),
        row["kind"],
        _percent(row["accuracy"]),
        f"{_percent(row['low'])} to {_percent(row['high'])}",
        str(row["n"]),
        *_parts(row["senses"], _SENSES),
    ]


def _ages(row: Row) -> list[str]:
    return [_name(row), *_parts(row["ages"], _SPANS)]


def _parts(shares: Row, names: Sequence[str]) -> list[str]:
    return [_percent(shares[name]["accuracy"]) if name in shares else "" for name in names]


def _difference(row: Row) -> list[str]:
    found = row["difference"]
    low, mean, high = (f"{found[name] * 100:+.1f}" for name in ("low", "mean", "high"))
    return [_name(row), row["kind"], found["to"], mean, f"{low} to {high}"]


def _costs(row: Row) -> list[str]:
    return [_name(row), str(row["history_tokens"]), str(row["physical_span"]), f"{row['stream_loop_s']:.1f}"]


def _percent(share: float) -> str:
    return f"{share * 100:.1f}"

"""What `omnitide bench quality` found, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from omnitide_cli.display.table import columns

Row = dict[str, Any]
"""A row as `--json` prints it."""


def quality_lines(rows: Sequence[Row]) -> Iterator[str]:
    """For each pair of watermarks the shares of right answers in percent, then what the history and time came to."""
    pairs = dict.fromkeys((row["high_watermark"], row["low_watermark"]) for row in rows if row["high_watermark"])
    for pair in pairs or [(None, None)]:
        chosen = [row for row in rows if (row["high_watermark"], row["low_watermark"]) in (pair, (None, None))]
        if pair[0]:
            yield f"watermarks {pair[0]}/{pair[1]}"
            yield ""
        yield from columns([_SHARES, *map(_shares, chosen)])
        yield ""
        yield from columns([_COSTS, *(_costs(row) for row in chosen if row["kind"] == "all")])
        yield ""


_SENSES = ("image", "sound", "both")
_SHARES = ("policy", "kind", "right %", "95 % interval", "n", *(f"{sense} %" for sense in _SENSES))
_COSTS = ("policy", "history tokens", "physical span", "stream loop s")


def _shares(row: Row) -> list[str]:
    senses = (row["senses"].get(sense) for sense in _SENSES)
    return [
        row["policy"],
        row["kind"],
        _percent(row["accuracy"]),
        f"{_percent(row['low'])} to {_percent(row['high'])}",
        str(row["n"]),
        *("" if share is None else _percent(share["accuracy"]) for share in senses),
    ]


def _costs(row: Row) -> list[str]:
    return [row["policy"], str(row["history_tokens"]), str(row["physical_span"]), f"{row['stream_loop_s']:.1f}"]


def _percent(share: float) -> str:
    return f"{share * 100:.1f}"

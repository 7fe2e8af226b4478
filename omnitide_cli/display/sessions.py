"""What `omnitide bench session` found, as tables and as a picture."""

from __future__ import annotations

from typing import Any

from omnitide_cli.display.plot import Bars, Figure, Value

Row = dict[str, Any]
"""A row as `--json` prints it."""


def named(row: Row) -> str:
    """Policy and watermarks."""
    high = row["high_watermark"]
    return row["policy"] if high is None else f"{row['policy']} {high}/{row['low_watermark']}"


def times(rows: list[Row]) -> list[Row]:
    """Milliseconds a unit, but for what says s."""
    return [
        {
            "policy": named(row),
            "media s": row["media_s"],
            "loop s": row["stream_loop_s"],
            "encode": row["per_unit"]["encode"],
            "prefill": row["per_unit"]["prefill"],
            "upkeep": row["per_unit"]["maintain"],
            "p50": row["per_unit_ms"]["p50"],
            "p95": row["per_unit_ms"]["p95"],
            "p99": row["per_unit_ms"]["p99"],
        }
        for row in rows
    ]


def memory(rows: list[Row]) -> list[Row]:
    """What it took, and why a session ended early."""
    return [
        {
            "policy": named(row),
            "peak RSS MB": row["peak_rss_bytes"] / 1e6,
            "KV MB": row["kv_bytes"]["allocated"] / 1e6,
            "within span": row["kv_bytes"]["span"] / 1e6,
            "peak tokens": row["peak_history_tokens"],
            "retentions": row["retentions"],
            "stopped": row["stopped"] or "–",
        }
        for row in rows
    ]


def figure(rows: list[Row]) -> Figure:
    """Seconds of the stream loop by what they were spent on, milliseconds of a unit, memory."""
    groups = [named(row) for row in rows]
    split = {
        name: [Value(row["per_unit"][name] * row["units"] / 1000) for row in rows]
        for name in ("encode", "prefill", "maintain")
    }
    rest = [
        row["stream_loop_s"] - sum(values[index].value for values in split.values()) for index, row in enumerate(rows)
    ]
    tails = {name: [Value(row["per_unit_ms"][name]) for row in rows] for name in ("p50", "p95", "p99")}
    memory = {"peak resident": [Value(row["peak_rss_bytes"] / 1e6) for row in rows]}
    return Figure(
        "Whole sessions",
        [
            Bars(
                "stream loop, seconds",
                groups,
                {**split, "answers and the rest": [Value(max(value, 0.0)) for value in rest]},
                stacked=True,
            ),
            Bars("ms of a unit", groups, tails),
            Bars("memory, MB", groups, memory),
        ],
    )

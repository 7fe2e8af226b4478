"""What `omnitide bench session` found, as tables and as a picture."""

from __future__ import annotations

from typing import Any

from omnitide_cli.formats.plot import Bars, Figure, Value

Row = dict[str, Any]
"""A row as `--json` prints it."""


def named(row: Row) -> str:
    """Policy and watermarks."""
    high = row["high_watermark"]
    return row["policy"] if high is None else f"{row['policy']} {high}/{row['low_watermark']}"


def times(rows: list[Row]) -> list[Row]:
    """Milliseconds a unit, but for what says s."""
    is_watched = any(row["per_unit"]["attention"] is not None for row in rows)
    return [
        {
            "policy": named(row),
            "loop s": f"{row['stream_loop_s']:.1f}",
            "encode ms": _ms(row["per_unit"]["encode"]),
            "prefill ms": _ms(row["per_unit"]["prefill"]),
            **({"attn ms": _ms(row["per_unit"]["attention"])} if is_watched else {}),
            "upkeep ms": _ms(row["per_unit"]["maintain"]),
            **{f"{name} ms": _ms(value) for name, value in row["per_unit_ms"].items()},
        }
        for row in rows
    ]


def memory(rows: list[Row]) -> list[Row]:
    """What it took, and why a session ended early."""
    is_stopped = any(row["stopped"] for row in rows)
    return [
        {
            "policy": named(row),
            "media s": f"{row['media_s']:.0f}",
            "RSS MB": f"{row['peak_rss_bytes'] / 1e6:.1f}",
            "KV MB": f"{row['kv_bytes']['allocated'] / 1e6:.1f}",
            "span MB": f"{row['kv_bytes']['span'] / 1e6:.1f}",
            "tokens": row["peak_history_tokens"],
            "retentions": row["retentions"],
            "p99 ms": _ms(row["per_retention_ms"] and row["per_retention_ms"]["p99"]),
            **({"stopped": row["stopped"] or "–"} if is_stopped else {}),
        }
        for row in rows
    ]


def _ms(value: float | None) -> str:
    return (
        "–" if value is None else f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
    )


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

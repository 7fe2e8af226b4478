"""`omnitide bench startup` runs what it says: help of ours, and of an app that is as large."""

from __future__ import annotations

from omnitide_cli.bench.startup.measure import startup


def test_each_help_has_a_counterpart() -> None:
    whole, watch = startup(1)
    assert (whole.command, watch.command) == ("omnitide --help", "omnitide watch --help")
    assert watch.bare_ms > whole.bare_ms / 2
    for row in (whole, watch):
        assert row.ratio == row.omnitide_ms / row.bare_ms

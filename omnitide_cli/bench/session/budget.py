"""How many seconds of media a given memory for keys and values lasts (the paper's claim about 4 GiB).

Without eviction that is arithmetic: cells in the budget, tokens a second. A bounded cache doesn't grow, which
is not believed but run: over many retentions, what is allocated, the untouched keys of shifted rows included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.layout.measure import n_cells
from omnitide_cli.bench.session.measure import Percentiles, Run
from omnitide_cli.runtime.history import Part
from omnitide_cli.runtime.simulation import Stream

ENOUGH = 20
"""Retentions after which a cache that didn't grow is taken to be one that won't."""

MANY = 100  # of a stream that isn't computed: enough for percentiles


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """media_s: seconds of media until the budget is exceeded; None: never. kv_bytes: the most that was taken, for
    `full` what it takes at that second; media_run_s: how long the session was that shows it, 0 where it is worked out;
    per_retention_ms: what each of its retentions took, planning and relocation in all layers that were there.
    """

    policy: str
    high_watermark: int | None
    low_watermark: int | None
    kv_budget: int
    media_s: float | None
    kv_bytes: int
    bytes_per_cell: int
    tokens_per_s: float
    retentions: int
    media_run_s: float
    per_retention_ms: Percentiles | None
    says: str
    type: str = "budget"


def budget_of_run(run: Run, budget: int) -> BudgetRow:
    """What a session that was run says about a budget."""
    row = run.row
    if row.policy == "full":
        return worked_out(budget, run.bytes_per_cell, run.system_tokens, run.media_tokens / max(row.media_s, 1e-9))
    return _bounded(
        policy=row.policy,
        marks=(row.high_watermark or 0, row.low_watermark or 0),
        budget=budget,
        taken=row.kv_bytes.allocated,
        bytes_per_cell=run.bytes_per_cell,
        tokens_per_s=run.media_tokens / max(row.media_s, 1e-9),
        retentions=row.retentions,
        media_s=row.media_s,
        per_retention_ms=row.per_retention_ms,
    )


def budget_of_shape(
    fixture: Fixture,
    stream: Stream,
    policy: str,
    marks: tuple[int, int],
    budget: int,
    scale: float,
    progress: Callable[[str], None],
) -> BudgetRow:
    """The same for a shape with fewer layers (`scale`: all by those) and a stream that isn't computed."""
    options = replace(fixture.options, policy=policy, high_watermark=marks[0], low_watermark=marks[1])
    cells = n_cells(options, stream)
    session = fixture.session(cells, policy=policy, high_watermark=marks[0], low_watermark=marks[1])
    per_cell = round(session.snapshot().kv_bytes_per_cell * scale)
    if policy == "full":
        return worked_out(budget, per_cell, stream.system_tokens, stream.unit_tokens)
    fixture.add(session, "system", [Part("system", stream.system_tokens)])
    units = taken = 0
    times: list[float] = []
    while len(times) < MANY:
        fixture.add(session, "media", stream.parts())
        units += 1
        began = perf_counter()
        if session.maintain().retained:
            times.append((perf_counter() - began) * 1000)
        taken = max(taken, session.snapshot().kv_bytes_allocated)
        progress(f"{policy} {marks[0]}/{marks[1]}: {len(times)} of {MANY} evictions")
    session.check()
    return _bounded(
        policy=policy,
        marks=marks,
        budget=budget,
        taken=round(taken * scale),
        bytes_per_cell=per_cell,
        tokens_per_s=stream.unit_tokens,
        retentions=len(times),
        media_s=units,
        per_retention_ms=Percentiles.of(times),
        layers=1 / scale,
    )


def worked_out(budget: int, bytes_per_cell: int, system_tokens: int, tokens_per_s: float) -> BudgetRow:
    """Of full context."""
    cells = budget // bytes_per_cell
    seconds = max(cells - system_tokens, 0) / max(tokens_per_s, 1e-9)
    each = f"{cells} cells of {bytes_per_cell} bytes, {tokens_per_s:.0f} tokens a second"
    return BudgetRow(
        policy="full",
        high_watermark=None,
        low_watermark=None,
        kv_budget=budget,
        media_s=seconds,
        kv_bytes=cells * bytes_per_cell,
        bytes_per_cell=bytes_per_cell,
        tokens_per_s=tokens_per_s,
        retentions=0,
        media_run_s=0.0,
        per_retention_ms=None,
        says=f"exceeded after {seconds:.0f} s: {each}",
    )


def _bounded(
    *,
    policy: str,
    marks: tuple[int, int],
    budget: int,
    taken: int,
    bytes_per_cell: int,
    tokens_per_s: float,
    retentions: int,
    media_s: float,
    per_retention_ms: Percentiles | None,
    layers: float = 1.0,
) -> BudgetRow:
    """layers: the share of them that was there."""
    run = f"{media_s:.0f} s with {retentions} evictions took {taken / 2**30:.3f} GiB at most"
    if per_retention_ms is not None:
        run += f", {per_retention_ms.p50:.1f} ms per eviction (p99 {per_retention_ms.p99:.1f})"
        run += f" in {layers:.0%} of the layers" if layers < 1 else ""
    if taken > budget:
        says, reached = f"exceeded from the start: {run}", 0.0
    elif retentions >= ENOUGH:
        says, reached = f"never: {run}", None
    else:
        says, reached = f"not exceeded in this run ('never' needs {ENOUGH} evictions): {run}", media_s
    return BudgetRow(
        policy=policy,
        high_watermark=marks[0],
        low_watermark=marks[1],
        kv_budget=budget,
        media_s=reached,
        kv_bytes=taken,
        bytes_per_cell=bytes_per_cell,
        tokens_per_s=tokens_per_s,
        retentions=retentions,
        media_run_s=media_s,
        per_retention_ms=per_retention_ms,
        says=says,
    )

"""Histories to measure an update over: as a policy leaves them along one maintenance cycle, or packed from cell 0.

They are simulated by the session's own planners and handed to a session as bytes, so that long ones take no prefill.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.runtime.history import History, Part
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.simulation import Stream

HEAVY_TAIL = 1.0
"""Exponent of the power law by which attention is spread over tokens: a few receive most of it."""

POINTS = 4
"""Fills of a cycle that are measured, evenly spread from the lowest to the highest."""


@dataclass(frozen=True, slots=True)
class SyntheticCache:
    """A history at one moment. state: as `History.save` gives it."""

    tokens: int
    physical_span: int
    state: NDArray[np.uint8]


def cycle(
    fixture: Fixture, session: NativeSession, policy: str, layout: str, stream: Stream, length: int
) -> list[SyntheticCache]:
    """What each arriving unit finds between two retentions, after a stream of at least `length` tokens.

    A policy that bounds the history comes back to the same fills again and again, however long the stream has been.
    """
    whole: list[SyntheticCache] = []  # of the last cycle that a retention has ended
    current: list[SyntheticCache] = []
    arrived = retentions = 0
    random = np.random.default_rng(0)
    with _history(fixture, session, policy, layout) as history:
        history.append("system", [Part("system", stream.system_tokens)])
        while arrived < length or retentions < 2:
            history.append("media", stream.parts())
            arrived += stream.unit_tokens
            if policy == "h2o":  # what it retains lies as scattered as what is attended to
                new = random.pareto(HEAVY_TAIL, stream.unit_tokens)
                before = history.snapshot().history_tokens - stream.unit_tokens
                history.attend(np.concatenate([np.zeros(before), new]))
            if history.maintain().retained:
                whole, current = current, []
                retentions += 1
            current.append(_fill(history))
    chosen = np.linspace(0, len(whole) - 1, min(POINTS, len(whole))).round().astype(int)
    return [whole[i] for i in chosen]


def packed(fixture: Fixture, session: NativeSession, tokens: int) -> SyntheticCache:
    """One unit of text in the lowest cells."""
    with _history(fixture, session, "full", "native") as history:
        history.append("question", [Part("text", tokens)])
        return _fill(history)


def _history(fixture: Fixture, session: NativeSession, policy: str, layout: str) -> History:
    """What the session would have under this policy and layout."""
    now = session.snapshot()
    options = replace(fixture.options, policy=policy, layout=layout, threads=fixture.model.threads)
    return History(options, now.n_cells, mrope=bool(now.mrope), costs=fixture.model.costs(options))


def _fill(history: History) -> SyntheticCache:
    now = history.snapshot()
    return SyntheticCache(now.history_tokens, now.layout.physical_span, history.save())

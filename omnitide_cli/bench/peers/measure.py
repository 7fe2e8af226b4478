"""What a retention, an update and a second of sound cost here and with stock llama.cpp, in one run and in turn.

The peers are llama.cpp and libmtmd as llama-cpp-python brings them, called through its API, on the same weights, in
caches of the same size, with the same history: what ours holds before a retention is loaded into theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.layout.measure import n_cells
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.history import Part
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.simulation import Stream
from omnitide_cli.runtime.stock import StockContext, sequence_state, stock_sound_tokens

WARM = 3  # rounds before anything is measured: classes have formed, every page of the caches was touched
SOUND_CELLS = 512

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PeerRow:
    """Medians of `repeat` rounds; ratio = peer's ÷ ours, above 1 where ours is faster."""

    what: str
    ours_ms: float
    peer_ms: float
    ratio: float
    repeat: int
    subject: str
    detail: str
    type: str = "peer"


@dataclass(frozen=True, slots=True)
class _Round:
    """A retention that has just been run on ours; `stock` still holds what ours held before."""

    session: NativeSession
    stock: StockContext
    done: Any
    maintain_ms: float


def compare_peers(fixture: Fixture, stream: Stream, cells: int, repeat: int, progress: Progress) -> Iterator[PeerRow]:
    """The rows about the cache, on a model whose positions llama.cpp can shift. Raises UsageError for another."""
    yield _key_shift(fixture, stream, cells, repeat, progress)
    yield _context_shift(fixture, stream, repeat, progress)
    yield _window(fixture, stream, repeat, progress)


def _key_shift(fixture: Fixture, stream: Stream, cells: int, repeat: int, progress: Progress) -> PeerRow:
    """A retention's planning and fused relocation against llama.cpp's rotation of the whole cache.

    The latter runs in the next decode: what that takes longer than a decode without it.
    """
    ours, peer, rows, sizes = [], [], 0, (0, 0)
    for round_ in _retentions(fixture, stream, cells, repeat, lambda done: progress(f"k-shift: {done} of {repeat}")):
        ours.append(round_.maintain_ms)
        rows, sizes = round_.done.rows_shifted, (round_.done.before_tokens, round_.done.after_tokens)
        round_.stock.evict(stream.system_tokens, sizes[0] - sizes[1])
        shifting = round_.stock.decode(1)
        peer.append(shifting - median(round_.stock.decode(1) for _ in range(3)))
    detail = f"{sizes[0]} to {sizes[1]} tokens: {rows} rows shifted and moved against all {cells} of the cache"
    return _row("k-shift", ours, peer, fixture, detail)


def _context_shift(fixture: Fixture, stream: Stream, repeat: int, progress: Progress) -> PeerRow:
    """A retention and the unit after it against seq_rm, seq_add and the decode of that unit."""
    ours, peer = [], []
    cells = n_cells(fixture.options, stream)
    for round_ in _retentions(
        fixture, stream, cells, repeat, lambda done: progress(f"context-shift: {done} of {repeat}")
    ):
        ours.append(round_.maintain_ms + fixture.update_ms(round_.session, stream.unit_tokens))
        began = time.perf_counter()
        round_.stock.evict(stream.system_tokens, round_.done.before_tokens - round_.done.after_tokens)
        evict_ms = (time.perf_counter() - began) * 1000
        peer.append(evict_ms + round_.stock.decode(stream.unit_tokens))
    detail = f"a retention and the next unit of {stream.unit_tokens} tokens, caches of {cells} cells"
    return _row("context-shift", ours, peer, fixture, detail)


def _window(fixture: Fixture, stream: Stream, repeat: int, progress: Progress) -> PeerRow:
    """A unit's update and its share of upkeep against prefilling the last low-watermark tokens anew for every unit."""
    ours, peer = [], []
    cells, window = n_cells(fixture.options, stream), fixture.options.low_watermark
    with StockContext(fixture.model, fixture.options, cells) as stock:
        session = _begun(fixture, stream, cells)
        _settle(fixture, session, stream)
        for index in range(repeat):
            progress(f"re-prefill: {index + 1} of {repeat}")
            units: list[float] = []
            retained = False
            while not retained:
                update_ms = fixture.update_ms(session, stream.unit_tokens)
                fixture.add(session, "media", stream.parts())
                done, maintain_ms = _maintain(session)
                units.append(update_ms + maintain_ms)
                retained = bool(done.retained)
            ours.append(fmean(units))
            stock.clear()
            peer.append(stock.decode(window))
    detail = f"a unit of {stream.unit_tokens} tokens, upkeep included, against its window of {window} tokens"
    return _row("re-prefill", ours, peer, fixture, detail)


def compare_sound(fixture: Fixture, repeat: int, progress: Progress) -> PeerRow:
    """One second of sound: ours as 25 tokens, libmtmd's as the 30 s that it fills up."""
    session = fixture.session(SOUND_CELLS, random_rows=False)
    pcm = np.random.default_rng(0).normal(0, 0.1, session.audio_format.rate).astype(np.float32)
    ours, peer, tokens = [], [], (0, 0)
    for index in range(-1, repeat):  # the first round allocates
        progress(f"sound: {index + 1} of {repeat}")
        began = time.perf_counter()
        rows = session.encode_audio(pcm, fixture.model.n_embd)
        between = time.perf_counter()
        theirs = stock_sound_tokens(fixture.model, pcm)
        if index >= 0:
            ours.append((between - began) * 1000)
            peer.append((time.perf_counter() - between) * 1000)
            tokens = len(rows), theirs
    return _row("sound", ours, peer, fixture, f"a second of sound: {tokens[0]} tokens against {tokens[1]}")


def _retentions(
    fixture: Fixture, stream: Stream, cells: int, repeat: int, progress: Callable[[int], None]
) -> Iterator[_Round]:
    """`repeat` retentions, each with the same history on either side."""
    with StockContext(fixture.model, fixture.options, cells) as stock:
        if not stock.can_shift:
            raise UsageError(
                f"llama.cpp can't shift the positions of {fixture.file.name}", "choose a shape without M-RoPE"
            )
        session = _begun(fixture, stream, cells)
        for index in range(-WARM, repeat):
            while session.snapshot().history_tokens <= fixture.options.high_watermark:
                fixture.add(session, "media", stream.parts())
            stock.load(sequence_state(fixture.model))
            stock.decode(1)
            done, maintain_ms = _maintain(session)
            if index >= 0:
                progress(index + 1)
                yield _Round(session, stock, done, maintain_ms)
            else:
                stock.evict(stream.system_tokens, 1)
                stock.decode(1)


def _begun(fixture: Fixture, stream: Stream, cells: int) -> NativeSession:
    session = fixture.session(cells)
    fixture.add(session, "system", [Part("system", stream.system_tokens)])
    return session


def _settle(fixture: Fixture, session: NativeSession, stream: Stream) -> None:
    retentions = 0
    while retentions < WARM:
        fixture.add(session, "media", stream.parts())
        retentions += session.maintain().retained


def _maintain(session: NativeSession) -> tuple[Any, float]:
    """An `ot_maintenance` and the milliseconds of the whole call."""
    began = time.perf_counter()
    done = session.maintain()
    return done, (time.perf_counter() - began) * 1000


def _row(what: str, ours: list[float], peer: list[float], fixture: Fixture, detail: str) -> PeerRow:
    mine, theirs = median(ours), median(peer)
    return PeerRow(what, mine, theirs, theirs / mine, len(ours), fixture.file.stem, detail)

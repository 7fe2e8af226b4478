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

from omnitide_cli.bench.layout import n_cells
from omnitide_cli.bench.stage import Stage
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.history import Part
from omnitide_cli.runtime.session import Session
from omnitide_cli.runtime.simulation import Stream
from omnitide_cli.runtime.stock import StockContext, sequence_state, stock_sound_tokens

WARM = 3  # rounds before anything is measured: classes have formed, every page of the caches was touched
SAMPLES = 16_000  # a second
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

    session: Session
    stock: StockContext
    done: Any
    maintain_ms: float


def compare_peers(stage: Stage, stream: Stream, cells: int, repeat: int, progress: Progress) -> Iterator[PeerRow]:
    """The rows about the cache, on a model whose positions llama.cpp can shift. Raises UsageError for another."""
    yield _key_shift(stage, stream, cells, repeat, progress)
    yield _context_shift(stage, stream, repeat, progress)
    yield _window(stage, stream, repeat, progress)


def _key_shift(stage: Stage, stream: Stream, cells: int, repeat: int, progress: Progress) -> PeerRow:
    """A retention's planning and fused relocation against llama.cpp's rotation of the whole cache.

    The latter runs in the next decode: what that takes longer than a decode without it.
    """
    ours, peer, rows, sizes = [], [], 0, (0, 0)
    for round_ in _retentions(stage, stream, cells, repeat, lambda done: progress(f"k-shift: {done} of {repeat}")):
        ours.append(round_.maintain_ms)
        rows, sizes = round_.done.rows_shifted, (round_.done.before_tokens, round_.done.after_tokens)
        round_.stock.evict(stream.system_tokens, sizes[0] - sizes[1])
        shifting = round_.stock.decode(1)
        peer.append(shifting - median(round_.stock.decode(1) for _ in range(3)))
    detail = f"{sizes[0]} to {sizes[1]} tokens: {rows} rows shifted and moved against all {cells} of the cache"
    return _row("k-shift", ours, peer, stage, detail)


def _context_shift(stage: Stage, stream: Stream, repeat: int, progress: Progress) -> PeerRow:
    """A retention and the unit after it against seq_rm, seq_add and the decode of that unit."""
    ours, peer = [], []
    cells = n_cells(stage.options, stream)
    for round_ in _retentions(
        stage, stream, cells, repeat, lambda done: progress(f"context-shift: {done} of {repeat}")
    ):
        ours.append(round_.maintain_ms + stage.update_ms(round_.session, stream.unit_tokens))
        began = time.perf_counter()
        round_.stock.evict(stream.system_tokens, round_.done.before_tokens - round_.done.after_tokens)
        evict_ms = (time.perf_counter() - began) * 1000
        peer.append(evict_ms + round_.stock.decode(stream.unit_tokens))
    detail = f"a retention and the next unit of {stream.unit_tokens} tokens, caches of {cells} cells"
    return _row("context-shift", ours, peer, stage, detail)


def _window(stage: Stage, stream: Stream, repeat: int, progress: Progress) -> PeerRow:
    """A unit's update and its share of upkeep against prefilling the last low-watermark tokens anew for every unit."""
    ours, peer = [], []
    cells, window = n_cells(stage.options, stream), stage.options.low_watermark
    with StockContext(stage.model, stage.options, cells) as stock:
        session = _begun(stage, stream, cells)
        _settle(stage, session, stream)
        for index in range(repeat):
            progress(f"re-prefill: {index + 1} of {repeat}")
            units: list[float] = []
            retained = False
            while not retained:
                update_ms = stage.update_ms(session, stream.unit_tokens)
                stage.add(session, "media", stream.parts())
                done, maintain_ms = _maintain(session)
                units.append(update_ms + maintain_ms)
                retained = bool(done.retained)
            ours.append(fmean(units))
            stock.clear()
            peer.append(stock.decode(window))
    detail = f"a unit of {stream.unit_tokens} tokens, upkeep included, against its window of {window} tokens"
    return _row("re-prefill", ours, peer, stage, detail)


def compare_sound(stage: Stage, repeat: int, progress: Progress) -> PeerRow:
    """One second of sound: ours as 25 tokens, libmtmd's as the 30 s that it fills up."""
    pcm = np.random.default_rng(0).normal(0, 0.1, SAMPLES).astype(np.float32)
    session = stage.session(SOUND_CELLS, random_rows=False)
    ours, peer, tokens = [], [], (0, 0)
    for index in range(-1, repeat):  # the first round allocates
        progress(f"sound: {index + 1} of {repeat}")
        began = time.perf_counter()
        rows = session.encode_audio(pcm, stage.model.n_embd)
        between = time.perf_counter()
        theirs = stock_sound_tokens(stage.model, pcm)
        if index >= 0:
            ours.append((between - began) * 1000)
            peer.append((time.perf_counter() - between) * 1000)
            tokens = len(rows), theirs
    return _row("sound", ours, peer, stage, f"a second of sound: {tokens[0]} tokens against {tokens[1]}")


def _retentions(
    stage: Stage, stream: Stream, cells: int, repeat: int, progress: Callable[[int], None]
) -> Iterator[_Round]:
    """`repeat` retentions, each with the same history on either side."""
    with StockContext(stage.model, stage.options, cells) as stock:
        if not stock.can_shift:
            raise UsageError(
                f"llama.cpp can't shift the positions of {stage.file.name}", "choose a shape without M-RoPE"
            )
        session = _begun(stage, stream, cells)
        for index in range(-WARM, repeat):
            while session.snapshot().history_tokens <= stage.options.high_watermark:
                stage.add(session, "media", stream.parts())
            stock.load(sequence_state(stage.model))
            stock.decode(1)
            done, maintain_ms = _maintain(session)
            if index >= 0:
                progress(index + 1)
                yield _Round(session, stock, done, maintain_ms)
            else:
                stock.evict(stream.system_tokens, 1)
                stock.decode(1)


def _begun(stage: Stage, stream: Stream, cells: int) -> Session:
    session = stage.session(cells)
    stage.add(session, "system", [Part("system", stream.system_tokens)])
    return session


def _settle(stage: Stage, session: Session, stream: Stream) -> None:
    retentions = 0
    while retentions < WARM:
        stage.add(session, "media", stream.parts())
        retentions += session.maintain().retained


def _maintain(session: Session) -> tuple[Any, float]:
    """An `ot_maintenance` and the milliseconds of the whole call."""
    began = time.perf_counter()
    done = session.maintain()
    return done, (time.perf_counter() - began) * 1000


def _row(what: str, ours: list[float], peer: list[float], stage: Stage, detail: str) -> PeerRow:
    mine, theirs = median(ours), median(peer)
    return PeerRow(what, mine, theirs, theirs / mine, len(ours), stage.file.stem, detail)

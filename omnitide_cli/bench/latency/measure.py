"""What a streaming update costs under each policy, and attention in it, at histories of any length.

Section 7 of the paper. Histories are set up, not prefilled; the cases are measured in turn, round after round, so that
whatever slows the machine down for a while meets them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import fmean, median

from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.common.synthetic_cache import SyntheticCache, cycle, packed
from omnitide_cli.bench.layout.measure import n_cells
from omnitide_cli.errors import ModelError, UsageError
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.simulation import Stream
from omnitide_cli.runtime.sizing import check_low_watermark, shortage, whole_pages

DECODES = 3  # tokens decoded at each visit


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """Medians over rounds; of a bounded policy, their means over the fills of a maintenance cycle.

    attention: the product of keys and queries to attention's output, all layers, from runs of their own in which it is
    watched; its share is of those runs. speedup: full's time at this history ÷ this one, where full was measured.
    """

    shape: str
    history: int
    policy: str
    layout: str
    update_ms: float
    attention_ms: float
    attention_share: float
    decode_ms_per_token: float
    history_tokens: float
    physical_span: float
    speedup_update: float | None
    speedup_attention: float | None
    type: str = "latency"


@dataclass(slots=True)
class _Times:
    """Of one fill, one a round."""

    update: list[float] = field(default_factory=list)
    attention: list[float] = field(default_factory=list)
    share: list[float] = field(default_factory=list)
    decode: list[float] = field(default_factory=list)

    def add(self, update: float, watched: float, attention: float, decode: float) -> None:
        self.update.append(update)
        self.attention.append(attention)
        self.share.append(attention / watched)
        self.decode.append(decode)


@dataclass(slots=True)
class _Case:
    """A policy with its layout. history: of `full`; all other cases are the same at every history."""

    policy: str
    layout: str
    history: int | None
    session: NativeSession
    fills: list[SyntheticCache]
    times: list[_Times] = field(init=False)

    def __post_init__(self) -> None:
        self.times = [_Times() for _ in self.fills]

    @property
    def name(self) -> str:
        return f"{self.policy} {self.layout}" + (f" at {self.history}" if self.history else "")

    @property
    def is_measured(self) -> bool:
        return all(times.update for times in self.times)

    def mean(self, name: str) -> float:
        return fmean(median(getattr(times, name)) for times in self.times)


@dataclass(frozen=True, slots=True)
class Latency:
    """What to measure: histories in tokens, policies, the layouts of omnipick, the stream's units, rounds."""

    shape: str
    histories: Sequence[int]
    policies: Sequence[str]
    layouts: Sequence[str]
    stream: Stream
    repeat: int

    def check(self, fixture: Fixture) -> None:
        """Raise UsageError for what can't be measured."""
        if not (self.stream.image or self.stream.audio):
            raise UsageError("the units are empty", "give --image N or --audio N")
        check_low_watermark(fixture.options, self.stream.system_tokens)
        high = fixture.options.high_watermark
        for history in self.histories:
            if history <= high:
                raise UsageError(
                    f"--history {history}: nothing is evicted until the history exceeds the high watermark ({high})",
                    "choose longer histories, or lower both watermarks",
                )

    def run(
        self,
        fixture: Fixture,
        progress: Callable[[str], None],
        notice: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> list[LatencyRow]:
        """Rows of all cases that were measured at least once before it was stopped.

        notice: told which histories are left out because their cache doesn't fit in memory.
        """
        self.check(fixture)
        cases: list[_Case] = []
        with suppress(Interrupted):
            for case in self._cases(fixture, notice):
                if stopped():
                    return []
                progress(f"warming up: {case.name}")
                case.session.inject_history(case.fills[-1].state)
                fixture.update_ms(case.session, self.stream.unit_tokens)  # the memory it touches is there from now on
                cases.append(case)
            for round_ in range(self.repeat):
                for case in cases:
                    for fill, times in zip(case.fills, case.times, strict=True):
                        if stopped():
                            return self._rows(cases)
                        progress(f"round {round_ + 1} of {self.repeat}: {case.name}")
                        self._measure(fixture, case.session, fill, times)
        return self._rows(cases)

    def _measure(self, fixture: Fixture, session: NativeSession, fill: SyntheticCache, times: _Times) -> None:
        session.inject_history(fill.state)
        update = fixture.update_ms(session, self.stream.unit_tokens)
        decode = median(fixture.decode_ms(session) for _ in range(DECODES))
        watched, attention = fixture.attention_ms(session, self.stream.unit_tokens)
        times.add(update, watched, attention, decode)

    def _cases(self, fixture: Fixture, notice: Callable[[str], None]) -> Iterator[_Case]:
        """Cases in the order in which they are measured, each with its session."""
        if "full" in self.policies:
            for history in self.histories:
                try:
                    session = self._full_session(fixture, history)
                except ModelError as error:
                    notice(f"full at {history} tokens was skipped: {error.message}")
                    continue
                yield _Case("full", "native", history, session, [packed(fixture, session, history)])
        bounded = [policy for policy in self.policies if policy != "full"]
        if not bounded:
            return
        cells = n_cells(fixture.options, self.stream)
        # One cache for all of them: under the layout auto a session places as the history that it is given says.
        shared = fixture.another(cells, policy="fifo", layout="auto")
        limit: list[SyntheticCache] = []
        for policy in bounded:
            # Every update of h2o adds up attention.
            session = fixture.another(cells, policy="h2o", layout="native") if policy == "h2o" else shared
            for layout in self.layouts if policy == "omnipick" else ["native"]:
                fills = cycle(fixture, session, policy, layout, self.stream, max(self.histories))
                yield _Case(policy, layout, None, session, fills)
                if policy == "omnipick":
                    limit = [packed(fixture, shared, fill.tokens) for fill in fills]
        if limit:
            yield _Case("limit", "packed", None, shared, limit)

    def _full_session(self, fixture: Fixture, history: int) -> NativeSession:
        """Raises ModelError when its cache doesn't fit in memory."""
        cells = whole_pages(history + self.stream.unit_tokens)
        if what := shortage(cells, replace(fixture.options, policy="full"), fixture.model):
            raise ModelError(what)
        return fixture.another(cells, policy="full")

    def _rows(self, cases: Sequence[_Case]) -> list[LatencyRow]:
        measured = [case for case in cases if case.is_measured]
        rows = []
        for history in self.histories:
            full = next((case for case in measured if case.history == history), None)
            for case in measured:
                if case.history not in (None, history):
                    continue
                row = LatencyRow(
                    shape=self.shape,
                    history=history,
                    policy=case.policy,
                    layout=case.layout,
                    update_ms=case.mean("update"),
                    attention_ms=case.mean("attention"),
                    attention_share=case.mean("share"),
                    decode_ms_per_token=case.mean("decode"),
                    history_tokens=fmean(fill.tokens for fill in case.fills),
                    physical_span=fmean(fill.physical_span for fill in case.fills),
                    speedup_update=full and full.mean("update") / case.mean("update"),
                    speedup_attention=full and full.mean("attention") / case.mean("attention"),
                )
                rows.append(row)
        return rows

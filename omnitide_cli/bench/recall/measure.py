"""What was there once is asked for when it has long been cut: with recall, without, and with the right second put back.

One stream serves all ages: what is asked and answered is taken back each time, by restoring the session, so that every
question finds the session as the stream alone has left it. The archive isn't part of that: nothing is archived twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from omnitide_cli.bench.quality.encodings import Encodings, SharedModel
from omnitide_cli.bench.world.needle import NeedleStream, needle_stream
from omnitide_cli.bench.world.question import Question
from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.split import Split
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer, Recalled
from omnitide_cli.runtime.options import EngineOptions

RANKS = (1, 4, 8)


@dataclass(frozen=True, slots=True)
class Trial:
    """A question put at one moment of one stream. `rank`: of the second that is meant among all archived ones, from 0;
    None where none is, or it is still whole in the cache."""

    seed: int
    age_s: int
    sense: str
    kind: str
    """`needle` or `now`."""
    archived: int
    rank: int | None
    clearness: float
    verdict: str
    right: bool
    right_without: bool
    right_oracle: bool | None
    search_ms: float
    insert_ms: float
    ttft_ms: float
    ttft_without_ms: float
    archive_bytes: int
    index_bytes: int


def measure(
    model: SharedModel,
    options: EngineOptions,
    split: Split,
    seeds: Sequence[int],
    ages_s: Sequence[int],
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
) -> Iterator[Trial]:
    """Ask for the needles of each stream `ages_s` seconds after they were there. Ends early once `stopped` says so."""
    for seed in seeds:
        if stopped():
            return
        needles = needle_stream(split, seed, _last_unit(max(ages_s)) + 1)
        due = {max(needle.unit for needle in needles.needles) + age: age for age in ages_s}
        engine = model.engine(options, Encodings())
        engine.start(f"needles {seed}")
        for unit in units_of(needles.stream):
            if stopped() or unit.index > max(due):
                break
            model.encode_one(unit)
            engine.ingest(unit)
            progress(f"stream {seed}: {unit.index + 1} of {max(due) + 1} s")
            if unit.index in due:
                yield from _asked(engine, needles, unit.index, seed, due[unit.index], stopped)


def _last_unit(age_s: int) -> int:
    from omnitide_cli.bench.world.needle import LAST

    return LAST + age_s


def _asked(
    engine: Engine, needles: NeedleStream, unit: int, seed: int, age_s: int, stopped: Callable[[], bool]
) -> Iterator[Trial]:
    for needle in needles.needles:
        if not stopped():
            yield _trial(engine, needle.question, unit, seed, age_s, meant=needle.unit)
    for question in needles.now(unit):
        if not stopped():
            yield _trial(engine, question, unit, seed, age_s, meant=None)


def _trial(engine: Engine, question: Question, unit: int, seed: int, age_s: int, *, meant: int | None) -> Trial:
    recall = engine.recall
    assert recall is not None
    state, at = engine.session.save(), float(unit + 1)
    tokens = engine.model.tokenize(question.text, special=False)

    def said() -> tuple[Answer, Recalled | None]:
        events = list(engine.ask(question.text, at))
        engine.session.restore(state)
        return (
            next(event for event in events if isinstance(event, Answer)),
            next((event for event in events if isinstance(event, Recalled)), None),
        )

    found = recall.search(tokens)
    by_score = sorted((each for each in found if each.kind == "media"), key=lambda each: -each.score)
    starts = [round(each.start_s) for each in by_score]
    rank = starts.index(meant) if meant in starts else None
    answer, event = said()
    with engine.without_recall():
        plain, _ = said()
        oracle: Answer | None = None
        if rank is not None:
            recall.put_back([by_score[rank].unit])
            oracle, _ = said()
    archive = recall.archive()
    return Trial(
        seed=seed,
        age_s=age_s,
        sense=question.sense,
        kind="now" if meant is None else "needle",
        archived=len(found),
        rank=rank,
        clearness=event.clearness if event else 0.0,
        verdict=event.verdict if event else "",
        right=answer.text == question.answer,
        right_without=plain.text == question.answer,
        right_oracle=None if oracle is None else oracle.text == question.answer,
        search_ms=event.search_ms if event else 0.0,
        insert_ms=event.insert_ms if event else 0.0,
        ttft_ms=answer.ttft_ms,
        ttft_without_ms=plain.ttft_ms,
        archive_bytes=archive.memory_bytes + archive.disk_bytes,
        index_bytes=archive.index_bytes,
    )


@dataclass(frozen=True, slots=True)
class Line:
    """Trials of one age and kind together; shares are of `n`, hits of those whose second was archived."""

    age_s: int
    kind: str
    sense: str
    n: int
    hits: tuple[int, int, int]
    """Within the best 1, 4 and 8."""
    right: int
    without: int
    oracle: int
    recalled: int
    """How often something came back."""
    search_ms: float
    insert_ms: float
    ttft_ms: float
    ttft_without_ms: float
    archive_bytes_a_unit: float
    index_bytes_a_unit: float


def lines(trials: Sequence[Trial]) -> list[Line]:
    """Sums by age, kind and sense."""
    groups: dict[tuple[int, str, str], list[Trial]] = {}
    for trial in trials:
        sense = trial.sense if trial.kind == "needle" else ""
        groups.setdefault((trial.age_s, trial.kind, sense), []).append(trial)
    return [
        _line(*key, group) for key, group in sorted(groups.items(), key=lambda item: (item[0][1] == "now", item[0]))
    ]


def _line(age_s: int, kind: str, sense: str, group: Sequence[Trial]) -> Line:
    def mean(name: str) -> float:
        return sum(getattr(trial, name) for trial in group) / len(group)

    units = max(1.0, mean("archived"))
    ranks = [trial.rank for trial in group if trial.rank is not None]
    return Line(
        age_s=age_s,
        kind=kind,
        sense=sense,
        n=len(group),
        hits=tuple(sum(rank < most for rank in ranks) for most in RANKS),  # type: ignore[arg-type]
        right=sum(trial.right for trial in group),
        without=sum(trial.right_without for trial in group),
        oracle=sum(bool(trial.right_oracle) for trial in group),
        recalled=sum(trial.verdict == "recalled" for trial in group),
        search_ms=mean("search_ms"),
        insert_ms=mean("insert_ms"),
        ttft_ms=mean("ttft_ms"),
        ttft_without_ms=mean("ttft_without_ms"),
        archive_bytes_a_unit=mean("archive_bytes") / units,
        index_bytes_a_unit=mean("index_bytes") / units,
    )

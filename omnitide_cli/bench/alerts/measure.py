"""How certain each rule was in every second of a stream, and what a rule's settings make of that.

Since asking leaves no trace, all rules are asked in every second once; which of these answers a session would have
asked for, and what it would have told, is then a matter of `Judge` alone, for any settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from omnitide_cli.alerts.change import change
from omnitide_cli.alerts.judge import Began, Change, Judge
from omnitide_cli.alerts.rule import Rule, Senses
from omnitide_cli.alerts.watcher import both
from omnitide_cli.bench.quality.encodings import Encodings, SharedModel
from omnitide_cli.bench.world.happening import SENSES, EventStream, Happening, Sense, event_stream
from omnitide_cli.bench.world.render import units_of
from omnitide_cli.bench.world.split import Split
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.yes_no import Weighed

IN_TIME_S = 2.0
"""An alert later than this after its event began has missed it."""
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Trace:
    """What was measured of one stream. `answers`: by sense, the answers to each of its questions, second by second."""

    seed: int
    events: tuple[Happening, ...]
    changes: dict[Senses, tuple[Change, ...]]
    answers: dict[Sense, tuple[tuple[Weighed, ...], ...]]
    loop_s: float
    """Seconds of encoding, prefill and maintenance."""

    @property
    def seconds(self) -> int:
        """How long the stream was."""
        return len(self.changes["both"])


def traces(
    model: SharedModel,
    options: EngineOptions,
    split: Split,
    seeds: Sequence[int],
    units: int,
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
    *,
    happens: bool,
) -> Iterator[Trace]:
    """Watch the streams of some seeds. Ends early once `stopped` says so; a stream that isn't whole is left out."""
    for seed in seeds:
        given = event_stream(split, seed, units, happens=happens)
        found = _trace(model, options, given, stopped, progress)
        if found is None:
            return
        yield found


def _trace(
    model: SharedModel,
    options: EngineOptions,
    given: EventStream,
    stopped: Callable[[], bool],
    progress: Callable[[str], None],
) -> Trace | None:
    encodings = Encodings()
    engine = model.engine(options, encodings)
    engine.start(f"events {given.stream.seed}")
    changes: dict[Senses, list[Change]] = {senses: [] for senses in get_args(Senses)}
    answers: dict[Sense, list[list[Weighed]]] = {each.sense: [[] for _ in each.questions] for each in given.wanted}
    before, loop_s = None, 0.0
    for unit in units_of(given.stream):
        if stopped():
            return None
        began = time.perf_counter()
        model.encode_one(unit)
        engine.ingest(unit)
        loop_s += time.perf_counter() - began
        for senses, found in changes.items():
            found.append(change(before, unit, senses))
        before = unit
        for each in given.wanted:
            for index, question in enumerate(each.questions):
                weighed = engine.rehearsal.weigh(question)
                if weighed is None:
                    return None
                answers[each.sense][index].append(weighed)
        progress(f"stream {given.stream.seed}: {unit.index + 1} of {len(given.stream.scenes)} s")
    frozen: dict[Sense, tuple[tuple[Weighed, ...], ...]] = {
        sense: tuple(tuple(each) for each in found) for sense, found in answers.items()
    }
    compared: dict[Senses, tuple[Change, ...]] = {senses: tuple(found) for senses, found in changes.items()}
    return Trace(given.stream.seed, given.events, compared, frozen, loop_s)


@dataclass(frozen=True, slots=True)
class Told:
    """What a session with one rule would have told: media seconds of its alerts, and how it came to them."""

    alerts: tuple[float, ...]
    asked: int
    ask_s: float


def told(trace: Trace, sense: Sense, rule: Rule) -> Told:
    """Replay a rule's answers as a session asks for them (`Watcher`)."""
    judge, alerts, ask_s = Judge(rule), [], 0.0
    for second, changed in enumerate(trace.changes[rule.senses]):
        at = second + 1.0
        if not judge.is_due(at, changed):
            continue
        weighed, *others = (answers[second] for answers in trace.answers[sense])
        if others and weighed.probability >= rule.threshold / 2:
            weighed = both(weighed, others[0])
        ask_s += weighed.ms / 1000
        alerts += [at for each in judge.heard(at, weighed) if isinstance(each, Began)]
    return Told(tuple(alerts), judge.totals().asked, ask_s)


@dataclass(frozen=True, slots=True)
class Line:
    """A rule of one kind over all streams. Recall and F1 count alerts within IN_TIME_S of an event's beginning."""

    sense: str
    threshold: float
    hold: int
    events: int
    in_time: int
    late: int
    """Told while it lasted, but too late."""
    alerts: int
    """In streams with events."""
    false: int
    """Of these, while nothing happened."""
    precision: float
    recall: float
    f1: float
    delay_s: float
    """Mean seconds from an event's beginning to the end of the second that told it, of those in time."""
    quiet_s: int
    """Seconds of streams without events."""
    false_an_hour: float
    """Alerts an hour in these."""
    asked_share: float
    """Checks a second."""
    ask_ms: float
    """Milliseconds of one."""
    cost: float
    """Time of the rule relative to that of the stream: encoding, prefill, maintenance."""


def lines(
    busy: Sequence[Trace], quiet: Sequence[Trace], threshold: float, hold: int, every: float, *, hints: bool
) -> list[Line]:
    """A line for each kind, and one for all together. `hints`: rules say which senses they are about."""
    rule = Rule("Is it?", "it", threshold=threshold, hold=hold, every=every, describe="")
    found = [_line(sense, [sense], busy, quiet, rule, hints) for sense in SENSES]
    return [*found, _line("all", SENSES, busy, quiet, rule, hints)]


def _line(
    name: str, senses: Sequence[Sense], busy: Sequence[Trace], quiet: Sequence[Trace], rule: Rule, hints: bool
) -> Line:
    events = in_time = late = alerts = false = asked = 0
    delays: list[float] = []
    ask_s = 0.0
    for sense in senses:
        for trace in busy:
            said = told(trace, sense, replace(rule, senses=sense) if hints else rule)
            asked, ask_s, alerts = asked + said.asked, ask_s + said.ask_s, alerts + len(said.alerts)
            mine = [each for each in trace.events if each.sense == sense]
            events += len(mine)
            false += sum(not any(each.start < at <= each.end for each in mine) for at in said.alerts)
            for each in mine:
                first = next((at for at in said.alerts if each.start < at <= each.end), None)
                if first is not None and first - each.start <= IN_TIME_S:
                    in_time += 1
                    delays.append(first - each.start)
                elif first is not None:
                    late += 1
    calm = [told(trace, sense, replace(rule, senses=sense) if hints else rule) for sense in senses for trace in quiet]
    asked += sum(each.asked for each in calm)
    ask_s += sum(each.ask_s for each in calm)
    quiet_s = sum(trace.seconds for trace in quiet) * len(senses)
    seconds = sum(trace.seconds for trace in busy) * len(senses) + quiet_s
    loop_s = sum(trace.loop_s for trace in (*busy, *quiet))
    precision = (alerts - false) / alerts if alerts else 1.0
    recall = in_time / events if events else 1.0
    return Line(
        sense=name,
        threshold=rule.threshold,
        hold=rule.hold,
        events=events,
        in_time=in_time,
        late=late,
        alerts=alerts,
        false=false,
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        delay_s=sum(delays) / len(delays) if delays else 0.0,
        quiet_s=quiet_s,
        false_an_hour=sum(len(each.alerts) for each in calm) * HOUR_S / quiet_s if quiet_s else 0.0,
        asked_share=asked / seconds if seconds else 0.0,
        ask_ms=1000 * ask_s / asked if asked else 0.0,
        cost=ask_s / loop_s if loop_s else 0.0,
    )


def best(found: Sequence[Line], most_false: float = 1.0) -> Line:
    """Of lines for all kinds together at several settings, the one to choose: the best F1 among those with less than
    `most_false` alarms an hour, else the fewest alarms. REQUIRES: there is one."""
    good = [line for line in found if line.false_an_hour < most_false]
    if not good:
        return min(found, key=lambda line: (line.false_an_hour, -line.f1))
    return max(good, key=lambda line: (line.f1, -line.hold, line.threshold))

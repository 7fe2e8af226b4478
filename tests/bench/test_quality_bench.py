"""TideBench without a model: tasks, marks, intervals, and what is done with an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pytest

from omnitide_cli.bench.common.intervals import share_interval
from omnitide_cli.bench.quality.encodings import Encodings
from omnitide_cli.bench.quality.measure import fill
from omnitide_cli.bench.quality.report import quality_lines
from omnitide_cli.bench.quality.results import Results, results
from omnitide_cli.bench.quality.score import Mark, Share
from omnitide_cli.bench.quality.task import Question, Task, exact, world_tasks
from omnitide_cli.bench.world.split import TEST, VALIDATION
from omnitide_cli.media import MediaUnit
from omnitide_cli.media.unit import NO_SOUND
from omnitide_cli.runtime.events import Answer, Event, Summary, TokenCounts, UnitIngested
from omnitide_cli.runtime.options import EngineOptions


@dataclass(frozen=True)
class Asked:
    kind: str
    sense: str
    text: str
    answer: str
    age: int | None = None


class ScriptedEngine:
    """Says what `says` holds for a question; counts its tokens up, a unit ten."""

    def __init__(self, says: dict[str, str]) -> None:
        self.says = says
        self.asked: list[str] = []
        self.tokens = 0
        self.interrupted = False

    def start(self, source: str) -> None:
        self.source = source

    def ingest(self, unit: MediaUnit) -> list[Event]:
        self.tokens += 10
        counts = TokenCounts(total=10)
        return [UnitIngested(unit.index, unit.start, unit.end, counts, self.tokens, 64, 256, 0.0, 0.0, 0.0)]

    def ask(self, question: str, at: float) -> Iterator[Event]:
        self.asked.append(question)
        if question in self.says:
            yield Answer(at, 0, question, self.says[question], 1, 0.0, 0.0, "eos")

    def interrupt(self) -> None:
        self.interrupted = True

    def summary(self) -> Summary:
        return Summary(2, 2.0, 1.5, 1, 0, 0, 0, 0, 0)


class ScriptedModel:
    """Makes an engine for each policy and stream, and takes 0.25 s for the encodings of each stream."""

    def __init__(self, says: dict[str, dict[str, str]]) -> None:
        self.says = says
        self.engines: list[tuple[str, ScriptedEngine]] = []
        self.encoded = 0

    def encode(self, units: Sequence[MediaUnit], options: EngineOptions, each: Callable[[int], bool]) -> Encodings:
        self.encoded += 1
        found = Encodings()
        found.seconds = 0.25
        return found

    def engine(self, options: EngineOptions, encodings: Encodings) -> Any:
        self.engines.append((options.policy, ScriptedEngine(self.says[options.policy])))
        return self.engines[-1][1]


QUESTIONS = (
    Asked("now", "image", "colour?", "It is red.", 0),
    Asked("recall", "sound", "before?", "The note do.", 20),
    Asked("count", "both", "often?", "Twice."),
)
UNITS = [MediaUnit(index, float(index), index + 1.0, None, None, NO_SOUND, NO_SOUND) for index in range(2)]
EXAM = Task("test 0", UNITS, [QUESTIONS[:1], QUESTIONS[1:]], exact)
TRUE = {question.text: question.answer for question in QUESTIONS}
SAYS = {"full": TRUE, "streaming-llm": TRUE, "fifo": {**TRUE, "before?": "The note re."}}


def filled(tasks: Sequence[Task], stopped: Callable[[], bool] = lambda: False) -> tuple[list[Results], ScriptedModel]:
    found, model = results(EngineOptions(), ["full", "fifo"], [(100, 50)]), ScriptedModel(SAYS)
    fill(found, model, tasks, stopped, lambda text: None)  # type: ignore[arg-type]
    return found, model


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_intervals_are_those_of_newcombe_1998(right: int, n: int, low: float, high: float) -> None:
    assert share_interval(right, n) == pytest.approx((low, high), abs=5e-5)


def test_an_interval_stays_within_its_bounds() -> None:
    for n in (1, 2, 10, 1000):
        assert share_interval(0, n)[0] == 0
        assert share_interval(n, n)[1] == 1


def test_a_share_of_nothing_is_none() -> None:
    assert Share.of([]) is None
    assert Share.of([Mark("now", "image", True), Mark("now", "sound", False)]) == Share(0.5, *share_interval(1, 2), 2)


def test_only_the_very_words_are_right() -> None:
    assert exact("It is red.", "It is red.")
    assert not exact("It is red", "It is red.")
    assert not exact("it is red.", "It is red.")


def test_each_policy_is_marked_on_the_same_questions() -> None:
    (full, fifo), model = filled([EXAM, EXAM])
    shares = {(row.policy, row.kind): (row.accuracy, row.n) for each in (full, fifo) for row in each.rows()}
    assert shares == {
        **{("full", kind): (1.0, 2) for kind in ("now", "recall", "count")},
        ("full", "all"): (1.0, 6),
        ("fifo", "now"): (1.0, 2),
        ("fifo", "recall"): (0.0, 2),
        ("fifo", "count"): (1.0, 2),
        ("fifo", "all"): (pytest.approx(4 / 6), 6),
    }
    assert model.encoded == 2
    assert {tuple(engine.asked) for _, engine in model.engines} == {tuple(TRUE)}
    assert [policy for policy, _ in model.engines] == ["full", "fifo"] * 2


def test_a_row_has_the_means_of_its_streams() -> None:
    (full, fifo), _ = filled([EXAM, EXAM])
    row = asdict(fifo.rows()[-1])
    assert list(row)[:9] == [
        "policy",
        "kind",
        "accuracy",
        "low",
        "high",
        "n",
        "history_tokens",
        "physical_span",
        "stream_loop_s",
    ]
    assert (row["type"], row["low"], row["high"]) == ("quality", *share_interval(4, 6))
    assert (row["history_tokens"], row["physical_span"], row["stream_loop_s"]) == (15, 256, 2 * (1.5 + 0.25))
    assert (row["high_watermark"], row["low_watermark"]) == (100, 50)
    assert {sense: share["accuracy"] for sense, share in row["senses"].items()} == {"image": 1, "sound": 0, "both": 1}
    assert (full.rows()[-1].high_watermark, full.rows()[-1].low_watermark) == (None, None)


def test_a_question_that_could_not_be_asked_is_wrong() -> None:
    each = results(EngineOptions(), ["fifo"], [(100, 50)])[0]
    fill([each], ScriptedModel({"fifo": {}}), [EXAM], lambda: False, lambda text: None)  # type: ignore[arg-type]
    assert [(row.accuracy, row.n) for row in each.rows()][-1] == (0.0, 3)


def test_an_interruption_leaves_what_was_answered() -> None:
    model: ScriptedModel
    found, model = results(EngineOptions(), ["full", "fifo"], [(100, 50)]), ScriptedModel(SAYS)
    fill(found, model, [EXAM, EXAM], lambda: any("often?" in e.asked for _, e in model.engines), lambda text: None)  # type: ignore[arg-type]
    assert [[(mark.kind, mark.right) for mark in each.marks] for each in found] == [
        [("now", True), ("recall", True)],  # "often?" was in hand
        [],
    ]
    assert model.engines[0][1].interrupted
    assert found[1].rows() == []


def test_full_has_no_watermarks_to_sweep() -> None:
    found = results(EngineOptions(), ["full", "fifo", "fifo"], [(100, 50), (80, 40)])
    pairs = [(each.options.policy, each.options.high_watermark, each.options.low_watermark) for each in found]
    assert pairs == [("full", 100, 50), ("fifo", 100, 50), ("fifo", 80, 40)]


def test_a_sweep_is_a_table_a_pair_of_watermarks() -> None:
    task = replace(EXAM, due=[QUESTIONS[:1], ()])
    found, model = results(EngineOptions(), ["full", "streaming-llm"], [(100, 50), (80, 40)]), ScriptedModel(SAYS)
    fill(found, model, [task], lambda: False, lambda text: None)  # type: ignore[arg-type]
    lines = list(quality_lines([asdict(row) for each in found for row in each.rows()]))
    assert [line for line in lines if line.startswith("watermarks")] == ["watermarks 100/50", "watermarks 80/40"]
    assert sum(line.startswith("full") for line in lines) == 2 * 4  # now, all, ages, costs
    assert max(map(len, lines)) <= 80


def test_the_same_questions_are_compared_pair_by_pair() -> None:
    (full, fifo), _ = filled([EXAM, EXAM])
    assert all(row.difference is None for row in full.rows())
    found = {row.kind: row.difference for row in fifo.rows()}
    assert all(difference is not None and difference.to == "full" for difference in found.values())
    now, recall, both = (found[kind] for kind in ("now", "recall", "all"))
    assert now is not None
    assert recall is not None
    assert both is not None
    assert (now.low, now.mean, now.high) == (0, 0, 0)
    assert (recall.low, recall.mean, recall.high) == (-1, -1, -1)
    assert both.mean == pytest.approx(-1 / 3)
    assert both.low < both.mean < both.high <= 0


def test_shares_by_age() -> None:
    (_, fifo), _ = filled([EXAM])
    ages = fifo.rows()[-1].ages
    assert {age: (share.accuracy, share.n) for age, share in ages.items()} == {"0-4": (1, 1), "17-32": (0, 1)}


def test_sparse_positions_are_compared_with_compact_ones() -> None:
    found = results(EngineOptions(), ["full", "fifo"], [(100, 50)], ["compact", "sparse"])
    assert [(each.options.policy, each.options.positions, each.base_name) for each in found] == [
        ("full", "compact", "full"),
        ("fifo", "compact", "full"),
        ("fifo", "sparse", "compact"),
    ]
    assert found[0].base is None
    assert found[1].base is found[0]
    assert found[2].base is found[1]
    fill(found, ScriptedModel(SAYS), [EXAM], lambda: False, lambda text: None)  # type: ignore[arg-type]
    lines = list(quality_lines([asdict(row) for each in found for row in each.rows()]))
    assert [line for line in lines if line.startswith("watermarks")] == [
        "watermarks 100/50, compact positions",
        "watermarks 100/50, sparse positions",
    ]


def test_a_sweep_changes_one_setting_at_a_time() -> None:
    sweep = [("image_sinks", 0), ("image_sinks", 4), ("recent_units", None), ("recent_units", 3)]
    found = results(EngineOptions(), ["omnipick"], [(100, 50)], ["compact"], sweep)
    changed = [(each.settings, each.options.image_sinks, each.options.recent_units) for each in found]
    assert changed == [
        (["", "image-sinks=4", "recent-units=auto"], 4, None),  # the defaults are a point of both curves
        (["image-sinks=0"], 0, None),
        (["recent-units=3"], 4, 3),
    ]
    fill(found, ScriptedModel({"omnipick": TRUE}), [EXAM], lambda: False, lambda text: None)  # type: ignore[arg-type]
    rows = [row for each in found for row in each.rows() if row.kind == "all"]
    assert [row.setting for row in rows] == [
        "",
        "image-sinks=4",
        "recent-units=auto",
        "image-sinks=0",
        "recent-units=3",
    ]
    assert [row.difference and row.difference.to for row in rows] == [None, None, None, "defaults", "defaults"]


def test_a_sweep_is_of_the_policies_whose_setting_it_is() -> None:
    sweep = [("sinks", 0), ("image_sinks", 0), ("min_pages", 1)]
    found = results(EngineOptions(), ["full", "fifo", "streaming-llm", "omnipick"], [(100, 50)], ["compact"], sweep)
    changed = [(each.options.policy, each.settings) for each in found]
    assert changed == [
        ("full", [""]),
        ("fifo", [""]),
        ("fifo", ["min-pages=1"]),
        ("streaming-llm", [""]),
        ("streaming-llm", ["sinks=0"]),
        ("streaming-llm", ["min-pages=1"]),
        ("omnipick", [""]),
        ("omnipick", ["image-sinks=0"]),
        ("omnipick", ["min-pages=1"]),
    ]


def test_exams_are_of_the_seeds_that_were_asked_for() -> None:
    tasks = list(world_tasks(TEST, seed=3, units=12, limit=14))
    assert [task.name for task in tasks] == ["test 3", "test 4"]
    said: list[Question] = [question for task in tasks for due in task.due for question in due]
    asked = [question for question in said if question.kind != "typed"]
    assert len(asked) == 14
    assert {question.kind for question in asked} == {"now", "recall", "count"}
    assert all(len(task.units) == len(task.due) == 12 for task in tasks)
    other = next(world_tasks(VALIDATION, seed=3, units=12, limit=10))
    assert [[q.text for q in due] for due in other.due] != [[q.text for q in due] for due in tasks[0].due]

"""What a session leaves for people: bounded, and read as if an enemy had written it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from omnitide_cli.errors import SessionFileError
from omnitide_cli.runtime import journal as module
from omnitide_cli.runtime.events import Alert, Answer, RecalledMoment, TokenCounts, UnitIngested
from omnitide_cli.runtime.journal import HEAD, Journal, Picture, Said


@dataclass
class Unit:
    start: float
    end: float
    frame: NDArray[np.uint8] | None


def noise(seed: int) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 255, (90, 320, 3), np.uint8)


def taken(start: float) -> UnitIngested:
    counts = TokenCounts(image=16, audio=0, boundary=4, total=20)
    return UnitIngested(int(start), start, start + 1, counts, 20, 64, 64, 1.0, 1.0, 0.1, 0.0, 0)


def feed(journal: Journal, seconds: int, still: bool = False) -> None:
    for second in range(seconds):
        journal.saw(Unit(second, second + 1.0, noise(0 if still else second)))
        journal.note(taken(second))


def answer(at: float, *recalled: tuple[float, float]) -> Answer:
    moments = tuple(RecalledMoment(start, end, 0.5) for start, end in recalled)
    return Answer(at, 1, "What?", "A circle.", 3, 1.0, 1.0, "eos", recalled=moments)


def test_pictures_and_answers_come_back_as_they_were() -> None:
    journal = Journal()
    feed(journal, 4)
    journal.note(answer(4.0, (1.0, 2.0)))
    again = Journal.read(journal.to_bytes())
    assert again.answers == journal.answers == [Said(4.0, "What?", "A circle.", None, ((1.0, 2.0, 0.5),))]
    assert again.pictures == journal.pictures
    assert [(each.start, each.end) for each in again.pictures] == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_alerts_are_kept_among_the_answers() -> None:
    journal = Journal()
    journal.note(Alert("fox", "Is there a fox?", 4.0, 3.0, 0.9, "A fox eats.", wall="2026-03-01T14:03:22.125+01:00"))
    journal.note(Alert("fox", "Is there a fox?", 9.0, 9.0, 0.9, ""))
    first, second = Journal.read(journal.to_bytes()).answers
    assert first == Said(4.0, "Alert: fox", "A fox eats.", "2026-03-01T14:03:22.125+01:00")
    assert second == Said(9.0, "Alert: fox", "Is there a fox?")


def test_a_unit_that_was_taken_back_leaves_no_picture() -> None:
    journal = Journal()
    journal.saw(Unit(0.0, 1.0, noise(1)))
    journal.saw(Unit(1.0, 2.0, None))
    journal.note(taken(1.0))
    assert journal.pictures == []


def test_what_does_not_change_is_one_picture() -> None:
    journal = Journal()
    feed(journal, 5, still=True)
    assert [(each.start, each.end) for each in journal.pictures] == [(0, 5)]


def test_it_stays_below_its_bound_and_keeps_what_answers_came_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 100_000)
    monkeypatch.setattr(module, "MOST_ANSWERS", 3)
    journal = Journal()
    feed(journal, 3)
    for at in range(5):
        journal.note(answer(float(at), (1.0, 2.0)))
    journal.saw(Unit(3.0, 4.0, noise(3)))
    for second in range(3, 200):
        journal.saw(Unit(second, second + 1.0, noise(second)))
        journal.note(taken(second))
        assert sum(len(each.jpeg) for each in journal.pictures) <= 100_000
    assert len(journal.answers) == 3
    assert journal.pictures_of(1.0, 2.0)[0].start == 1.0
    assert journal.pictures[-1].end == 200
    starts = [each.start for each in journal.pictures]
    assert starts == sorted(starts)


def test_a_moment_whose_picture_is_gone_is_shown_by_a_near_one_or_by_none() -> None:
    journal = Journal([], [Picture(0.0, 1.0, b"\xff\xd8a"), Picture(8.0, 9.0, b"\xff\xd8b")])
    assert [each.start for each in journal.pictures_of(0.0, 10.0)] == [0.0, 8.0]
    assert [each.start for each in journal.pictures_of(0.5, 0.5)] == [0.0]
    assert [each.start for each in journal.pictures_of(5.0, 6.0)] == [8.0]
    assert journal.pictures_of(40.0, 41.0) == []


def test_bytes_that_no_session_wrote_are_refused() -> None:
    journal = Journal()
    feed(journal, 2)
    journal.note(answer(2.0))
    data = journal.to_bytes()
    assert Journal.read(b"").pictures == []
    text = json.loads(data[HEAD.size : HEAD.size + HEAD.unpack_from(data)[0]])
    pictures = data[HEAD.size + HEAD.unpack_from(data)[0] :]

    def of(contents: object, rest: bytes = pictures) -> bytes:
        known = json.dumps(contents).encode()
        return HEAD.pack(len(known)) + known + rest

    Journal.read(of(text))
    said = text["answers"][0]
    for wrong in (
        b"xy",
        data[:-1],
        data + b"x",
        data[: HEAD.size + 5],
        HEAD.pack(0xFFFFFFFF) + data,
        of([]),
        of(text, b"\x00" * len(pictures)),
        of({**text, "more": 1}),
        of({**text, "pictures": [[0.0, 1.0, -5], *text["pictures"]]}),
        of({**text, "pictures": [[0.0, 1.0]]}),
        of({**text, "pictures": [[5.0, 1.0, text["pictures"][0][2]], text["pictures"][1]]}),
        of({**text, "answers": [{**said, "at": -1}]}),
        of({**text, "answers": [{**said, "text": 1}]}),
        of({**text, "answers": [{**said, "recalled": [[1.0]]}]}),
    ):
        with pytest.raises(SessionFileError):
            Journal.read(wrong)
    random = np.random.default_rng(0)
    for _ in range(500):
        mutated = bytearray(data)
        for place in random.integers(0, HEAD.size + HEAD.unpack_from(data)[0], 2):
            mutated[place] = int(random.integers(0, 256))
        try:
            Journal.read(bytes(mutated))
        except SessionFileError as refused:
            assert refused.message  # noqa: PT017

"""An engine that plays a part instead of a model.

It follows the runtime's contract to the letter and computes nothing: what is tested with it is all that is around it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from omnitide_cli.runtime.events import (
    Answer,
    AnswerDelta,
    Event,
    Retention,
    SessionStarted,
    Summary,
    TokenCounts,
    UnitIngested,
)
from omnitide_cli.runtime.kv_state import CellClasses, KvState
from omnitide_cli.runtime.saved import SavedEngine, SavedTotals
from omnitide_cli.runtime.session_file import SessionFile
from omnitide_cli.runtime.step import Step
from omnitide_cli.runtime.stream_clock import StreamClock, iso_now
from omnitide_cli.runtime.yes_no import Weighed

DELAY = "SCRIPTED_ENGINE_DELAY"
"""Environment variable: seconds that a unit or a word takes."""

LOADING = "SCRIPTED_ENGINE_LOADING"
"""Environment variable: seconds that loading takes."""

FAILS_AT = "SCRIPTED_ENGINE_FAILS_AT"
"""Environment variable: the unit that can't be taken in."""

TEXT = "SCRIPTED_ENGINE_TEXT"
"""Environment variable: what it answers."""


def module_with(engine: type[ScriptedEngine]) -> ModuleType:
    """What stands in for `omnitide_cli.runtime.engine`."""
    module = ModuleType("omnitide_cli.runtime.engine")
    module.__dict__["Engine"] = engine
    return module


class ScriptedEngine:
    """Answers every question with a fixed text, word by word; the class remembers how it was opened."""

    text = "A red circle."
    opened: ClassVar[list[Any]] = []
    audio_format = None  # it hears whatever it is given
    on_ingest: ClassVar[Any] = staticmethod(lambda engine, index: None)
    on_delta: ClassVar[Any] = staticmethod(lambda engine, index: None)

    def __init__(self, files: Any, prompt: Any, options: Any) -> None:
        self.files, self.prompt, self.options = files, prompt, options
        self.units: list[Any] = []
        self.asked: list[tuple[str, float]] = []
        self.clock = StreamClock()
        self.interrupted = False
        self.closed = False

    @classmethod
    def open(cls, files: Any, prompt: Any, options: Any, *, progress: Callable[[float], None] | None = None) -> Self:
        for step in range(20):
            if progress:
                progress(step / 20)
            time.sleep(float(os.environ.get(LOADING, "0")) / 20)
        engine = cls(files, prompt, options)
        cls.opened.append(engine)
        return engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self, source: str, saved: SessionFile | None = None) -> Step[SessionStarted]:
        self.resumed = saved
        options = self.options
        started = SessionStarted(
            version="0.1.0",
            model=self.files.name,
            source=source,
            policy=options.policy,
            layout=options.layout,
            positions=options.positions,
            high_watermark=options.high_watermark,
            low_watermark=options.low_watermark,
            n_ctx=4096,
            page_size=64,
            subblock_size=32,
            cache_type=options.cache_type,
            threads=2,
            flash_attn=True,
            resumed_at=saved.saved.media.clock if saved else None,
            wall=iso_now(),
        )
        return Step(SessionStarted, [started])

    def ingest(self, unit: Any) -> Step[UnitIngested]:
        self.on_ingest(self, unit.index)
        time.sleep(float(os.environ.get(DELAY, "0")))
        if str(unit.index) == os.environ.get(FAILS_AT):
            raise RuntimeError("the scripted engine fails")
        self.units.append(unit)
        self.clock.take(unit)
        unit_event = UnitIngested(
            index=unit.index,
            start=unit.start,
            end=unit.end,
            tokens=TokenCounts(image=16, audio=25, boundary=4, total=45),
            history_tokens=45 * len(self.units),
            page_span=64 * len(self.units),
            physical_span=256,
            encode_ms=1.0,
            prefill_ms=2.0,
            maintain_ms=0.1,
            lag_ms=self.clock.lag_ms(),
            dropped_frames=unit.dropped_frames,
            wall=self.clock.wall(unit.end),
        )
        cut = Retention(
            unit=unit.index,
            before_tokens=90,
            after_tokens=45,
            deleted_tokens=45,
            full_units=1,
            partial_units=0,
            dropped_units=1,
            plan_ms=0.1,
        )
        return Step(UnitIngested, [unit_event, cut])

    def ask(self, question: str, at: float) -> Step[Answer]:
        return Step(Answer, self._answer(question, at), self.interrupt)

    def _answer(self, question: str, at: float) -> Iterator[Event]:
        self.asked.append((question, at))
        said = ""
        for index, word in enumerate(os.environ.get(TEXT, self.text).split(" ")):
            self.on_delta(self, index)
            time.sleep(float(os.environ.get(DELAY, "0")))
            piece = f" {word}" if index else word
            said += piece
            yield AnswerDelta(at=at, text=piece)
            if self.interrupted:
                break
        yield Answer(
            at=at,
            unit=len(self.units) - 1,
            question=question,
            text=said,
            tokens=len(said.split(" ")),
            ttft_ms=5.0,
            tokens_per_s=100.0,
            stop="interrupted" if self.interrupted else "eos",
            wall=self.clock.wall(at),
        )
        self.interrupted = False

    # Of rules: yes to everything.
    yes_no = None

    @property
    def rehearsal(self) -> Self:
        return self

    def weigh(self, question: str) -> Weighed:
        return Weighed(0.97, 1.0, 0.1)

    def answer(self, question: str, most: int) -> str:
        return "A fox eats."

    def wall(self, at: float) -> str | None:
        return self.clock.wall(at)

    def cell_letters(self) -> bytes:
        return (b"M" * 5 + b"R" * 40).ljust(4096, b".")

    can_save = True

    def save_sections(self) -> dict[bytes, bytes]:
        return {}

    def save(self) -> tuple[SavedEngine, np.ndarray]:
        sums = {field.name: 0 for field in fields(SavedTotals)} | {"units": len(self.units)}
        return SavedEngine(4096, 45 * len(self.units), SavedTotals(**sums)), np.arange(100, dtype=np.uint8)

    def interrupt(self) -> None:
        self.interrupted = True

    def summary(self) -> Summary:
        return Summary(
            units=len(self.units),
            media_s=self.units[-1].end if self.units else 0.0,
            stream_loop_s=0.5,
            answers=len(self.asked),
            history_tokens=45 * len(self.units),
            peak_history_tokens=45 * len(self.units),
            page_span=64,
            physical_span=256,
            peak_physical_span=256,
            dropped_frames=sum(unit.dropped_frames for unit in self.units),
            lost_sound_s=self.units[-1].lost_sound_s if self.units else 0.0,
        )

    def kv_state(self, name: str) -> KvState:
        cells = 45 * len(self.units)
        return KvState(
            session=name,
            running=True,
            page_size=64,
            subblock_size=32,
            cells=4096,
            useful_cells=cells,
            physical_span=256,
            page_span=64 * len(self.units),
            span_ratio=1.0,
            active_pages=len(self.units),
            active_subblocks=len(self.units),
            holes=0,
            largest_hole=0,
            fragmentation=0.0,
            classes=CellClasses(0, 0, cells),
            peak_physical_span=256,
            kv_bytes=None,
            units=(),
            cell_map="R" * cells + "." * (4096 - cells),
        )

    def close(self) -> None:
        self.closed = True


if __name__ == "__main__":  # a whole process whose engine is this one: for pipes and terminals
    sys.modules["omnitide_cli.runtime.engine"] = module_with(ScriptedEngine)
    from omnitide_cli.app import main

    main()

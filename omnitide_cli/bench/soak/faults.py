"""What goes wrong in a day of streaming, put into a soak: damaged and missing pictures, silence, work cut off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from omnitide_cli.errors import RuntimeFailure
from omnitide_cli.media import MediaUnit
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Event, UnitIngested

EVERY = 50
"""Units from one fault to the next."""

SCRAP = 100
"""Samples of sound that are too few for a token."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of it. `damage` makes the unit that comes in; `taken`: whether it must be in the history afterwards."""

    name: str
    damage: Callable[[MediaUnit], MediaUnit]
    taken: bool = True
    stopped: bool = False
    """llama.cpp is told to give the prefill up."""

    def inject(self, engine: Engine, unit: MediaUnit) -> Iterable[Event]:
        """Feed the damaged unit; what the engine reports. Raises RuntimeFailure if it ends otherwise than it must."""
        before = engine.session.snapshot().history_tokens
        if self.stopped:
            engine.interrupt()
        try:
            events: Iterable[Event] = engine.ingest(self.damage(unit))
        except ValueError:  # what is no picture is refused by the session's own check
            events = []
        is_taken = any(isinstance(event, UnitIngested) for event in events)
        if is_taken != self.taken:
            raise RuntimeFailure(f"{self.name}: the unit was {'taken' if is_taken else 'not taken'}")
        if not is_taken and engine.session.snapshot().history_tokens != before:
            raise RuntimeFailure(f"{self.name}: the unit left something in the history")
        engine.session.check()
        return events


def _noise(unit: MediaUnit) -> MediaUnit:
    if unit.frame is None:
        return unit
    random = np.random.default_rng(unit.index)
    return replace(unit, frame=random.integers(0, 256, unit.frame.shape, dtype=np.uint8))


def _misshapen(unit: MediaUnit) -> MediaUnit:
    return replace(unit, frame=np.zeros((7, 5), np.uint8))


def _silent(unit: MediaUnit) -> MediaUnit:
    return unit if unit.audio is None else replace(unit, audio=np.zeros_like(unit.audio))


def _cut_short(unit: MediaUnit) -> MediaUnit:
    return unit if unit.audio is None else replace(unit, audio=unit.audio[:SCRAP])


FAULTS = (
    Fault("a picture of noise", _noise),
    Fault("no picture", lambda unit: replace(unit, frame=None)),
    Fault("silence", _silent),
    Fault("no sound", lambda unit: replace(unit, audio=None)),
    Fault("neither picture nor sound", lambda unit: replace(unit, frame=None, audio=None)),
    Fault("a scrap of sound", _cut_short),
    Fault("what is no picture", _misshapen, taken=False),
    # Sound alone: its encoder asks nobody whether to stop, so that llama.cpp is stopped in mid-decode.
    Fault("a prefill that is stopped", lambda unit: replace(unit, frame=None), taken=False, stopped=True),
)


def due(index: int) -> Fault | None:
    """The fault that comes with this unit: each kind in turn."""
    number, rest = divmod(index + 1, EVERY)
    return None if rest else FAULTS[(number - 1) % len(FAULTS)]

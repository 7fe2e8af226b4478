"""Where the events of a session go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from omnitide_cli.runtime.events import Event
from omnitide_cli.runtime.kv_state import SessionSnapshot

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SeenUnit(Protocol):
    """What the display sees of a media unit."""

    @property
    def start(self) -> float: ...
    @property
    def end(self) -> float: ...
    @property
    def frame(self) -> NDArray[np.uint8] | None: ...
    @property
    def audio(self) -> NDArray[np.float32] | None: ...


class Sink(Protocol):
    """One consumer of a session; calls come in the order of the session, from one thread.

    A sink defines what it wants to hear of.
    """

    def watching(self, unit: SeenUnit) -> None:
        """A unit goes to the model; its event follows."""

    def asking(self, question: str, at: float) -> None:
        """A question goes to the model at media second `at`; its answer's events follow."""

    def emit(self, event: Event) -> None:
        """Something happened."""

    def show_kv(self, snapshot: SessionSnapshot) -> None:
        """Who sits there wants to see the cache."""

    def ended(self) -> None:
        """The stream is over; the session continues with what is typed."""

    def media_over(self, at: float) -> None:
        """The source itself ends at media second `at`: there is nothing to be seen behind it."""

    def failed(self, error: BaseException) -> None:
        """The session ends early because of `error`; a summary may still follow."""

    def close(self) -> None:
        """Nothing more comes."""


class Tee(Sink):
    """A sink that passes everything on to several others, in order."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks

    def watching(self, unit: SeenUnit) -> None:
        for sink in self._sinks:
            sink.watching(unit)

    def asking(self, question: str, at: float) -> None:
        for sink in self._sinks:
            sink.asking(question, at)

    def emit(self, event: Event) -> None:
        for sink in self._sinks:
            sink.emit(event)

    def show_kv(self, snapshot: SessionSnapshot) -> None:
        for sink in self._sinks:
            sink.show_kv(snapshot)

    def ended(self) -> None:
        for sink in self._sinks:
            sink.ended()

    def media_over(self, at: float) -> None:
        for sink in self._sinks:
            sink.media_over(at)

    def failed(self, error: BaseException) -> None:
        for sink in self._sinks:
            sink.failed(error)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()

"""Where the events of a session go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from omnitide_cli.runtime.events import Event


class Sink(Protocol):
    """One consumer of a session; calls come in the order of the session, from one thread."""

    def asking(self, question: str, at: float) -> None:
        """A question goes to the model at media second `at`; its answer's events follow."""
        ...

    def emit(self, event: Event) -> None:
        """Something happened."""
        ...

    def failed(self, error: BaseException) -> None:
        """The session ends early because of `error`; a summary may still follow."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


class Tee:
    """A sink that passes everything on to several others, in order."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = sinks

    def asking(self, question: str, at: float) -> None:
        for sink in self._sinks:
            sink.asking(question, at)

    def emit(self, event: Event) -> None:
        for sink in self._sinks:
            sink.emit(event)

    def failed(self, error: BaseException) -> None:
        for sink in self._sinks:
            sink.failed(error)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()

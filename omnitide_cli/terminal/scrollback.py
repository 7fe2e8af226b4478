"""What stays on the terminal when a full screen is gone."""

from __future__ import annotations

from collections import deque

from omnitide_cli.formats.sink import Sink
from omnitide_cli.runtime.events import (
    Alert,
    AlertEnded,
    Answer,
    AnswerDelta,
    Event,
    Notice,
    SessionSaved,
    Summary,
)

MOST_KEPT = 1000


class Scrollback(Sink):
    """Keeps answers, alerts, warnings and the summary, and passes them on once nothing more comes."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._kept: deque[Event] = deque(maxlen=MOST_KEPT)

    def emit(self, event: Event) -> None:
        if isinstance(event, Answer | Alert | AlertEnded | Notice | SessionSaved | Summary):
            self._kept.append(event)

    def failed(self, error: BaseException) -> None:
        self._sink.failed(error)

    def close(self) -> None:
        for event in self._kept:
            if isinstance(event, Answer):
                self._sink.asking(event.question, event.at)
                self._sink.emit(AnswerDelta(at=event.at, text=event.text))
            self._sink.emit(event)
        self._sink.close()

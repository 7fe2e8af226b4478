"""What a running session keeps for afterwards, as a consumer of its events."""

from __future__ import annotations

from omnitide_cli.formats.sink import SeenUnit, Sink
from omnitide_cli.runtime.events import Event
from omnitide_cli.runtime.journal import Journal


class Journalist(Sink):
    """Writes the journal: every picture that was taken in, every answer."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def watching(self, unit: SeenUnit) -> None:
        self._journal.saw(unit)

    def emit(self, event: Event) -> None:
        self._journal.note(event)

"""What one call of the engine does, as the events it causes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from omnitide_cli.runtime.events import Event

E = TypeVar("E", bound=Event)


class Step(Generic[E]):
    """The events of one call, in order; iterating again gives the same ones again.

    An answer is generated while its events are read, so that each can be shown at once; everything else is done by the
    time the step is returned. Nobody has to read to the end: `finish` does the rest, and so does the next call.
    """

    def __init__(self, kind: type[E], coming: Iterable[Event], stop: Callable[[], None] = lambda: None) -> None:
        """`stop` makes what is still to come short."""
        self._kind = kind
        self._coming = iter(coming)
        self._stop = stop
        self._events: list[Event] = []
        self._begun = False
        self._over = False

    def __iter__(self) -> Iterator[Event]:
        index = 0
        while index < len(self._events) or self._advance():
            yield self._events[index]
            index += 1

    @property
    def result(self) -> E | None:
        """The event that the call was made for, the rest done; None when it was interrupted or refused."""
        events = [event for event in self if isinstance(event, self._kind)]
        return events[0] if events else None

    def finish(self) -> None:
        """Cut an answer short where its reader left, and do what follows one. One that nobody began to read isn't
        asked at all."""
        if not self._over and self._begun:
            self._stop()
            for _ in self:
                pass
        self.close()

    def close(self) -> None:
        """Give up what is still to come."""
        self._over = True
        close = getattr(self._coming, "close", None)
        if close is not None:
            close()

    def _advance(self) -> bool:
        if self._over:
            return False
        self._begun = True
        try:
            self._events.append(next(self._coming))
        except BaseException as error:
            self._over = True
            if not isinstance(error, StopIteration):
                raise
        return not self._over

"""The events of a library session, for who reads them later and who hears them at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from omnitide_cli.runtime.events import Event

MOST_UNREAD = 10_000


class EventQueue:
    """The events of a session. Iterating takes those that came since the last time; `subscribe` hears each at once."""

    def __init__(self) -> None:
        self._unread: deque[Event] = deque(maxlen=MOST_UNREAD)
        self._listeners: list[Callable[[Event], object]] = []

    def __iter__(self) -> Iterator[Event]:
        """What has come and was not taken yet, the oldest first; of very many, the newest 10,000."""
        while self._unread:
            yield self._unread.popleft()

    def subscribe(self, listener: Callable[[Event], object]) -> Callable[[], None]:
        """Call `listener` with every event from now on, on the session's thread; returns what ends that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def put(self, event: Event) -> None:
        """An event came."""
        self._unread.append(event)
        for listener in tuple(self._listeners):
            listener(event)

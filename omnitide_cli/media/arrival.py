"""A thread that reads a stream as it comes, and notes when."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise

from av.packet import Packet

MOST_WAITING = 4000
"""Packets that wait for a model that is behind: minutes of pictures. Then the sender has to wait."""

JUDGED = 8
"""Packets from whose arrival it is told whether a stream comes live."""

LIVE_PACE = 0.6
"""Of the time that packets claim, how much at least has to pass between them if they come live."""

Arrived = tuple[Packet, float]


class ArrivalReader(threading.Thread):
    """Owns reading from a container: `close` it, and `close_container` is called once nothing is read any more.

    A read from a network can't be ended; who doesn't want to wait for it leaves this thread to it.
    """

    def __init__(self, packets: Iterator[Packet], close_container: Callable[[], None]) -> None:
        super().__init__(name="reader", daemon=True)
        self._packets = packets
        self._close_container = close_container
        self._queue: queue.Queue[Arrived | Exception | None] = queue.Queue(MOST_WAITING)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._is_reading = True
        self._ahead: list[Arrived] = []
        self.notes_times = True
        """Whether frames bear the time at which they came, or what they claim."""
        self.arrived_at: float | None = None
        """When the newest packet that was handed out had arrived, on time.monotonic()'s clock."""

    def run(self) -> None:
        last: Exception | None = None
        try:
            for packet in self._packets:
                self._put((packet, time.monotonic()))
                if self._closing.is_set():
                    break
        except Exception as error:
            last = error
        self._put(last)
        with self._lock:
            self._is_reading = False
            if self._closing.is_set():
                self._close_container()

    def __iter__(self) -> Iterator[Packet]:
        """The packets in order; raises what reading raises."""
        while (arrived := self._ahead.pop(0) if self._ahead else self._take()) is not None:
            packet, self.arrived_at = arrived
            yield packet

    def comes_live(self, claimed: Fraction) -> bool:
        """Look at the first packets: do they come at the pace of a live stream? `claimed`: seconds a packet."""
        while len(self._ahead) < JUDGED and (arrived := self._take()) is not None:
            self._ahead.append(arrived)
        times = [at for _, at in self._ahead]
        # What libav has read to find out what it is comes at once; the packets behind come at their pace.
        waits = [after - before for before, after in pairwise(times)][-JUDGED // 2 :]
        return bool(waits) and sum(waits) / len(waits) >= LIVE_PACE * claimed

    def close(self, timeout: float = 0.3) -> None:
        """Stop; a read that waits is left alone after `timeout` seconds. Closes the container now or then."""
        self._closing.set()
        if self.is_alive():
            self.join(timeout)
        with self._lock:
            if not self._is_reading:
                self._close_container()

    def _put(self, item: Arrived | Exception | None) -> None:
        while not self._closing.is_set():
            try:
                self._queue.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def _take(self) -> Arrived | None:
        while True:
            try:
                item = self._queue.get(timeout=0.2)  # a wait without an end would take no signal
            except queue.Empty:
                continue
            if isinstance(item, Exception):
                self._queue.put(None)
                raise item
            if item is None:
                self._queue.put(None)
            return item

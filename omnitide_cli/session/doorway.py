"""Questions from other processes to a session that runs: `omnitide ask TEXT` in a second terminal.

A session listens on a Unix socket in the runtime folder, which only its user can reach (folder 0700, socket 0600);
nothing listens on a network. Whoever asks sends one JSON object in a line, {"ask": TEXT}, and gets the events of its
answer back, as `--json` writes them, until the connection ends.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from omnitide_cli.formats.sink import Sink
from omnitide_cli.runtime.events import Event
from omnitide_cli.runtime.published import open_folder

SUFFIX = ".sock"
LONGEST_LINE = 1 << 16
PATIENCE_S = 5.0
"""Who connects has so long to say something."""
DELIVERY_S = 0.5
"""The session waits so long for a reader that doesn't take its answer, once."""
MOST_WAITING = 64


class Visitor:
    """One question and the connection that it came by."""

    def __init__(self, question: str, connection: socket.socket) -> None:
        self.question = question
        self._connection: socket.socket | None = connection

    def tell(self, event: Event) -> None:
        """Send an event; one who doesn't listen is left."""
        if self._connection is None:
            return
        try:
            self._connection.settimeout(DELIVERY_S)
            self._connection.sendall(json.dumps(event.to_json()).encode() + b"\n")
        except OSError:
            self.leave()

    def leave(self) -> None:
        """Nothing more comes."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Doorway(Sink):
    """The socket of one session. Visitors are taken with `poll` and answered inside `answering`, on its thread."""

    def __init__(self, folder: Path, on_visit: Callable[[], object] = lambda: None) -> None:
        """`on_visit` is called from another thread when somebody has asked. Raises OSError."""
        self._waiting: SimpleQueue[Visitor] = SimpleQueue()
        self._current: Visitor | None = None
        self._on_visit = on_visit
        self._is_closed = False
        open_folder(folder)
        clean(folder)
        self._path = folder / f"{os.getpid()}{SUFFIX}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            with _reachable(self._path) as address:
                before = os.umask(0o177)
                try:
                    self._socket.bind(address)
                finally:
                    os.umask(before)
            self._socket.listen(8)
        except OSError:
            self._socket.close()
            raise
        threading.Thread(target=self._serve, name="doorway", daemon=True).start()

    def poll(self) -> Visitor | None:
        """Who waits longest for an answer."""
        with suppress(Empty):
            return self._waiting.get_nowait()
        return None

    @contextmanager
    def answering(self, visitor: Visitor) -> Iterator[None]:
        """Inside, the session's events go to the visitor, too."""
        self._current = visitor
        try:
            yield
        finally:
            self._current = None
            visitor.leave()

    def emit(self, event: Event) -> None:
        if self._current is not None:
            self._current.tell(event)

    def close(self) -> None:
        """Take the socket away; who still waits is told by the end of the connection. Harmless when called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(OSError):
            self._path.unlink()
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._socket.close()
        while (visitor := self.poll()) is not None:
            visitor.leave()

    def _serve(self) -> None:
        while not self._is_closed:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._welcome, args=(connection,), daemon=True).start()

    def _welcome(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE_S)
        question = _question(connection)
        if not question or self._waiting.qsize() >= MOST_WAITING or self._is_closed:
            connection.close()
            return
        self._waiting.put(Visitor(question, connection))
        self._on_visit()


def clean(folder: Path) -> None:
    """Remove the sockets of sessions that were killed."""
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            connected(path).close()
        except ConnectionRefusedError:
            with suppress(OSError):
                path.unlink()
        except OSError:
            pass


def connected(path: Path) -> socket.socket:
    """A connection to the session that listens there. Raises OSError, ConnectionRefusedError where none does."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        with _reachable(path) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        raise
    return connection


def _question(connection: socket.socket) -> str:
    data = b""
    try:
        while b"\n" not in data and len(data) <= LONGEST_LINE and (more := connection.recv(4096)):
            data += more
        known: Any = json.loads(data.partition(b"\n")[0])
    except (OSError, ValueError, RecursionError):
        return ""
    question = known.get("ask") if isinstance(known, dict) else None
    return question.strip() if isinstance(question, str) and len(data) <= LONGEST_LINE else ""


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """An address of a socket: a path, or one through the open folder where it is longer than an address may be."""
    if len(os.fsencode(path)) < 100:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)

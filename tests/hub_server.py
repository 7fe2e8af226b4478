"""A server on this machine that speaks the hub's protocol: HEAD with the file's version, GET with ranges."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """What is served, and what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.etags: dict[str, str] = {}
        """Other than the checksum of the file."""
        self.ranges: list[str] = []
        """The Range header of every GET ("" without one)."""
        self.heads = 0
        self.cut_after: list[int] = []
        """Bytes after which the next answers break off, one an answer."""
        self.stall_after: int | None = None
        """Bytes after which an answer hangs."""
        self.address = ""

    def etag(self, path: str) -> str:
        return self.etags.get(path) or hashlib.sha256(self.files[path]).hexdigest()


@contextmanager
def serving() -> Iterator[Hub]:
    """Serve until the block ends."""
    hub = Hub()

    class Handler(_Handler):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.stall_after = None
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    served: Hub

    def log_message(self, format: str, *args: Any) -> None:
        """Not into the tests' output."""

    def _path(self) -> str | None:
        repo, _, rest = self.path.partition("/resolve/")
        path = f"{repo.strip('/')}/{rest.partition('/')[2]}"
        if path in self.served.files:
            return path
        self.send_response(404)
        self.send_header("X-Error-Code", "EntryNotFound")
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def _headers(self, path: str, length: int) -> None:
        etag = f'"{self.served.etag(path)}"'
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", etag)
        self.send_header("X-Linked-Etag", etag)
        self.send_header("X-Linked-Size", str(len(self.served.files[path])))
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def do_HEAD(self) -> None:
        self.served.heads += 1
        if path := self._path():
            self.send_response(200)
            self._headers(path, len(self.served.files[path]))

    def do_GET(self) -> None:
        path = self._path()
        if path is None:
            return
        asked = self.headers.get("Range", "")
        self.served.ranges.append(asked)
        whole = self.served.files[path]
        begin = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{len(whole) - 1}/{len(whole)}")
        self._headers(path, len(whole) - begin)
        part = whole[begin:]
        if self.served.cut_after:
            part = part[: self.served.cut_after.pop(0)]
        if (stall := self.served.stall_after) is not None:
            self.wfile.write(part[:stall])
            self.wfile.flush()
            while self.served.stall_after is not None:
                time.sleep(0.05)
            return
        self.wfile.write(part)

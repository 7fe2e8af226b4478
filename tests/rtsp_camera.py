"""A camera at an rtsp:// address of this machine: what it has seen, as an MPEG transport stream over its connection."""

from __future__ import annotations

import base64
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PACKETS = 7 * 188
"""Bytes of transport stream in one RTP packet, as RFC 2250 advises."""

SESSION = """v=0
o=- 0 0 IN IP4 127.0.0.1
s=camera
t=0 0
m=video 0 RTP/AVP 33
a=control:track1
"""


class _Viewer(socketserver.StreamRequestHandler):
    """One viewer: answers its requests (RFC 2326), then plays the clip once and hangs up."""

    def handle(self) -> None:
        while (request := self._request()) is not None:
            method, headers = request
            answer = {"CSeq": headers.get("cseq", "0"), "Session": "1"}
            body = ""
            login = getattr(self.server, "login")  # noqa: B009
            if login and method != "OPTIONS" and headers.get("authorization") != login:
                answer["WWW-Authenticate"] = 'Basic realm="camera"'
                self._answer("401 Unauthorized", answer)
                continue
            if method == "OPTIONS":
                answer["Public"] = "OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN"
            elif method == "DESCRIBE":
                body = SESSION.replace("\n", "\r\n")
                answer |= {"Content-Type": "application/sdp", "Content-Length": str(len(body))}
            elif method == "SETUP":
                answer["Transport"] = "RTP/AVP/TCP;unicast;interleaved=0-1"
            self._answer("200 OK", answer, body)
            if method == "PLAY":
                self._play()
                return

    def _answer(self, status: str, headers: dict[str, str], body: str = "") -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self.wfile.write(f"RTSP/1.0 {status}\r\n{lines}\r\n{body}".encode())

    def _request(self) -> tuple[str, dict[str, str]] | None:
        first = self.rfile.readline().decode().split()
        headers = {}
        while line := self.rfile.readline().decode().strip():
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return (first[0], headers) if first else None

    def _play(self) -> None:
        clip = getattr(self.server, "clip")  # noqa: B009
        for number, begin in enumerate(range(0, len(clip), PACKETS)):
            packet = struct.pack(">BBHII", 0x80, 33, number & 0xFFFF, number * 900, 1) + clip[begin : begin + PACKETS]
            self.wfile.write(struct.pack(">cBH", b"$", 0, len(packet)) + packet)


@contextmanager
def camera(clip: bytes, login: str = "") -> Iterator[str]:
    """The address of a camera that plays a transport stream to everyone who looks, or who has the login
    (user:password), which is not in the address."""
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Viewer)
    server.daemon_threads = True
    server.handle_error = lambda request, client_address: None  # a viewer who leaves is no news
    setattr(server, "clip", clip)  # noqa: B010
    setattr(server, "login", login and f"Basic {base64.b64encode(login.encode()).decode()}")  # noqa: B010
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"rtsp://127.0.0.1:{server.server_address[1]}/camera"
    finally:
        server.shutdown()
        server.server_close()

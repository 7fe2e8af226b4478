"""Case 16: a login works, and stands in nothing that is printed, published, saved or named."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
import rtsp_camera
from helpers_media import Video, make_clip, plain

Omnitide = Callable[..., Any]


class Guarded(BaseHTTPRequestHandler):
    """Gives the clip to those who have the login, wherever in the address it is expected."""

    clip = b""
    expected: tuple[str, str] = ("", "")

    def do_GET(self) -> None:
        user, password = self.expected
        basic = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        if self.headers.get("Authorization") != basic and password not in unquote(self.path):
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="camera"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.clip)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(self.clip)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def server(clip: Path) -> Iterator[str]:
    """Host and port of a camera that wants the login admin, hunter2@home (coded in the address or not)."""
    Guarded.clip, Guarded.expected = clip.read_bytes(), ("admin", "hunter2@home")
    with ThreadingHTTPServer(("127.0.0.1", 0), Guarded) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{running.server_port}"
        running.shutdown()


FORMS = [
    "http://admin:hunter2@home@{}/p.mkv",
    "http://admin:hunter2%40home@{}/p.mkv",
    "http://{}/p.mkv?user=admin&pwd=hunter2@home",
    "http://{}/p.mkv?channel=1&token=hunter2@home",
    "http://{}/user=admin_password=hunter2@home_channel=1_stream=0.mkv",
]
SECRETS = ("hunter2", "home@", "@home", "admin")


def assert_clean(folder: Path, *texts: str) -> None:
    for text in texts:
        assert not [secret for secret in SECRETS if secret in text], text
    for path in folder.rglob("*"):
        assert not [secret for secret in SECRETS if secret in path.name], path
        if path.is_file() and path.suffix != ".mkv":
            data = path.read_bytes()
            assert not [secret for secret in SECRETS if secret.encode() in data], path


@pytest.mark.parametrize("form", FORMS)
def test_watch_with_a_login_shows_it_nowhere(
    omnitide: Omnitide, engine: Any, server: str, form: str, tmp_path: Path
) -> None:
    address = form.format(server)
    saving = ("--save-session", "s.tide", "--transcript", "t.vtt", "--transcript", "t.jsonl")
    for more in (("--json",), ("-v",)):
        done = omnitide("--debug", "watch", address, "--ask", "What?", "--overwrite", *saving, *more)
        assert done.code == 0, done.err
        assert len(engine.opened[-1].units) == 3
        assert_clean(tmp_path, done.out, done.err)
    for arguments in (("inspect-kv",), ("inspect-kv", "--json"), ("inspect-kv", "--history"), ("inspect-kv", "s.tide")):
        shown = omnitide(*arguments)
        assert_clean(tmp_path, shown.out, shown.err)
    done = omnitide("watch", address, "--resume", "s.tide", "--ask", "And now?")
    assert done.code == 0, done.err
    assert omnitide("watch", address, "--resume", "last", "--ask", "And?").code == 0
    other = omnitide("watch", f"http://admin:hunter2@{server}/other.mkv", "--resume", "s.tide")
    assert other.code == 3
    assert_clean(tmp_path, done.out, done.err, other.out, other.err)


@pytest.mark.parametrize("form", FORMS)
def test_a_login_has_to_be_given_again(omnitide: Omnitide, engine: Any, server: str, form: str, tmp_path: Path) -> None:
    """The file doesn't hold it, and what is left of the address would be refused by the camera."""
    assert omnitide("watch", form.format(server), "--save-session", "s.tide", "--no-ask", "--duration", 2).code == 0
    for which in ("s.tide", "last"):
        done = omnitide("watch", "--resume", which)
        assert (done.code, len(engine.opened)) == (2, 1), done.err
        assert "omnitide watch" in done.err
        assert "doesn't hold the login" in done.err
        assert "s.tide.\n" in done.err
        assert_clean(tmp_path, done.out, done.err)
    assert omnitide("watch", form.format(server), "--resume", "last", "--no-ask", "--duration", 3).code == 0
    assert [unit.index for unit in engine.opened[-1].units] == [2]


@pytest.mark.parametrize("form", FORMS[:4])
def test_live_with_a_login_shows_it_nowhere(
    omnitide: Omnitide, engine: Any, server: str, form: str, tmp_path: Path
) -> None:
    flags = ("--mic", "none", "--duration", 2, "--ask", "What?", "--json", "--save-session", "l.tide")
    done = omnitide("--debug", "live", "--camera", form.format(server), *flags)
    assert done.code == 0, done.err
    assert any(unit.frame is not None for unit in engine.opened[-1].units)
    assert_clean(tmp_path, done.out, done.err)
    assert json.loads(omnitide("inspect-kv", "--json").out)["session"].endswith(f"-{os.getpid()}")


ODD = "hunter2\"<home'&ünd`>x"
"""A password with all that ends an address for those who find it in a text."""

ODD_FORMS = [
    "http://admin:{odd}@{host}/p.mkv",
    "http://admin:{coded}@{host}/p.mkv",
    "http://{host}/p.mkv?user=admin&pwd={odd}&channel=1",
    "http://{host}/p.mkv?user=admin&pwd={coded}",
    "http://{host}/user=admin&password={odd}/{odd}&channel=1/p.mkv",
    "http://{host}/p.mkv?user=admin&pwd={odd}{long}",
]


@pytest.mark.parametrize("form", ODD_FORMS)
@pytest.mark.parametrize("path", ["p.mkv", "none.mkv"])
def test_odd_logins_work_and_show_nowhere(
    omnitide: Omnitide, engine: Any, server: str, form: str, path: str, tmp_path: Path
) -> None:
    """Also those of an address that can't be read: the server gives a login's owner anything, others nothing."""
    Guarded.expected = ("admin", ODD)
    address = form.format(odd=ODD, coded=quote(ODD, safe=""), host=server, long="z" * 3000).replace("p.mkv", path)
    if path == "none.mkv":
        address = address.replace("hunter2", "hunter22")
    saving = ("--save-session", "s.tide", "--transcript", "t.vtt", "--transcript", "t.jsonl", "--overwrite")
    for more in (("--json",), ("-v",)):
        done = omnitide("--debug", "watch", address, "--ask", "What?", *saving, *more)
        assert done.code == (0 if path == "p.mkv" else 3), done.err
        assert_clean(tmp_path, done.out, done.err)
        for part in ("ünd", quote("ünd"), "home", "hunter", "zzzz"):
            assert part not in (done.out + done.err).replace(str(tmp_path), "")
    live = omnitide(
        "--debug", "live", "--camera", address, "--mic", "none", "--duration", 1, "--ask", "What?", "--json"
    )
    assert_clean(tmp_path, live.out, live.err)


@pytest.fixture
def rtsp(clip: Path, tmp_path: Path) -> Iterator[str]:
    """Host and port of a camera over RTSP that wants the login admin, hunter2@home."""
    made = make_clip(tmp_path / "live.ts", Video(plain((250, 250, 250)), seconds=3.0))
    with rtsp_camera.camera(Path(made).read_bytes(), "admin:hunter2@home") as address:
        yield address.removeprefix("rtsp://").removesuffix("/camera")


@pytest.mark.parametrize("command", [("watch",), ("live", "--mic", "none", "--camera")])
@pytest.mark.parametrize(
    ("login", "code"),
    [("admin:hunter2%40home@", 0), ("admin:hunter2@home@", 0), ("", 3), ("admin:hunter22@", 3), ("admin@", 3)],
)
def test_a_camera_over_rtsp_that_wants_a_login(
    omnitide: Omnitide, engine: Any, rtsp: str, tmp_path: Path, command: tuple[str, ...], login: str, code: int
) -> None:
    for output in ("--json", "--no-dashboard"):
        flags = ("--duration", 2, "--ask", "What?", "--save-session", "s.tide", output)
        done = omnitide("--debug", *command, f"rtsp://{login}{rtsp}/camera", *flags)
        expected = 5 if code and command[0] == "live" else code
        assert done.code == expected, done.err
        if code:
            last = done.err.splitlines()[-1]
            assert "login" in last, last
            assert "401" in last or "nauthorized" in last, last
        else:
            assert any(unit.frame is not None for unit in engine.opened[-1].units)
        assert_clean(tmp_path / "work", done.out, done.err)
        assert_clean(tmp_path / "home", done.out, done.err)


WRONG = [
    "http://admin:hunter2@127.0.0.1:9/p.ts",
    "rtsp://admin:hunter2/home@127.0.0.1:9/p",
    "rtsp://admin:hunter2?x@127.0.0.1:9/p",
    "admin:hunter2@127.0.0.1:9/p",
    "http://127.0.0.1:9/?user=admin&pwd=hunter2",
    "async:http://admin:hunter2@127.0.0.1:9/p",
]


@pytest.mark.parametrize("address", WRONG)
@pytest.mark.parametrize("output", ["--json", "--no-dashboard"])
def test_errors_show_none(omnitide: Omnitide, engine: Any, tmp_path: Path, address: str, output: str) -> None:
    for arguments in (
        ("watch", address, output),
        ("watch", address, "extra", output),
        ("watch", "--nonsense", address),
        ("live", "--camera", address, "--mic", "none", output),
        ("live", address),
        ("live", f"--camera={address}", "--unit-seconds", "x"),
        ("models", "pull", address),
        (address,),
    ):
        done = omnitide("--debug", *arguments)
        assert done.code != 0
        assert_clean(tmp_path, done.out, done.err)


def test_settings_that_hold_one_show_none(
    omnitide: Omnitide, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, engine: Any
) -> None:
    monkeypatch.setenv("OMNITIDE_CAMERA", WRONG[0])
    for arguments in (("live", "--help"), ("doctor",), ("live", "--mic", "none")):
        done = omnitide("--debug", *arguments)
        assert_clean(tmp_path, done.out, done.err)
    monkeypatch.delenv("OMNITIDE_CAMERA")
    Path("omnitide.toml").write_text(f'camera = "{WRONG[0]}"\n')
    try:
        for arguments in (("live", "--help"), ("doctor",), ("live", "--mic", "none")):
            done = omnitide("--debug", *arguments)
            assert_clean(tmp_path / "home", done.out, done.err)
    finally:
        Path("omnitide.toml").unlink()

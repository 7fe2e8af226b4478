"""No login leaves an address, wherever it stands in it; what tells sources apart stays."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnitide_cli import addresses
from omnitide_cli.addresses import display_name, redact, short_name

USERS = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ", min_size=4, max_size=10).map(lambda text: f"Usr{text}")
WORDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789ABCXYZ!$*+,-.=@/?#:|~^%_' \\\"é&;", min_size=2, max_size=12)
HOSTS = st.sampled_from(["192.168.1.5", "192.168.1.5:554", "camera", "camera:8080", "cam.example.org", "[::1]:80"])
SCHEMES = st.sampled_from(["http", "https", "rtsp", "rtsps", "rtmp", "tcp", "srt", "RTSP"])
NAMES = "pwd password pass token loginpas access_token X-Amz-Signature auth key sig psw t"
QUERY_NAMES = st.sampled_from(NAMES.split())


@st.composite
def logins(draw: st.DrawFn) -> tuple[str, list[str]]:
    """An address and the secrets in it, each with letters that nothing else has."""
    scheme, host, user = draw(SCHEMES), draw(HOSTS), draw(USERS)
    before, behind = (f"Q{letter}zx" for letter in draw(st.permutations("jkvw"))[:2])
    raw = f"{before}{draw(WORDS)}{behind}"
    coded = quote(raw, safe="")
    name = draw(QUERY_NAMES)
    form = draw(st.integers(0, 8))
    address = {
        0: f"{scheme}://{user}:{raw}@{host}/stream",
        1: f"{scheme}://{user}:{coded}@{host}",
        2: f"{scheme}://{host}/stream?user={user}&{name}={coded}&channel=1",
        3: f"{scheme}://{host}/?{name}={coded}",
        4: f"{scheme}://{host}/#{name}={coded}",
        5: f"{scheme}://{host}/user={user}_password={re.sub('[/?#&;,]', '', raw)}_channel=1_stream=0.sdp",
        6: f"{scheme}://{host}/user={user}&password={coded}&channel=1",
        7: f"{scheme}://{coded}@{host}/stream?{name}={user}",
        8: f"{scheme}://{host}/stream;{name}={coded}?channel=2",
    }[form]
    secrets = [before, behind] + ([user] if user in address else [])
    return address, secrets


@given(logins())
def test_nothing_of_a_login_is_shown(given_login: tuple[str, list[str]]) -> None:
    address, secrets = given_login
    for shown in (display_name(address), short_name(display_name(address))):
        assert not [secret for secret in secrets if secret.lower() in shown.lower()], (address, shown)


@given(logins(), st.sampled_from(["{}", "{} can't be opened: refused", "'{}'", "see ({}).", "open {}, then {}"]))
def test_nothing_of_a_login_is_left_in_a_text(given_login: tuple[str, list[str]], sentence: str) -> None:
    address, secrets = given_login
    display_name(address)
    for text in (address, repr(address), json.dumps(address), str([address])):
        shown = redact(sentence.format(text, text))
        assert not [secret for secret in secrets if secret.lower() in shown.lower()], (address, shown)


@given(logins())
def test_what_is_shown_stays_as_it_is(given_login: tuple[str, list[str]]) -> None:
    """A resumed session compares what is shown now with what was saved."""
    addresses._remembered.clear()  # pyright: ignore[reportPrivateUsage]
    addresses._pieces.clear()  # pyright: ignore[reportPrivateUsage]
    shown = display_name(given_login[0])
    assert display_name(shown) == shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("rtsp://admin:p@ss@host/x", "rtsp://host/x"),
        ("rtsp://admin:p/ss@host/x", "rtsp://…"),
        ("http://127.0.0.1/?pwd=p@ss", "http://127.0.0.1/…"),
        ("http://h/?user=admin&pwd=sesame7", "http://h/?user=…&pwd=…"),
        ("rtsp://h/realmonitor?channel=1&subtype=0", "rtsp://h/realmonitor?channel=1&subtype=0"),
        ("rtsp://h/user=a_password=b_channel=1_stream=0.sdp", "rtsp://h/user=…_password=…_channel=1_stream=0.sdp"),
        ("rtsps://192.168.1.1:7441/AbCdEfGhIj12Kl34?enableSrtp", "rtsps://192.168.1.1:7441/…?…"),
        ("http://h.tv/live/john/doe1/77.ts", "http://h.tv/live/…/…/77.ts"),
        ("admin:hunter2@192.168.1.5/stream", "192.168.1.5/stream"),
        ("async:http://a:b@h/x", "async:http://h/x"),
        ("concat:http://a:b@h/1|http://a:b@h/2", "concat:http://h/1|http://h/2"),
        ("srt://h:1?passphrase=abc123&streamid=#!::u=admin,p=foo", "srt://h:1?passphrase=…&streamid=…#…"),
        ("http://tv:8080/john/hunter22/1234", "http://tv:8080/…/…/1234"),
        ("http://tv/timeshift/john/doe1/60/2020-01-01:10-00/12.ts", "http://tv/timeshift/…/…/60/…/12.ts"),
        ("rtsp://h/admin:hunter2/ch1", "rtsp://h/…/ch1"),
        ("rtmp://a/live2/abcd-efgh-ijkl-mnop", "rtmp://a/live2/…"),
        # what holds no login
        ("http://h/Streaming/Channels/101", "http://h/Streaming/Channels/101"),
        ("rtmp://h/stream", "rtmp://h/stream"),
        ("/home/me/2026-11-30-2315-meeting.mp4", "/home/me/2026-11-30-2315-meeting.mp4"),
        ("http://h/BigBuckBunny_320x180.mp4", "http://h/BigBuckBunny_320x180.mp4"),
        ("rtsp://h/Streaming/Channels/101", "rtsp://h/Streaming/Channels/101"),
        ("udp://@239.0.0.1:1234", "udp://239.0.0.1:1234"),
        ("file:///tmp/a@b.mp4", "file:///tmp/a@b.mp4"),
        ("-", "standard input"),
        ("0", "0"),
    ],
)
def test_how_sources_are_called(address: str, shown: str) -> None:
    assert display_name(address) == shown


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/a/b/My clip (1).mp4", "My-clip-1"),
        ("-", "stdin"),
        ("rtsp://host/live/cam1", "cam1"),
        ("rtsp://host:554/", "host-554"),
        ("http://127.0.0.1:8099/", "127.0.0.1-8099"),
        ("camera http://127.0.0.1:8099/ + microphone default", "camera-127.0.0.1-8099"),
        ("microphone USB Audio", "microphone-USB-Audio"),
        ("https://host/live.m3u8?key=…", "live"),
        ("http://[::1", "1"),
        ("../../etc/..", "session"),
        ("视频.mp4", "session"),
        ("x" * 300, "x" * 32),
    ],
)
def test_names_can_stand_in_file_names(source: str, name: str) -> None:
    assert short_name(source) == name

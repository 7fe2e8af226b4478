"""Logins of every form, in what libav and Python say about an address: no four characters of one are left in it."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnitide_cli import addresses
from omnitide_cli.addresses import display_name, redact, short_name

PLAIN = "qzxjQZXJ789"
"""Letters that no message and no other part of an address has four of in a row."""
ODD = "\"'`<>!$*+,;&=.~|^()[]{}%_-\\é密🔑"
SPLITTING = " /?#@:\t"
"""Signs that end a login for those who read addresses by the book; people use them all the same."""

HOSTS = st.sampled_from(["192.168.1.5", "192.168.1.5:554", "camera:8080", "cam.example.org", "[::1]:80"])
SCHEMES = st.sampled_from(["http", "https", "rtsp", "rtsps", "rtmp", "rtmps", "srt", "tcp", "HTTP", "hls+http"])
NAMES = st.sampled_from(
    ["pwd", "password", "pass", "token", "access_token", "X-Amz-Signature", "auth", "key", "sig", "psw", "passphrase"]
)

SAID = (
    "[Errno 111] Connection refused: {quoted}",
    "[Errno 5] Input/output error: {quoted}; last error log: [tcp] Failed to resolve hostname {host} (unknown)",
    "OmniTideError({quoted})",
    '{{"source": {coded}, "clock": 1.0}}',
    "{raw}: Input/output error",
    "Error opening input file {raw}.",
    "[hls @ 0x55d0c0a1] Opening '{raw}' for reading",
    "[https @ 0x55d0c0a1] Will reconnect at 0 error=End of file: {raw}",
    "keepalive request failed for '{raw}' with error: 'End of file' when opening '{raw}', retrying",
    '<a href="{raw}">here</a>',
    "could not find <{raw}> (see {raw})",
    "argv: {listed}",
)


def secrets(alphabet: str) -> st.SearchStrategy[str]:
    """Texts of every length, one of them long; letters are at both ends, so that a part is not all punctuation."""
    middle = st.one_of(st.text(PLAIN + alphabet, max_size=14), st.text(PLAIN + alphabet, min_size=150, max_size=300))
    return st.tuples(st.text(PLAIN, min_size=1, max_size=3), middle, st.text(PLAIN, max_size=3)).map("".join)


@st.composite
def given_logins(draw: st.DrawFn, alphabet: str) -> tuple[str, list[str]]:
    """An address and the secrets in it as they are written there."""
    scheme, host, name = draw(SCHEMES), draw(HOSTS), draw(NAMES)
    user, password = draw(st.text(PLAIN, min_size=4, max_size=12)), draw(secrets(alphabet))
    if draw(st.booleans()):
        password = quote(password, safe=draw(st.sampled_from(["", "!$*()'", "~+;,"])))
    forms = [
        f"{scheme}://{user}:{password}@{host}/stream",
        f"{scheme}://{user}:{password}@{host}",
        f"{scheme}://:{password}@{host}/live.m3u8",
        f"{scheme}://{user}:@{host}/stream?{name}={password}",
        f"{scheme}://{host}/stream?user={user}&{name}={password}",
        f"{scheme}://{host}/?{name}={password}&channel=1",
        f"{scheme}://{host}/live.m3u8#{name}={password}",
        f"{scheme}://{host}/user={user}&password={password}&channel=1",
        f"{scheme}://{host}/user={user}_password={password}_channel=1_stream=0.sdp",
        f"{scheme}://{host}/a/b;{name}={password}",
        f"concat:{scheme}://{user}:{password}@{host}/1|{scheme}://{user}:{password}@{host}/2",
    ]
    form = draw(st.sampled_from(forms))
    return form, [password] + ([user] if user in form else [])


def as_said(template: str, address: str) -> str:
    """A message about an address; its `host` is what comes out when it is split by the book."""
    authority = address.partition("://")[2]
    for sign in "/?#":
        authority = authority.partition(sign)[0]
    host = authority.rpartition("@")[2].partition(":")[0]
    return template.format(
        raw=address, quoted=repr(address), coded=json.dumps(address), listed=["watch", address], host=host
    )


def parts(secret: str) -> set[str]:
    """All of its parts of four characters, and what there is of a shorter one is none."""
    return {secret[at : at + 4] for at in range(len(secret) - 3)}


def left_of(secrets: list[str], shown: str) -> list[str]:
    return sorted({part for secret in secrets for part in parts(secret) if part in shown})


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_remembered", {})
    monkeypatch.setattr(addresses, "_pieces", set())


def forget() -> None:
    """Fixtures hold for all examples of a test alike."""
    addresses._remembered.clear()  # pyright: ignore[reportPrivateUsage]
    addresses._pieces.clear()  # pyright: ignore[reportPrivateUsage]


@settings(max_examples=400)
@given(given_logins(ODD + SPLITTING), st.sampled_from(SAID))
def test_of_an_address_that_was_given_nothing_is_left(login: tuple[str, list[str]], said: str) -> None:
    forget()
    address, its_secrets = login
    shown = display_name(address)
    for text in (shown, short_name(shown), redact(as_said(said, address))):
        assert not left_of(its_secrets, text), text
    assert display_name(shown) == shown


@settings(max_examples=400)
@given(given_logins(ODD), st.sampled_from(SAID))
@example(("rtsp://qqqq:zz\"xx'jj<88@cam.example.org/x", ["zz\"xx'jj<88"]), SAID[6])
@example(("http://cam.example.org/user=qzxj&password=zz/xx&channel=1", ["qzxj", "zz/xx"]), SAID[4])
@example(("http://cam.example.org/?pwd=zz'.xjj8", ["zz'.xjj8"]), SAID[6])
def test_of_an_address_that_somebody_else_names_nothing_is_left(login: tuple[str, list[str]], said: str) -> None:
    """Redirections and the parts of a playlist are addresses that nobody gave."""
    forget()
    address, its_secrets = login
    shown = redact(as_said(said.replace("{host}", "cam"), address))
    assert not left_of(its_secrets, shown), shown


@settings(max_examples=200)
@given(given_logins(""), st.integers(12, 60))
def test_nor_of_one_that_is_cut_off(login: tuple[str, list[str]], length: int) -> None:
    """libav's lines have an end, long addresses none."""
    forget()
    address, its_secrets = login
    cut = address[:length]
    authority = cut.rpartition("://")[2]
    if "@" in address and re.fullmatch(r"[^:@]*:?\d*", authority):
        return  # what looks like a host, or like a host and a port, may be half of a login; nobody can tell
    shown = redact(f"Error opening input file {cut}")
    assert not left_of(its_secrets, shown), shown


@pytest.mark.parametrize(
    "text",
    [
        "talk.mp4 can't be read as video or audio: Invalid data",
        "see http://h/a, http://h/b (or 'http://h/c'), then \"http://h/d\".",
        "--ask-at 1:30=What is @ the door?",
        "the picture of 12:30 lies at /home/me/user@host/clip.mp4",
        '{"camera": "rtsp://h/Streaming/Channels/101", "mic": "none"}',
        "<http://h/x>",
        "it's at http://h/x's",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert redact(text) == text

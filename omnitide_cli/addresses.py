"""Addresses as they may be shown: no user, password or key that an address holds is printed, published or saved.

Cameras and servers take logins wherever an address has room: before the host, in the query, in the fragment, and as
names with values within the path. What can't be told from a secret is hidden, too; what is left tells sources apart.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path, PurePosixPath

HIDDEN = "…"
STANDARD_INPUT = "-"
DEVICES = ("camera ", "microphone ")
NAME_LENGTH = 32

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)+//[^\s\"'<>]+")
"""An address within other text, as far as spaces and quotes show its end; `_remembered` has the others."""

HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|\d{1,3}(\.\d{1,3}){3}|localhost)(:\d*)?|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
"""What is a host and not the first part of a login with a slash in it; a name with a port may be either."""

STRONG = "user|usr|pass|pwd|psw|token|secret|auth|login|cred|session|sign|apikey|cookie|licen[cs]e"
SHORT = (
    "uid|account|acct|pw|psk|pin|access|bearer|basic|tok|jwt|ticket|sid|sig|hash|hmac|hdnts|hdnea|digest|md5|nonce|key|"
    "policy|streamid|u|p|k|t"
)
SECRET_NAME = rf"(?:[a-z0-9.-]*(?:{STRONG})[a-z0-9.-]*|(?:[a-z0-9.-]*[.-])?(?:{SHORT}))"
PLAIN_NAME = (
    "channel|chn?|cam|camera|monitor|stream|streamtype|subtype|track|profile|res|resolution|size|width|height|fps|rate|"
    "quality|codec|format|video|audio|mode|transport|real_?stream|v|id|no|index"
)
PAIR = re.compile(rf"(?i)(?<![a-z0-9])({SECRET_NAME})(=|%3d)([^&;/]*)")
"""The name of a secret and its value."""
NEXT_PAIR = re.compile(rf"(?i)_(?=(?:{SECRET_NAME}|{PLAIN_NAME})=)")
"""`user=admin_password=x_channel=1`: an underscore ends a value only where a name that is known follows."""
SPOKEN_PAIR = re.compile(r"(?i)\b(user(?:name)?|usr|pass(?:word|wd)?|pwd|token|secret|api_?key)=[^\s&;,\"'<>|)]+")
"""Such a pair in a sentence, where single letters mean nothing."""

HARMLESS = re.compile(r"(?i)\d{1,3}|true|false|on|off|yes|no|main|sub|high|low|tcp|udp|h26[45]|mjpe?g|\d{2,4}x\d{2,4}")
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
TELEVISION = re.compile(r"(?i)^/(live|movie|series|timeshift|play)/[^/]+/[^/]+/(?=[^/])")
"""Television servers have the login in the path: /live/USER/PASSWORD/1234.ts."""
CHANNEL = re.compile(r"(?i)^/(?!streaming/|isapi/|cgi-bin/)[^/]+/[^/]+/(?=\d+(\.[a-z0-9]+)?$)")
"""The same without a first word, over HTTP: /USER/PASSWORD/1234."""
BOTH = re.compile(r"[^:=&;]+:[^:=&;]+")
"""A part of a path that is user:password."""

PUBLIC = ("https://huggingface.co/",)
"""Where models are downloaded from: the long names in these addresses are no secrets."""

_remembered: dict[str, str] = {}
"""What `display_name` has seen, in the forms in which texts quote it."""


def display_name(address: str) -> str:
    """How messages, files and events call a source: without the login that its address may hold."""
    if address == STANDARD_INPUT:
        return "standard input"
    parts = address.split("|") if address.lower().startswith("concat:") else [address]
    shown = "|".join(_without_login(part) for part in parts)
    if shown != address:
        quoted = {
            address,
            repr(address)[1:-1],
            json.dumps(address)[1:-1],
            json.dumps(address, ensure_ascii=False)[1:-1],
        }
        _remembered.update(dict.fromkeys(quoted, shown))
    return shown


def redact(text: str) -> str:
    """Any text without the logins of addresses in it: what libraries say, tracebacks, command lines."""
    for address in sorted(_remembered, key=len, reverse=True):
        text = text.replace(address, _remembered[address])
    shown, at = "", 0
    for found in ADDRESS.finditer(text):
        shown += _spoken(text[at : found.start()]) + _within_a_sentence(found[0])
        at = found.end()
    return shown + _spoken(text[at:])


def short_name(source: str) -> str:
    """What files and sessions are called after a displayed source: its file, its device, or its host and port."""
    kind, is_device, device = source.partition(" ") if source.startswith(DEVICES) else ("", "", source)
    device = device.partition(" + ")[0] if is_device else device
    match = SCHEME.search(device)
    if source == STANDARD_INPUT:
        stem = "stdin"
    elif match is None or device.lower().startswith("file:"):
        stem = PurePosixPath(device.rstrip("/")).stem
    else:
        host, _, path = re.split(r"[?#]", device[match.end() :], maxsplit=1)[0].partition("/")
        last = PurePosixPath(path.rstrip("/")).stem
        stem = last if last.strip(HIDDEN) else host
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{kind} {stem}").strip("-.")[:NAME_LENGTH].strip("-.")
    return plain or "session"


def _spoken(text: str) -> str:
    return SPOKEN_PAIR.sub(lambda found: f"{found[1]}={HIDDEN}", text)


def _within_a_sentence(address: str) -> str:
    """With the sentence's own punctuation left behind it."""
    bare = address.rstrip(".,:;!?)]")
    return _without_login(bare) + address[len(bare) :]


def _without_login(address: str) -> str:
    match = SCHEME.search(address)
    if match is None:
        return _without_scheme(address)
    scheme, rest = address[: match.end()], address[match.end() :]
    if scheme.lower().endswith("file://"):
        return address
    if address.startswith(PUBLIC) and not set(rest) & set("@?#;="):
        return address
    begin = min((rest.find(sign) for sign in "/?#" if sign in rest), default=len(rest))
    authority, tail = rest[:begin], rest[begin:]
    if "@" in tail:  # a login may have a / in it, and then no reader can say where it ends
        return f"{scheme}{authority}/{HIDDEN}" if HOST.fullmatch(authority) else f"{scheme}{HIDDEN}"
    path = re.split(r"[?#]", tail, maxsplit=1)[0]
    if scheme.lower().startswith("rtmp"):  # what comes last is the key of the stream
        path = re.sub(r"(?<=.)/[^/]+$", f"/{HIDDEN}", path)
    elif scheme.lower().startswith("http"):
        path = CHANNEL.sub(f"/{HIDDEN}/{HIDDEN}/", path)
    return scheme + _hide_pairs(authority.rpartition("@")[2]) + _shown_path(path) + _shown_query(tail[len(path) :])


def _without_scheme(text: str) -> str:
    """A file's name, which stays as it is; or an address whose scheme was forgotten."""
    try:
        is_file = Path(text).exists()
    except (OSError, ValueError):
        is_file = False
    return text if is_file else _hide_pairs(re.sub(r"^[^/\s:]+:.*@(?=[^/\s@]+)", "", text))


def _shown_query(query: str) -> str:
    """Names and values of query and fragment that say which channel it is, and nothing else."""
    shown, tells = "", True
    for sign, text in re.findall(r"([?#])([^?#]*)", query):
        parts = []
        for pair in re.split(r"[&;]", text):
            name, equals, value = pair.partition("=")
            if re.fullmatch(f"(?i)(?:[a-z0-9.-]*_)*{SECRET_NAME}", name):
                tells = False  # what follows may belong to the secret
                parts.append(f"{name}={HIDDEN}" if equals else HIDDEN)
            elif re.fullmatch(f"(?i){PLAIN_NAME}", name) and HARMLESS.fullmatch(value or "on"):
                parts.append(pair)
            else:
                parts.append(pair if not pair or (tells and HARMLESS.fullmatch(pair)) else HIDDEN)
        shown += sign + "&".join(parts)
    return shown


def _shown_path(path: str) -> str:
    path = TELEVISION.sub(rf"/\1/{HIDDEN}/{HIDDEN}/", path)
    shown = []
    for part in path.split("/"):
        has_pair = PAIR.search(part) is not None
        is_key = BOTH.fullmatch(part) or (_looks_drawn_by_lot(part) and not has_pair)
        shown.append(HIDDEN if is_key else _hide_pairs(part))
    return "/".join(shown)


def _hide_pairs(text: str) -> str:
    return "_".join(PAIR.sub(rf"\1\2{HIDDEN}", piece) for piece in NEXT_PAIR.split(text))


def _looks_drawn_by_lot(part: str) -> bool:
    """As keys do: small letters, capitals and digits take turns."""
    if UUID.search(part):
        return True
    name = re.sub(r"(?i)\.[a-z0-9]{2,5}$|\d+x\d+|h26[45]", "", part)
    letters = re.sub(r"[^A-Za-z0-9]", "", name)
    kinds = ["digit" if letter.isdigit() else "capital" if letter.isupper() else "small" for letter in letters]
    turns = sum(a != b and (a, b) != ("capital", "small") for a, b in pairwise(kinds))
    return len(letters) >= 12 and turns >= len(letters) / 4

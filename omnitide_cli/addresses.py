"""Addresses as they may be shown: no user, password or key that an address holds is printed, published or saved.

Cameras and servers take logins wherever an address has room: before the host, in the query, in the fragment, and as
names with values within the path. What can't be told from a secret is hidden, too; what is left tells sources apart.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

HIDDEN = "…"
STANDARD_INPUT = "-"
DEVICES = ("camera ", "microphone ")
NAME_LENGTH = 32

SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)+//")
"""How an address begins within other text; `_end_of_address` says where it ends."""
ANOTHER = re.compile(rf"(?<![|A-Za-z0-9+.-]){ADDRESS.pattern}")
JOINED = re.compile(r"\|(?=[A-Za-z][A-Za-z0-9+.-]*:/)")
SPACE = re.compile(r"\s")
CLOSING = {
    sign: re.compile(rf"(?<!\\){other}(?![\w%@+*$~^-])")
    for sign, other in (("'", "'"), ('"', '"'), ("`", "`"), ("<", ">"))
}
"""What ends an address that stands in quotes: a quote that belongs to a login is escaped, or letters follow it."""
TRAILING = re.compile(r"[\"'`<>.,:;!?)\]]{1,3}$")
"""What ends a sentence and not the address in it; more of it belongs to a login."""
BARE_LOGIN = re.compile(r"(?<![^\s\"'(<=])[^\s:/@\"'<>()]+:[^\s@]+@(?=[\w\[])")
"""user:password@ in front of a host, where the scheme is missing or was cut off."""
LOG = re.compile(r"last error log:|\[\w+ @ 0x[0-9a-f]+\]")
"""A line in which libav speaks: it takes odd addresses apart, and quotes a part of them."""
SHORTEST_PIECE = 4
WORD = re.compile(r"[a-z]{4,9}")
"""What may as well be a word of the sentence that it stands in."""

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
EQUALS = re.compile(r"(?is)(.*?)(?:(=|%3d)(.*)|$)")
NEXT_PAIR = re.compile(rf"(?i)_(?=(?:{SECRET_NAME}|{PLAIN_NAME})=)")
"""`user=admin_password=x_channel=1`: an underscore ends a value only where a name that is known follows."""
SPOKEN_PAIR = re.compile(r"(?i)\b(user(?:name)?|usr|pass(?:word|wd)?|pwd|token|secret|api_?key)=[^\s&;,\"'<>|)]+")
"""Such a pair in a sentence, where single letters mean nothing."""

HARMLESS = re.compile(
    r"(?i)\d{1,3}(\.[a-z][a-z0-9]{1,3})?|true|false|on|off|yes|no|main|sub|high|low|tcp|udp|h26[45]|mjpe?g|\d{2,4}x\d{2,4}"
)
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
_pieces: set[str] = set()
"""What of it may be quoted alone, by those who read the address in another way."""


def display_name(address: str) -> str:
    """How messages, files and events call a source: without the login that its address may hold."""
    if address == STANDARD_INPUT:
        return "standard input"
    shown = _without_logins(address)
    if shown != address:
        quoted = {
            address,
            repr(address)[1:-1],
            json.dumps(address)[1:-1],
            json.dumps(address, ensure_ascii=False)[1:-1],
        }
        _remembered.update(dict.fromkeys(quoted, shown))
        if SCHEME.search(address) or "@" in address:
            _pieces.update(_hidden_pieces(address, shown))
    return shown


def redact(text: str) -> str:
    """Any text without the logins of addresses in it: what libraries say, tracebacks, command lines."""
    for address in sorted(_remembered, key=len, reverse=True):
        text = text.replace(address, _remembered[address])
    shown, at = "", 0
    while found := ADDRESS.search(text, at):
        end = _end_of_address(text, found)
        shown += _spoken(text[at : found.start()]) + _without_logins(text[found.start() : end])
        at = end
    shown += _spoken(text[at:])
    return "\n".join(map(_without_pieces, shown.split("\n"))) if _pieces else shown


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
        stem = last if last and HIDDEN not in last else host
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{kind} {stem}").strip("-.")[:NAME_LENGTH].strip("-.")
    return plain or "session"


def _hidden_pieces(address: str, shown: str) -> set[str]:
    """What an address consists of and the name that is shown for it doesn't."""
    known = {piece.lower() for piece in _split(shown)}
    pieces = {piece for form in (address, unquote(address)) for piece in _split(form)}
    return {piece for piece in pieces if len(piece) >= SHORTEST_PIECE and piece.lower() not in known}


def _split(address: str) -> list[str]:
    """At the signs that every reader of addresses goes by, and at those that some do."""
    return re.split(r"[\s:/?#@]+", address) + re.split(r"[\s:/?#@&;=|,\"'<>\\]+", address)


def _without_pieces(line: str) -> str:
    is_log = LOG.search(line) is not None
    for piece in sorted(_pieces, key=len, reverse=True):
        if piece in line and (is_log or not WORD.fullmatch(piece)):
            line = re.sub(rf"(?<![A-Za-z0-9]){re.escape(piece)}(?![A-Za-z0-9])", HIDDEN, line)
    return line


def _end_of_address(text: str, found: re.Match[str]) -> int:
    """Where an address ends: at the quote that it began with, or at a space. Other quotes may be part of a login."""
    token = SPACE.search(text, found.end())
    token_end = token.start() if token else len(text)
    closing = CLOSING.get(text[found.start() - 1] if found.start() else "")
    line_end = text.find("\n", found.end())
    ends = (
        [end.start() for end in closing.finditer(text, found.end(), line_end if line_end >= 0 else len(text))]
        if closing
        else []
    )
    if not ends:
        return found.end() + len(TRAILING.sub("", text[found.end() : token_end]))
    token = SPACE.search(text, ends[0])
    token_end = token.start() if token else len(text)
    other = ANOTHER.search(text, ends[0], token_end)
    token_end = other.start() if other else token_end
    return max(end for end in ends if end <= max(token_end, ends[0]))


def _spoken(text: str) -> str:
    text = BARE_LOGIN.sub(f"{HIDDEN}@", text)
    return SPOKEN_PAIR.sub(lambda found: f"{found[1]}={HIDDEN}", text)


def _without_logins(address: str) -> str:
    """Of each of the addresses that libav reads as one."""
    parts = JOINED.split(address) if address.lower().startswith("concat:") else [address]
    return "|".join(map(_without_login, parts))


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
    query = tail[len(path) :]
    if scheme.lower().startswith("http"):
        path = CHANNEL.sub(f"/{HIDDEN}/{HIDDEN}/", path)
    host = authority.rpartition("@")[2]
    if ":" in host and not re.search(r":[\d:]*$|\]$", host):  # an address that was cut off in the middle of its login
        return f"{scheme}{HIDDEN}"
    shown, tells = _shown_path(path)
    if scheme.lower().startswith("rtmp"):  # what comes last is the key of the stream
        shown = re.sub(r"(?<=.)/[^/]+$", f"/{HIDDEN}", shown)
    return scheme + _hide_pairs(host) + shown + _shown_query(query, tells=tells)


def _without_scheme(text: str) -> str:
    """A file's name, which stays as it is; or an address whose scheme was forgotten."""
    try:
        is_file = Path(text).exists()
    except (OSError, ValueError):
        is_file = False
    return text if is_file else _hide_pairs(re.sub(r"^[^/\s:]+:.*@(?=[^/\s@]+)", "", text))


def _shown_query(query: str, *, tells: bool = True) -> str:
    """Names and values of query and fragment that say which channel it is, and nothing else."""
    shown = ""
    for sign, text in re.findall(r"([?#])([^?#]*)", query):
        pairs, tells = _shown_pairs(re.split(r"[&;]", text), tells=tells)
        shown += sign + "&".join(pairs)
    return shown


def _shown_pairs(pairs: list[str], *, tells: bool) -> tuple[list[str], bool]:
    """Pairs without their secrets; and whether what follows still tells something: it may belong to a secret."""
    shown = []
    for pair in pairs:
        name, equals, value = EQUALS.match(pair).groups()  # pyright: ignore[reportOptionalMemberAccess]
        if re.fullmatch(f"(?i)(?:[a-z0-9.-]*_)*{SECRET_NAME}", name):
            tells = False
            shown.append(f"{name}{equals}{HIDDEN}" if equals else HIDDEN)
        elif re.fullmatch(f"(?i){PLAIN_NAME}", name) and HARMLESS.fullmatch(value or "on"):
            shown.append(pair)
        else:
            shown.append(pair if not pair or (tells and HARMLESS.fullmatch(pair)) else HIDDEN)
    return shown, tells


def _shown_path(path: str) -> tuple[str, bool]:
    """A path without its secrets, and whether what follows it still tells something. The value of a pair may hold
    slashes, so that everything from the first pair on is pairs."""
    path = TELEVISION.sub(rf"/\1/{HIDDEN}/{HIDDEN}/", path)
    first = PAIR.search(path)
    begin = first.start() if first else len(path)
    shown = "/".join(
        HIDDEN if BOTH.fullmatch(part) or _looks_drawn_by_lot(part) else part for part in path[:begin].split("/")
    )
    if first is None:
        return shown, True
    pieces = re.split(r"([&;])", path[begin:])
    for index in range(0, len(pieces), 2):
        pairs, _ = _shown_pairs(NEXT_PAIR.split(pieces[index]), tells=False)
        pieces[index] = "_".join(pairs)
    return shown + "".join(pieces), False


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

"""Opening what a user named, and saying why it can't be opened."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote_to_bytes

import av
from av.container import InputContainer
from av.error import FFmpegError, InvalidDataError
from av.logging import set_level

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import SourceError
from omnitide_cli.media.pipe import PipeReader
from omnitide_cli.media.streams import codec_names, is_decodable, is_moving, picture_stream, sound_streams
from omnitide_cli.paths import is_file as is_regular

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
OPEN_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 15.0
PLAYLIST_TIMEOUT_S = 20.0
"""HLS: pieces of up to ten seconds come at once, then nothing until the next."""

NOT_MEDIA = frozenset({"tty", "bintext", "xbin", "idf", "adf"})  # libav draws text files as pictures of a terminal
PIPE_HINT = (
    "An MP4 with its index at the end can't be piped: give its path instead, or remux it with -movflags +faststart."
)
PLAYLIST = re.compile(r"\.m3u8?($|[?#])", re.IGNORECASE)
JPEG = b"\xff\xd8\xff"
MJPEG_PROBE = "2048"
HLS_OPTIONS = {"extension_picky": "0", "allowed_extensions": "ALL", "allowed_segment_extensions": "ALL"}
"""Servers call segments what they like (.jpg, .html, nothing); which protocols they may use stays restricted."""

VIDEO_SITES = re.compile(
    r"https?://([\w-]+\.)*(youtube(-nocookie)?\.com|youtu\.be|vimeo\.com|twitch\.tv|dailymotion\.com|tiktok\.com|"
    r"bilibili\.com|facebook\.com|instagram\.com|x\.com|twitter\.com|rutube\.ru|nicovideo\.jp)([:/?#]|$)",
    re.IGNORECASE,
)
YT_DLP_HINT = "A page of a video site is no video itself: yt-dlp -o - URL | omnitide watch -"


def open_container(
    path: str, timeout: tuple[float, float] | None = None, tell: Callable[[str], None] | None = None
) -> InputContainer:
    """Open a file, a URL or `-` (standard input); raises SourceError with the reason.

    `timeout`: seconds that opening a URL, and waiting for more of it, may take. `tell` gets what is waited for, if
    that takes long.
    """
    set_level(None)  # libav would write to stderr, over the dashboard
    name = display_name(path)
    if path == "-":
        if sys.stdin.isatty():
            raise SourceError("standard input is a terminal", "Pipe a video into it: cat clip.mkv | omnitide watch -")
        raw = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
        return _open_pipe(PipeReader(raw, owned=False, still_waiting=_waiting_for(name, tell)), name)
    local = local_path(path)
    if local is None:
        return _with_media(_open_address(path, timeout), name)
    _refuse_unreadable(name, local)
    if not is_regular(local):
        try:
            pipe = PipeReader.open(local, _waiting_for(name, tell))
        except OSError as error:
            raise SourceError(f"{name} can't be read: {reason(error)}", "Name a file, a pipe or a URL.") from error
        try:
            return _open_pipe(pipe, name)
        except SourceError as error:
            if local.is_char_device():
                raise SourceError(error.message, "It is a device; omnitide live --camera takes cameras.") from error
            raise
    try:
        # "file:" keeps libav from reading "12:30.mp4" as a protocol named "12".
        container = av.open(f"file:{local}", mode="r", options=dict(HLS_OPTIONS), metadata_errors="replace")
    except (FFmpegError, OSError) as error:
        raise _unreadable(name, local, error) from error
    return _with_media(container, name)


def is_file(path: str) -> bool:
    """Whether it is a file that can be opened again and gone back in; pipes and devices can't, nor can addresses."""
    local = local_path(path)
    return local is not None and is_regular(local)


def comes_by_pipe(path: str) -> bool:
    """Whether what is read is gone: standard input, a named pipe, /dev/fd."""
    return path == "-" or (local_path(path) is not None and not is_file(path))


def local_path(path: str) -> Path | None:
    """The file that `path` names, None for a URL or standard input.

    Addresses as file managers and browsers copy them (file:///tmp/my%20clip.mp4, file://localhost/…) are files, too.
    """
    if path == "-":
        return None
    if re.match("file:", path, re.IGNORECASE):
        written = re.sub(r"^file:(//(localhost(?=/))?)?", "", path, flags=re.IGNORECASE)
        decoded = os.fsdecode(unquote_to_bytes(written))
        return Path(decoded if "\0" not in decoded and os.path.lexists(decoded) else written)
    return None if URL.match(path) else Path(path)


def reason(error: Exception) -> str:
    """What libav or the system says, without codes and file names."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def undecodable(container: InputContainer, name: str) -> SourceError:
    """Nothing of it could be decoded: the error that says what it is coded in."""
    codecs = ", ".join(dict.fromkeys(codec_names(container)))
    if container.format.name.startswith("webp"):
        return SourceError(
            f"{name} is an animated WebP, which libav can't decode",
            "Convert it to GIF or MP4, with ImageMagick for example: magick in.webp out.gif",
        )
    hint = PIPE_HINT if name == "standard input" else "It may be damaged; if it comes from a server, download it first."
    return SourceError(f"no video or audio could be decoded from {name}" + (f" ({codecs})" if codecs else ""), hint)


def _refuse_unreadable(name: str, path: Path) -> None:
    try:
        if path.is_dir():
            raise SourceError(f"{name} is a folder", "Give the path of a video or audio file in it.")
        if path.stat().st_size == 0 and path.is_file():
            raise SourceError(f"{name} is empty", "Copy or record it again.")
    except FileNotFoundError:
        raise SourceError(f"there is no file {name}", "Check the path, and quote it if it has spaces.") from None
    except (OSError, ValueError) as error:
        raise SourceError(f"{name} can't be read: {reason(error)}", "Check the path and its permissions.") from error


def _waiting_for(name: str, tell: Callable[[str], None] | None) -> Callable[[], None] | None:
    return tell and (lambda: tell(f"nothing comes from {name} yet: waiting for what writes into it; Ctrl-C ends"))


def _open_pipe(pipe: PipeReader, name: str) -> InputContainer:
    is_pictures = pipe.peek(len(JPEG)) == JPEG
    try:
        if is_pictures:  # told by its first bytes: libav would read megabytes of it first, minutes of small pictures
            options = {"probesize": MJPEG_PROBE}
            container = av.open(pipe, mode="r", format="mjpeg", options=options, metadata_errors="replace")
        else:
            container = av.open(pipe, mode="r", metadata_errors="replace")
    except (FFmpegError, OSError) as error:
        empty = not pipe.bytes_read
        pipe.close()
        if empty:
            raise SourceError(
                f"{name} is empty: nothing was written into it", "Check why the program that writes it ended."
            ) from error
        raise SourceError(f"{name} can't be read as video or audio: {reason(error)}", PIPE_HINT) from error
    return _with_media(container, name)


def _open_address(address: str, timeout: tuple[float, float] | None) -> InputContainer:
    read_s = PLAYLIST_TIMEOUT_S if PLAYLIST.search(address) else READ_TIMEOUT_S
    limits = timeout or (OPEN_TIMEOUT_S, read_s)
    options = dict(HLS_OPTIONS)
    is_rtsp = address.lower().startswith("rtsp")
    if is_rtsp:
        options = {"rtsp_transport": "tcp"}
    try:
        try:
            return av.open(address, mode="r", options=options, metadata_errors="replace", timeout=limits)
        except FFmpegError as error:
            if not (is_rtsp and error.errno == errno.EPROTONOSUPPORT):
                raise
        return _open_rtsp_over_udp(address, limits)
    except (FFmpegError, OSError) as error:
        raise _unopened(address, error) from error


def _open_rtsp_over_udp(address: str, limits: tuple[float, float]) -> InputContainer:
    """For cameras that refuse TCP, which is tried first because nothing gets lost there."""
    try:
        return av.open(address, mode="r", options={"rtsp_transport": "udp"}, metadata_errors="replace", timeout=limits)
    except (FFmpegError, OSError) as error:
        raise SourceError(
            f"{display_name(address)} only speaks RTSP over UDP, and nothing arrived: {reason(error)}",
            "Let its UDP packets through the firewall, or switch it to RTSP over TCP.",
        ) from error


def _unopened(address: str, error: Exception) -> SourceError:
    name = display_name(address)
    hint = "Check the URL, the network and the login."
    if VIDEO_SITES.match(address):
        hint = f"{YT_DLP_HINT}."
    elif isinstance(error, InvalidDataError):
        hint = f"Check that the address is that of a video. {YT_DLP_HINT}."
    return SourceError(f"{name} can't be opened: {reason(error)}", hint)


def _unreadable(name: str, local: Path, error: Exception) -> SourceError:
    if isinstance(error, PermissionError):
        return SourceError(f"{name} can't be read: {reason(error)}", "Change its permissions, or copy it.")
    if _is_mp4_without_index(local):
        return SourceError(
            f"{name} is cut off: its index (moov), which comes at the end, is missing",
            "Copy it again in full; if the recording was interrupted, use a repair tool such as untrunc.",
        )
    return SourceError(
        f"{name} can't be read as video or audio: {reason(error)}",
        "Check that it plays elsewhere; give a video or audio file.",
    )


def _is_mp4_without_index(path: Path) -> bool:
    end = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(12)
        if head[4:8] != b"ftyp":
            return False
        file.seek(0)
        while len(box := file.read(16)) >= 8:
            if box[4:8] == b"moov":
                return False
            size = int.from_bytes(box[:4], "big")
            if size == 1:
                size = int.from_bytes(box[8:16], "big")
            if not 8 <= size <= end:
                break
            file.seek(file.tell() - len(box) + size)
    return True


def _with_media(container: InputContainer, name: str) -> InputContainer:
    if container.format.name in NOT_MEDIA:
        container.close()
        raise SourceError(f"{name} is text, not video or sound", "Name a video or sound file.")
    if picture_stream(container) is None and not sound_streams(container):
        streams = [*(s for s in container.streams.video if is_moving(s)), *container.streams.audio]
        codecs = ", ".join(dict.fromkeys(codec_names(container))) or "its codec"
        why = "has neither video nor audio"
        if any(not is_decodable(s) for s in streams):
            why = f"is in a format that this build of libav can't decode ({codecs})"
        container.close()
        raise SourceError(f"{name} {why}", "Give a video or audio file, or convert it to H.264 and AAC.")
    return container

"""Opening what a user named, and saying why it can't be opened."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import av
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.error import FFmpegError
from av.logging import set_level
from av.stream import Disposition, Stream
from av.video.stream import VideoStream

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import SourceError

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
OPEN_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 15.0
NOT_MEDIA = frozenset({"tty", "bintext", "xbin", "idf", "adf"})  # libav draws text files as pictures of a terminal
PIPE_HINT = (
    "An MP4 with its index at the end can't be piped: give its path instead, or remux it with -movflags +faststart."
)
COVER = Disposition.attached_pic | Disposition.timed_thumbnails


def open_container(path: str) -> InputContainer:
    """Open a file, a URL or `-` (standard input); raises SourceError with the reason."""
    set_level(None)  # libav would write to stderr, over the dashboard
    if path == "-":
        return _open_standard_input()
    local = local_path(path)
    if local is not None:
        _refuse_unreadable(path, local)
    try:
        # "file:" keeps libav from reading "12:30.mp4" as a protocol named "12".
        container = av.open(
            f"file:{local}" if local is not None else path,
            mode="r",
            options={"rtsp_transport": "tcp"} if path.lower().startswith("rtsp") else {},
            metadata_errors="replace",
            timeout=None if local is not None else (OPEN_TIMEOUT_S, READ_TIMEOUT_S),
        )
    except (FFmpegError, OSError) as error:
        raise _unreadable(display_name(path), local, error) from error
    return _with_media(container, display_name(path))


def local_path(path: str) -> Path | None:
    """The file that `path` names, None for a URL or standard input."""
    if path == "-" or (URL.match(path) and not path.lower().startswith("file://")):
        return None
    return Path(re.sub(r"^file:(//)?", "", path, flags=re.IGNORECASE))


def reason(error: Exception) -> str:
    """What libav or the system says, without codes and file names."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def picture_stream(container: InputContainer) -> VideoStream | None:
    """The stream of moving pictures; the cover of an album is none."""
    streams = [s for s in container.streams.video if not s.disposition & COVER and _decodable(s)]
    return next((s for s in streams if s.disposition & Disposition.default), streams[0] if streams else None)


def sound_stream(container: InputContainer) -> AudioStream | None:
    """The stream of sound that the file marks as default, else the first."""
    streams = [s for s in container.streams.audio if _decodable(s)]
    return next((s for s in streams if s.disposition & Disposition.default), streams[0] if streams else None)


def _decodable(stream: Stream) -> bool:
    return stream.codec_context is not None


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


def _open_standard_input() -> InputContainer:
    if sys.stdin.isatty():
        raise SourceError("standard input is a terminal", "Pipe a video into it: cat clip.mkv | omnitide watch -")
    try:
        container = av.open(sys.stdin.buffer, mode="r", metadata_errors="replace")
    except (FFmpegError, OSError) as error:
        raise SourceError(
            f"standard input can't be read as video or audio: {reason(error)}",
            PIPE_HINT,
        ) from error
    return _with_media(container, display_name("-"))


def _unreadable(name: str, local: Path | None, error: Exception) -> SourceError:
    if isinstance(error, PermissionError):
        return SourceError(f"{name} can't be read: {reason(error)}", "Change its permissions, or copy it.")
    if local is None:
        return SourceError(f"{name} can't be opened: {reason(error)}", "Check the URL, the network and the login.")
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
        raise SourceError(f"{name} is text, not video or audio", "Give a video or audio file.")
    if picture_stream(container) is None and sound_stream(container) is None:
        unknown = [s for s in container.streams if s.type in ("video", "audio") and not _decodable(s)]
        container.close()
        why = "is in a format that this build of libav can't decode" if unknown else "has neither video nor audio"
        raise SourceError(f"{name} {why}", "Give a video or audio file, or convert it to H.264 and AAC.")
    return container

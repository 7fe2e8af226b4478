"""What can't be read says so in one error with a remedy; what can be read in part is read in part."""

from __future__ import annotations

import http.server
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers_media import Sound, Video, counting, cut_file, flashes, make_clip

from omnitide_cli import errors
from omnitide_cli.errors import OmniTideError, SourceError, UsageError
from omnitide_cli.media import FrameFit, MediaUnit, open_source

FIT = FrameFit.square(16)


class Pipe(io.BytesIO):
    """Bytes that come once, as from `cat clip | omnitide watch -`."""

    def seekable(self) -> bool:
        return False

    def seek(self, position: int, whence: int = 0, /) -> int:
        raise io.UnsupportedOperation("a pipe can't seek")


def pipe_in(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Let standard input be the bytes of a file."""
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Pipe(Path(path).read_bytes()), isatty=lambda: False))


def shape(units: list[MediaUnit]) -> list[tuple[object, ...]]:
    """Times and contents of units, to compare two ways of reading the same clip."""
    return [
        (
            u.index,
            u.start,
            round(u.end, 3),
            None if u.frame is None else round(float(u.frame.mean())),
            None if u.audio is None else (len(u.audio), round(float(abs(u.audio).max()), 1)),
            (len(u.audio_left), len(u.audio_right) // 20),
        )
        for u in units
    ]


def test_the_error_tree_has_the_documented_exit_codes() -> None:
    tree = {
        name: kind.default_exit_code
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, OmniTideError) and kind is not OmniTideError
    }
    assert tree == {
        "RuntimeFailure": 1,
        "CacheFull": 1,
        "UsageError": 2,
        "SourceError": 3,
        "SessionFileError": 3,
        "ModelError": 4,
        "DeviceError": 5,
    }
    error = SourceError("what", "remedy")
    assert (str(error), error.message, error.hint, error.exit_code) == ("what", "what", "remedy", 3)
    assert OmniTideError("what", exit_code=130).exit_code == 130


def empty(folder: Path) -> str:
    (folder / "clip.mp4").touch()
    return str(folder / "clip.mp4")


def folder_named_like_a_clip(folder: Path) -> str:
    (folder / "clip.mp4").mkdir()
    return str(folder / "clip.mp4")


def text(folder: Path) -> str:
    (folder / "clip.mp4").write_text("Dear diary,\n" * 500)
    return str(folder / "clip.mp4")


def text_as_text(folder: Path) -> str:
    (folder / "notes.txt").write_text("Dear diary,\n" * 500)
    return str(folder / "notes.txt")


def subtitles(folder: Path) -> str:
    (folder / "clip.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello\n\n")
    return str(folder / "clip.srt")


def noise(folder: Path) -> str:
    (folder / "clip.mkv").write_bytes(os.urandom(20_000))
    return str(folder / "clip.mkv")


def index_cut_off(folder: Path) -> str:
    clip = make_clip(folder / "whole.mp4", Video(counting(), 4), Sound(seconds=4))
    return cut_file(clip, 0.6, folder / "clip.mp4")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: str(folder / "clip.mp4"), "there is no file"),
        (empty, "is empty"),
        (folder_named_like_a_clip, "is a folder"),
        (text, "read as video or audio"),
        (text_as_text, "is text"),
        (subtitles, "neither video nor audio"),
        (noise, "read as video or audio|could be decoded"),
        (index_cut_off, r"cut off: its index \(moov\)"),
        (lambda _: "http://127.0.0.1:9/clip.mp4", "can't be opened: Connection refused"),
        (lambda _: "rtsp://127.0.0.1:9/camera", "can't be opened"),
        (lambda _: "nonsense://clip", "can't be opened"),
        (lambda folder: str(folder / "a\0b"), "can't be read"),
    ],
)
def test_unreadable_sources_say_why_and_what_to_do(
    tmp_path: Path, make: Callable[[Path], str], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SourceError, match=why) as caught:
        open_source(make(tmp_path), fit=FIT)
    assert caught.value.exit_code == 3
    assert caught.value.hint
    assert capfd.readouterr() == ("", "")


def damaged_header(path: str, at: int, value: int) -> str:
    """Write an unbelievable number of 4 bytes into a header."""
    data = bytearray(Path(path).read_bytes())
    data[at : at + 4] = value.to_bytes(4, "little")
    Path(path).write_bytes(data)
    return path


def wav(folder: Path, seconds: float = 1.0) -> str:
    sound = Sound(seconds=seconds, codec="pcm_s16le", rate=16_000, layout="mono")
    return make_clip(folder / "clip.wav", sound=sound, options={"fflags": "bitexact"})


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: damaged_header(wav(folder), 24, 1_900_000_000),  # samples a second
        lambda folder: damaged_header(wav(folder), 22, 0xFF00 | 16_000 << 16),  # channels
        lambda folder: damaged_header(damaged_header(index_cut_off(folder), 32, 1 << 24), 40, 0xFFFFFFFF),  # a box
    ],
)
def test_unbelievable_headers_are_refused(tmp_path: Path, make: Callable[[Path], str]) -> None:
    with pytest.raises(SourceError) as caught:
        list(open_source(make(tmp_path), fit=FIT))
    assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_forbidden_file_is_a_source_error(tmp_path: Path) -> None:
    clip = make_clip(tmp_path / "clip.mp4", Video(seconds=1))
    Path(clip).chmod(0)
    with pytest.raises(SourceError, match="can't be read"):
        open_source(clip, fit=FIT)


@pytest.mark.parametrize(("name", "options"), [("clip.mp4", {"movflags": "faststart"}), ("clip.mkv", {})])
def test_the_readable_part_of_a_truncated_file_is_used_with_a_warning(
    tmp_path: Path, name: str, options: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    video = Video(flashes([n / 10 for n in range(0, 100, 3)], (128, 96), 0.1), 10)
    whole = make_clip(tmp_path / f"whole-{name}", video, Sound(seconds=10), options=options)
    with open_source(cut_file(whole, 0.6, tmp_path / name), fit=FIT) as source:
        found = list(source)
        assert 4 <= len(found) <= 7
        (warning,) = [w for w in source.warnings if w.code == "source-truncated"]
        assert "of 10.0 s could be read" in warning.message
        assert warning.hint
    assert capfd.readouterr() == ("", "")


def test_damage_in_the_middle_is_skipped_and_counted(tmp_path: Path) -> None:
    data = bytearray(Path(make_clip(tmp_path / "whole.ts", Video(counting(), 6), Sound(seconds=6))).read_bytes())
    for at in range(len(data) // 3, len(data) // 2, 50):
        data[at] ^= 0xFF
    (tmp_path / "clip.ts").write_bytes(data)
    with open_source(str(tmp_path / "clip.ts"), fit=FIT) as source:
        found = list(source)
        assert len(found) in (6, 7)
        assert "source-damaged" in [w.code for w in source.warnings]


@pytest.mark.parametrize("name", ["12:30.mp4", "with space and 中文.mkv", "100%.mp4", "-clip.mkv"])
def test_any_file_name_is_a_file_name(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = make_clip(tmp_path / name, Video(counting(), 1, fps=5))
    monkeypatch.chdir(tmp_path)
    for spelling in (name, clip, f"file:{clip}", f"file://{clip}"):
        with open_source(spelling, fit=FIT) as source:
            assert len(list(source)) == 1


@pytest.mark.parametrize(
    ("name", "options"), [("clip.mkv", {}), ("clip.ts", {}), ("clip.mp4", {"movflags": "faststart"})]
)
def test_standard_input_gives_the_same_units_as_the_file(
    tmp_path: Path, name: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = make_clip(tmp_path / name, Video(counting(), 4), Sound(seconds=4), options=options)
    pipe_in(monkeypatch, clip)
    with open_source(clip, fit=FIT, start=1) as file, open_source("-", fit=FIT, start=1) as pipe:
        expected, found = shape(list(file)), shape(list(pipe))
    assert found == expected
    assert len(found) == 3


@pytest.mark.parametrize("sound", [Sound(seconds=4, begin=26), Sound(seconds=4)])
def test_a_pipe_does_not_wait_for_sound_that_is_off(
    tmp_path: Path, sound: Sound, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = make_clip(tmp_path / "clip.mkv", Video(counting(), 30, fps=5), sound)
    pipe_in(monkeypatch, clip)
    with open_source(clip, fit=FIT) as file, open_source("-", fit=FIT) as pipe:
        expected, found = list(file), list(pipe)
    assert [u.frame is not None for u in found] == [True] * 30
    begin = int(sound.begin)
    assert [u.index for u in expected if u.audio is not None] == list(range(begin, begin + 4))
    heard = [u.index for u in found if u.audio is not None and abs(u.audio).max() > 0.1]
    assert heard == list(range(begin, begin + 4))


def test_an_mp4_with_its_index_at_the_end_can_t_be_piped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe_in(monkeypatch, make_clip(tmp_path / "clip.mp4", Video(counting(), 3), Sound(seconds=3)))
    with pytest.raises(SourceError, match="standard input") as caught:
        open_source("-", fit=FIT)
    assert "faststart" in caught.value.hint


def test_passwords_stay_out_of_messages() -> None:
    with pytest.raises(SourceError) as caught:
        open_source("rtsp://me:secret@127.0.0.1:9/camera", fit=FIT)
    assert "secret" not in caught.value.message + caught.value.hint


class QuietServer(http.server.SimpleHTTPRequestHandler):
    """Python's own server, which can't begin in the middle of a file."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a server that shows the test's folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietServer, directory=str(tmp_path)))
    server.handle_error = lambda request, client_address: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("start", [0, 2])
def test_a_web_address_gives_the_same_units_as_the_file(tmp_path: Path, address: str, start: int) -> None:
    clip = make_clip(tmp_path / "clip.mkv", Video(counting(), 4), Sound(seconds=4))
    with (
        open_source(clip, fit=FIT, start=start) as file,
        open_source(f"{address}/clip.mkv", fit=FIT, start=start) as web,
    ):
        assert shape(list(web)) == shape(list(file))
        assert web.warnings == []
    with pytest.raises(SourceError, match="404"):
        open_source(f"{address}/nothing.mkv", fit=FIT)


def test_standard_input_can_t_be_looped() -> None:
    with pytest.raises(UsageError, match="played twice"):
        open_source("-", fit=FIT, loops=2)

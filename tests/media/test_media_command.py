"""What people's files do to `omnitide watch` with the shipped model: events and exit code of each listed case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers_media import Sound, Video, counting, cut_file, make_clip, plain

from omnitide_cli.app import app
from omnitide_cli.commands.run import run

Event = dict[str, Any]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def watch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, list[Event], str]]:
    """Watch in this process: exit code, events, standard error."""
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path / "home"))

    def call(source: str | Path, *arguments: object) -> tuple[int, list[Event], str]:
        capfd.readouterr()
        code = run(app, ["watch", str(source), "--json", "--no-ask", *map(str, arguments)])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    return call


Watch = Callable[..., tuple[int, list[Event], str]]


def tokens(events: list[Event], kind: str) -> list[int]:
    return [event["tokens"][kind] for event in events if event["type"] == "unit"]


def warnings(events: list[Event]) -> list[str]:
    return [event["code"] for event in events if event["type"] == "warning"]


def test_no_audio_track(tmp_path: Path, watch: Watch) -> None:
    """Case 4: no sound is invented."""
    code, events, _ = watch(make_clip(tmp_path / "mute.mp4", Video(counting(), 3)))
    assert (code, tokens(events, "audio"), tokens(events, "image")) == (0, [0] * 3, [16] * 3)


@pytest.mark.parametrize("seconds", [30, 60])
@pytest.mark.parametrize(("name", "codec"), [("sound.wav", "pcm_s16le"), ("sound.m4a", "aac")])
def test_multiples_of_thirty_seconds(tmp_path: Path, watch: Watch, seconds: int, name: str, codec: str) -> None:
    """Case 5: 25 tokens each, no phantom."""
    code, events, _ = watch(make_clip(tmp_path / name, sound=Sound(seconds=seconds, codec=codec, rate=16_000)))
    assert (code, tokens(events, "audio")) == (0, [25] * seconds)
    assert events[-1]["units"] == seconds


@pytest.mark.parametrize(
    ("samples", "expected", "warned"),
    [
        (9_600, [15], []),
        (16_000 + 200, [25], ["sound-dropped"]),
        (16_000 + 640, [25, 1], []),
        (200, [], ["sound-dropped"]),
    ],
)
def test_sound_under_a_second(
    tmp_path: Path, watch: Watch, samples: int, expected: list[int], warned: list[str]
) -> None:
    """Case 6: a short unit with its tokens, or a drop that is told."""
    sound = Sound(seconds=samples / 16_000, codec="pcm_s16le", rate=16_000, layout="mono")
    code, events, _ = watch(make_clip(tmp_path / "short.wav", sound=sound))
    assert (code, tokens(events, "audio"), warnings(events)) == (0, expected, warned)


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_a_sideways_phone(tmp_path: Path, watch: Watch, rotation: int) -> None:
    """Case 8: the tokens are those of the upright picture; that it is upright is tested with the pictures."""
    code, events, _ = watch(make_clip(tmp_path / "phone.mp4", Video(counting(), 2, rotation=rotation)))
    assert (code, tokens(events, "image")) == (0, [16] * 2)


@pytest.mark.parametrize("offset", [95_443.0, -0.7])
def test_a_clock_that_begins_elsewhere(tmp_path: Path, watch: Watch, offset: float) -> None:
    """Case 9: the media clock begins at 0."""
    clip = make_clip(tmp_path / "clip.ts", Video(counting(), 3), Sound(seconds=3), offset=offset)
    code, events, _ = watch(clip)
    assert code == 0
    assert [event["start"] for event in events if event["type"] == "unit"] == [0, 1, 2]
    assert (tokens(events, "image"), tokens(events, "audio")) == ([16] * 3, [25] * 3)


@pytest.mark.parametrize(("width", "height"), [(7680, 4320), (2, 2), (4000, 16)])
def test_huge_tiny_and_narrow(tmp_path: Path, watch: Watch, width: int, height: int) -> None:
    """Case 10: under the cap, never an abort."""
    picture = Video(plain((200, 40, 40), (width, height)), times=[0.0], fps=1, codec="mjpeg", pix_fmt="yuvj444p")
    code, events, _ = watch(make_clip(tmp_path / "clip.mkv", picture))
    assert (code, tokens(events, "image")) == (0, [16])


def test_cover_art(tmp_path: Path, watch: Watch) -> None:
    """Case 11: an album is sound alone."""
    sound = Sound(seconds=3, rate=44_100, codec="libmp3lame")
    code, events, _ = watch(make_clip(tmp_path / "song.mp3", sound=sound, cover=True))
    assert (code, tokens(events, "image"), tokens(events, "audio")) == (0, [0] * 3, [25] * 3)


def truncated(folder: Path, **options: str) -> str:
    noise = np.random.default_rng(0).integers(0, 256, (100, 96, 128, 3), np.uint8)
    video = Video(lambda time: noise[round(time * 10)], 10, fps=10)
    whole = make_clip(folder / "whole.mp4", video, Sound(seconds=10), options=options)
    return cut_file(whole, 0.6, folder / "clip.mp4")


def named_mp4(folder: Path, content: bytes | None) -> str:
    path = folder / "clip.mp4"
    path.mkdir() if content is None else path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (truncated, "its index (moov), which comes at the end, is missing"),
        (lambda folder: named_mp4(folder, b""), "is empty"),
        (lambda folder: named_mp4(folder, None), "is a folder"),
        (lambda folder: named_mp4(folder, b"Dear diary,\n" * 500), "can't be read as video or audio"),
    ],
)
def test_unreadable_files(tmp_path: Path, watch: Watch, make: Callable[[Path], str], why: str) -> None:
    """Case 12, first half: exit 3 with the reason."""
    code, events, errors = watch(make(tmp_path))
    assert code == 3
    assert [event["type"] for event in events] == ["error"]
    assert why in " ".join(errors.split())


def test_the_readable_part(tmp_path: Path, watch: Watch) -> None:
    """Case 12, second half: processed, a warning, exit 0."""
    code, events, _ = watch(truncated(tmp_path, movflags="faststart"))
    assert code == 0
    assert 4 <= events[-1]["units"] <= 7
    assert "source-truncated" in warnings(events)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_names_questions_and_a_pipe_that_closes(tmp_path: Path, encoding: str) -> None:
    """Case 15: a name that can't be written is no reason to fail, and `| head -1` ends quietly."""
    clip = make_clip(tmp_path / "海边 🐟.mp4", Video(counting(), 2), Sound(seconds=2))
    command = [sys.executable, "-m", "omnitide_cli", "watch"]
    env = {**os.environ, "PYTHONIOENCODING": encoding, "OMNITIDE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    asked = ["--ask", "你看到什么 🐟?"]
    done = subprocess.run([*command, clip, *asked], capture_output=True, env=env, cwd=tmp_path, check=True)
    assert b"Traceback" not in done.stderr
    assert done.stdout.decode(encoding).startswith("[0:02] " + asked[1].encode(encoding, "replace").decode(encoding))
    done = subprocess.run([*command, clip + "?", *asked], capture_output=True, env=env, cwd=tmp_path, check=False)
    assert done.returncode == 3
    assert b"there is no file" in done.stderr
    piped = 'set -o pipefail; "$@" | head -1'
    done = subprocess.run(
        ["bash", "-c", piped, "bash", *command, clip, "--json", *asked], capture_output=True, env=env, cwd=tmp_path
    )
    assert (done.returncode, done.stderr, done.stdout.count(b"\n")) == (0, b"", 1)

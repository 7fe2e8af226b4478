"""Small files of every kind that people have, and damaged copies of them; as a program: reads some to their end.

Run as a process of its own, so that a crash of a decoder is seen as one: `python mutants.py HOW FOLDER FIRST LAST`
prints a line before and after each mutant. HOW is "media" (the reader alone) or "watch" (the command).
"""

from __future__ import annotations

import io
import random
import resource
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))

from helpers_media import Sound, Video, beeps, counting, flashes, make_clip

from omnitide_cli.app import app
from omnitide_cli.commands.run import run
from omnitide_cli.errors import SourceError
from omnitide_cli.media import FrameFit, open_source

MOST_MEMORY = 4 << 30
"""Address space of a reader: a damaged header must not ask for all there is."""

_PICTURE = Video(flashes([0.3, 0.9], (96, 64)), 1.5, fps=12)
_SOUND = Sound(beeps([0.3, 0.9]), 1.5, rate=24_000, layout="mono")


def _clip(**changes: object) -> Video:
    return Video(**{**vars(_PICTURE), **changes})  # pyright: ignore[reportArgumentType]


def _noise(codec: str, rate: int = 24_000, layout: str = "mono") -> Sound:
    return Sound(_SOUND.wave, 1.5, rate=rate, layout=layout, codec=codec)


SEEDS: dict[str, Callable[[Path], object]] = {
    "index-last.mp4": lambda path: make_clip(path, _PICTURE, _SOUND),
    "index-first.mp4": lambda path: make_clip(path, _PICTURE, _SOUND, options={"movflags": "faststart"}),
    "fragments.mp4": lambda path: make_clip(
        path, _PICTURE, _SOUND, options={"movflags": "frag_keyframe+empty_moov+default_base_moof"}
    ),
    "sideways.mov": lambda path: make_clip(path, _clip(rotation=90), _SOUND),
    "deep.mp4": lambda path: make_clip(path, _clip(codec="libx265", pix_fmt="yuv420p10le")),
    "clip.mkv": lambda path: make_clip(path, _PICTURE, _noise("flac")),
    "lossless.mkv": lambda path: make_clip(path, _clip(codec="ffv1", pix_fmt="yuv444p"), _noise("pcm_s16le")),
    "vp9.webm": lambda path: make_clip(path, _clip(codec="libvpx-vp9"), _noise("libopus")),
    "av1.webm": lambda path: make_clip(path, _clip(codec="libsvtav1", fps=Fraction(6)), _noise("libopus")),
    "clip.ts": lambda path: make_clip(path, _PICTURE, _SOUND, offset=100),
    "clip.avi": lambda path: make_clip(path, _clip(codec="mpeg4"), _noise("libmp3lame")),
    "clip.mjpeg": lambda path: make_clip(path, _clip(codec="mjpeg", pix_fmt="yuvj420p")),
    "clip.gif": lambda path: make_clip(path, _clip(codec="gif", pix_fmt="rgb8", fps=10)),
    "photo.png": lambda path: make_clip(path, _clip(times=[0.0], codec="png", pix_fmt="rgb24", picture=counting())),
    "song.mp3": lambda path: make_clip(path, sound=_noise("libmp3lame"), cover=True),
    "song.m4a": lambda path: make_clip(path, sound=_noise("aac", 44_100, "stereo")),
    "song.ogg": lambda path: make_clip(path, sound=_noise("libopus")),
    "song.flac": lambda path: make_clip(path, sound=_noise("flac", 44_100, "5.1")),
    "song.wav": lambda path: make_clip(path, sound=_noise("pcm_s16le", 8_000)),
    "song.aac": lambda path: make_clip(path, sound=_noise("aac")),
}
"""Makers of the sound files, by name."""


def make_seeds(folder: Path) -> None:
    """Write all of them."""
    for name, make in SEEDS.items():
        make(folder / name)


def mutant(folder: Path, number: int) -> tuple[str, bytes]:
    """The name and the bytes of a damaged file; the same for the same number."""
    dice = random.Random(number)
    names = sorted(SEEDS)
    name = names[number % len(names)]
    data = bytearray((folder / name).read_bytes())
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        _damage(data, dice, lambda: (folder / dice.choice(names)).read_bytes())
    return name, bytes(data)


def _damage(data: bytearray, dice: random.Random, other: Callable[[], bytes]) -> None:
    """One kind of damage, often near the beginning, where headers are."""
    size = len(data)
    near = dice.choice((64, 1024, size))

    def spot() -> int:
        return dice.randrange(max(1, min(near, size)))

    at, length = spot(), dice.choice((1, 4, 16, 200, 2000))
    kind = dice.choice(("bits", "bits", "bytes", "fill", "cut", "drop", "repeat", "swap", "foreign"))
    if kind == "bits":
        for _ in range(dice.choice((1, 3, 30))):
            where = spot()
            data[where : where + 1] = bytes(byte ^ 1 << dice.randrange(8) for byte in data[where : where + 1])
    elif kind == "bytes":
        data[at : at + length] = dice.randbytes(len(data[at : at + length]))
    elif kind == "fill":
        data[at : at + length] = dice.choice((b"\0", b"\xff", b"\x7f")) * len(data[at : at + length])
    elif kind == "cut":
        del data[dice.randrange(size + 1) :]
    elif kind == "drop":
        del data[at : at + length]
    elif kind == "repeat":
        data[at:at] = data[at : at + length] * dice.choice((1, 2, 40))
    elif kind == "swap":
        to = dice.randrange(max(1, size))
        data[at : at + length], data[to : to + length] = data[to : to + length], data[at : at + length]
    else:
        begin = dice.randrange(1000)
        data[at : at + length] = other()[begin : begin + length]


def read(path: Path) -> str:
    """Read a file to its end: how many units it has, or why it can't be read."""
    try:
        with open_source(str(path), fit=FrameFit.square(56)) as source:
            return f"{sum(1 for _ in source)} units"
    except SourceError as error:
        return f"refused: {error.message}"


def watch(path: Path) -> str:
    """Let the command watch a file with the shipped model; its exit code in the words of `read`."""
    words = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(words):
        code = run(app, ["watch", str(path), "--json", "--ask", "What do you see and hear?", "--duration", "20"])
    lines = " ".join(words.getvalue().split())
    return {0: "0 units", 3: f"refused: {lines}"}.get(code, f"failed: exit code {code}: {lines}")


def main(how: str, folder: Path, first: int, last: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for number in range(first, last):
        name, data = mutant(folder, number)
        path = folder / f"{number}-{name}"
        path.write_bytes(data)
        print(f"begin {number} {name}", flush=True)
        try:
            outcome = {"media": read, "watch": watch}[how](path)
        except Exception as error:
            outcome = f"failed: {type(error).__name__}: {error}"
        print(f"end {number} {name} {outcome}", flush=True)
        path.unlink()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))

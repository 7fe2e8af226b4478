"""Render the world's spoken words into omnitide_cli/bench/world/speech.ogg: `python -m models.demo.speak`.

Needs espeak-ng; only whoever changes the words or the voices runs it.
"""

import argparse
import io
import subprocess
import wave
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.world.words import FILE, RATE, SLOT, VOICES, WORDS

SPEAKERS = (  # espeak-ng's voice and variant, pitch, words a minute; split.py counts them from 0
    ("en-us", 50, 160),
    ("en-gb", 42, 165),
    ("en-us+f2", 55, 160),
    ("en-gb-scotland", 50, 155),
    ("en-gb+f4", 50, 170),
    ("en-us+m3", 38, 165),
    ("en-gb-x-rp", 58, 160),
    ("en-us+f5", 62, 165),
    ("en-gb+m5", 45, 150),
    ("en-029+f1", 50, 165),
    ("en-gb-x-gbcwmd+m7", 50, 160),
    ("en-gb-scotland+f3", 58, 160),
    ("en-us+Annie", 50, 165),
    ("en-us+adam", 50, 165),
    ("en-us+m2", 55, 170),
    ("en-gb+f1", 48, 158),
    ("en-gb+Alicia", 52, 165),
    ("en-us+m8", 48, 155),
)


def main() -> None:
    """Speak every word in every voice and pack the recordings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    if len(SPEAKERS) != VOICES:
        raise SystemExit(f"words.py counts {VOICES} voices, here are {len(SPEAKERS)}")
    slots = [_slot(word, *speaker) for speaker in SPEAKERS for word in WORDS]
    _pack(np.concatenate(slots), options.out)


def _slot(word: str, voice: str, pitch: int, speed: int) -> NDArray[np.float32]:
    """The word in the middle of its slot; a long one is spoken faster until it fits."""
    while True:
        command = ["espeak-ng", "-v", voice, "-p", str(pitch), "-s", str(speed), "--stdout", word]
        with wave.open(io.BytesIO(subprocess.run(command, capture_output=True, check=True).stdout)) as file:
            rate, raw = file.getframerate(), file.readframes(file.getnframes())
        samples = np.frombuffer(raw[: len(raw) // 2 * 2], np.int16).astype(np.float32) / 32768
        loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
        samples = _resampled(samples[loud[0] : loud[-1] + 1], rate)
        if len(samples) <= SLOT - 1600:
            break
        speed += 15
    slot = np.zeros(SLOT, np.float32)
    first = (SLOT - len(samples)) // 2
    slot[first : first + len(samples)] = samples / np.abs(samples).max() * 0.8
    return slot


def _resampled(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
    frame.sample_rate = rate
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    return np.concatenate([out.to_ndarray()[0] for part in (frame, None) for out in resampler.resample(part)])


def _pack(speech: NDArray[np.float32], path: Path) -> None:
    with av.open(str(path), "w", format="ogg") as container:
        stream = container.add_stream("libopus", rate=RATE, layout="mono", bit_rate=20_000)
        frame = av.AudioFrame.from_ndarray(speech[None], format="flt", layout="mono")
        frame.sample_rate, frame.pts = RATE, 0
        container.mux(stream.encode(frame))
        container.mux(stream.encode())


if __name__ == "__main__":
    main()

"""Spoken words, rendered beforehand: a small set in several synthetic voices (models/demo/speak.py made the file).

speech.ogg holds one word after another, all words of a voice before the next voice, each in a slot of 0.8 s.
"""

from functools import cache
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

WORDS = (
    "apple",
    "bridge",
    "candle",
    "dragon",
    "elephant",
    "fish",
    "guitar",
    "house",
    "island",
    "jacket",
    "lemon",
    "mountain",
    "piano",
    "river",
    "sun",
    "window",
)
VOICES = 18
"""How many voices the file has; split.py says which of them are held out."""

RATE = 16_000
SLOT = 12_800
"""Samples a word has at 16 kHz, silence around it included."""

FILE = Path(__file__).with_name("speech.ogg")


def spoken(word: str, voice: int) -> NDArray[np.float32]:
    """A word as float32 [n] at 16 kHz, without the silence around it; its loudest sample is 1."""
    first = (voice * len(WORDS) + WORDS.index(word)) * SLOT
    wave = _speech()[first : first + SLOT]
    loud = np.flatnonzero(np.abs(wave) > 0.02 * np.abs(wave).max())
    wave = wave[max(0, loud[0] - 160) : loud[-1] + 320]
    return wave / np.abs(wave).max()


@cache
def _speech() -> NDArray[np.float32]:
    """The whole file at 16 kHz."""
    with av.open(str(FILE)) as container:
        to_mono = av.AudioResampler(format="flt", layout="mono", rate=RATE)
        frames = [out.to_ndarray()[0] for frame in container.decode(audio=0) for out in to_mono.resample(frame)]
        frames += [out.to_ndarray()[0] for out in to_mono.resample(None)]
    return np.concatenate(frames).astype(np.float32)

"""Sounds: a spoken word, one of seven notes in two octaves, silence, or something that is none of that."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.bench.world import words
from omnitide_cli.bench.world.words import WORDS

Wave = NDArray[np.float32]

NOTES = ("do", "re", "mi", "fa", "sol", "la", "si")
OUTSIDE = ("noise", "sweep", "chord", "clicks", "buzz")
SILENCE = "silence"

_DO = 261.63
_SEMITONES = (0, 2, 4, 5, 7, 9, 11)


@dataclass(frozen=True, slots=True)
class Sound:
    """What a second sounds like: a word, a note with its octave (0 or 1), silence, or one of OUTSIDE."""

    word: str = ""
    note: str = ""
    octave: int = 0
    outside: str = ""

    def phrase(self) -> str:
        """As it stands in a sentence."""
        if self.outside:
            return "an unclear sound"
        if self.word:
            return f"the word {self.word}"
        return f"the note {self.note}" if self.note else SILENCE


def any_sound(rng: np.random.Generator, outside: float, silence: float = 0.12) -> Sound:
    """Draw a sound; from outside the world, or silent, with the given probabilities."""
    chance = rng.random()
    if chance < outside:
        return Sound(outside=str(rng.choice(OUTSIDE)))
    if chance < outside + silence:
        return Sound()
    if rng.random() < 0.6:
        return Sound(word=str(rng.choice(WORDS)))
    return Sound(note=str(rng.choice(NOTES)), octave=int(rng.integers(2)))


def play(sound: Sound, samples: int, rate: int, rng: np.random.Generator, voices: Sequence[int]) -> Wave:
    """Render float32 [samples], mono, within −1 to 1. A word is spoken once, by one of `voices`."""
    time = np.arange(samples) / rate
    wave = rng.standard_normal(samples) * 10 ** rng.uniform(-5, -3.1)
    if sound.word:
        spoken = _spoken(sound.word, int(rng.choice(list(voices))), samples, rate, rng)
        wave += spoken * 10 ** rng.uniform(-1.0, -0.1)
    elif sound.note:
        wave += _tone(_pitch(sound), time, rng) * 10 ** rng.uniform(-1.4, -0.35)
    elif sound.outside:
        wave += _PLAYERS[sound.outside](time, rate, rng) * 10 ** rng.uniform(-1.3, -0.35)
    return np.clip(wave, -1, 1).astype(np.float32)


def track(
    sounds: Sequence[Sound | None], seconds: Sequence[int], rate: int, rng: np.random.Generator, voices: Sequence[int]
) -> Wave:
    """Sounds one after another, with 10 ms of fade at their ends, so that cuts don't click; a missing one is mute."""
    parts = []
    for sound, length in zip(sounds, seconds, strict=True):
        samples = length * rate
        wave = np.zeros(samples, np.float32) if sound is None else play(sound, samples, rate, rng, voices)
        edge = np.minimum(np.arange(samples), np.arange(samples)[::-1]) / (0.01 * rate)
        parts.append((wave * np.clip(edge, 0, 1)).astype(np.float32))
    return np.concatenate(parts)


def _spoken(word: str, voice: int, samples: int, rate: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A word, a little faster or slower and thereby higher or lower, somewhere in the first second."""
    wave = words.spoken(word, voice)
    length = int(len(wave) * rng.uniform(0.92, 1.1) * rate / words.RATE)
    wave = np.interp(np.linspace(0, len(wave) - 1, length), np.arange(len(wave)), wave)
    first = int(rng.uniform(0.02 * rate, min(samples, rate) - length - 0.02 * rate))
    result = np.zeros(samples)
    result[first : first + length] = wave
    return result


def _pitch(sound: Sound) -> float:
    return _DO * 2 ** (sound.octave + _SEMITONES[NOTES.index(sound.note)] / 12)


def _tone(pitch: float, time: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """A note with two to five harmonics, struck over and over or held."""
    pitch *= 2 ** (rng.uniform(-0.08, 0.08) / 12)
    roll_off = rng.uniform(0.8, 2.2)
    wave = np.zeros_like(time)
    for harmonic in range(1, int(rng.integers(2, 6)) + 1):
        wave += np.sin(2 * np.pi * pitch * harmonic * time + rng.uniform(0, 6.3)) / harmonic**roll_off
    return 0.7 * wave * _envelope(time, rng)


def _envelope(time: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    if rng.random() < 0.3:
        return 1 + 0.15 * np.sin(2 * np.pi * rng.uniform(3, 7) * time)
    beat = float(rng.choice([0.5, 1.0]))
    since = np.mod(time, beat)
    return np.minimum(since / 0.012, 1) * np.exp(-rng.uniform(1, 6) * since)


def _noise(time: NDArray[np.float64], rate: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Bursts of white or dark noise."""
    wave = rng.standard_normal(len(time)) * 0.5
    if rng.random() < 0.5:
        kernel = np.ones(int(rng.integers(2, 12)))
        wave = np.convolve(wave, kernel / np.sqrt(len(kernel)), mode="same")
    gate = np.sin(2 * np.pi * rng.uniform(0.5, 4) * time + rng.uniform(0, 6.3)) > rng.uniform(-1.2, 0.2)
    return np.asarray(wave * gate, np.float64)


def _sweep(time: NDArray[np.float64], rate: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A tone that glides by an octave or more every second."""
    low, octaves = rng.uniform(150, 600), rng.uniform(1, 3) * rng.choice([-1, 1])
    pitch = low * 2 ** (octaves * np.mod(time, 1.0) + (abs(octaves) if octaves < 0 else 0))
    return 0.8 * np.sin(2 * np.pi * np.cumsum(pitch) / rate)


def _chord(time: NDArray[np.float64], rate: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Three notes at once."""
    pick = rng.choice(len(NOTES), 3, replace=False)
    voices = [_tone(_pitch(Sound(note=NOTES[n], octave=int(rng.integers(2)))), time, rng) for n in pick]
    return np.sum(voices, 0) / 2


def _clicks(time: NDArray[np.float64], rate: int, rng: np.random.Generator) -> NDArray[np.float64]:
    wave = np.zeros_like(time)
    spacing = rng.uniform(0.06, 0.3)
    for at in np.arange(rng.uniform(0, spacing), len(time) / rate, spacing):
        first = int(at * rate)
        length = min(int(rate * 0.006), len(wave) - first)
        wave[first : first + length] += rng.standard_normal(length) * np.linspace(1, 0, length)
    return wave


def _buzz(time: NDArray[np.float64], rate: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A voice-like pulse train: wavering pitch, syllables, two formants."""
    pitch = rng.uniform(85, 230) * (1 + 0.12 * np.sin(2 * np.pi * rng.uniform(1, 3) * time + rng.uniform(0, 6.3)))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    formants = rng.uniform(300, 900), rng.uniform(1000, 2600)
    wave = np.zeros_like(time)
    for harmonic in range(1, 25):
        weight = sum(np.exp(-(((pitch * harmonic - f) / 220) ** 2)) for f in formants) + 0.05
        wave += np.sin(harmonic * phase) * weight
    syllable = np.clip(np.sin(2 * np.pi * rng.uniform(2, 5) * time + rng.uniform(0, 6.3)) + 0.4, 0, 1)
    return 0.4 * wave * syllable


_PLAYERS = {"noise": _noise, "sweep": _sweep, "chord": _chord, "clicks": _clicks, "buzz": _buzz}

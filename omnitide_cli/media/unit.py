"""One streaming event: what was seen and heard in one second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NO_SOUND: NDArray[np.float32] = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True)
class SoundFormat:
    """The sound that a model's encoder takes, one channel; counts are samples."""

    rate: int
    """A second."""
    before: int
    """Real samples before a unit that the encoder hears as well."""
    after: int
    """And after it."""
    shortest: int
    """That give a token; what is shorter is left out."""

    def sample(self, seconds: float) -> int:
        """The number of the sample at a moment."""
        return round(seconds * self.rate)

    @property
    def shortest_s(self) -> float:
        """Seconds that give a token."""
        return self.shortest / self.rate


WHISPER = SoundFormat(16_000, 320, 200, 640)
"""What a source gives unless it is asked for another: a token of four frames of 10 ms; two frames before a unit and
half a window after it, so that its spectrogram has no seams."""


@dataclass(frozen=True, slots=True)
class MediaUnit:
    """What happened between `start` and `end`; a modality that was absent is None, never invented.

    If `audio` is there, it has exactly `round((end - start) * rate)` samples in −1 … 1.
    """

    index: int
    """Counts from 0 and goes on over loops."""
    start: float
    """Seconds on the media clock: 0 is the first moment of the file; goes on over loops."""
    end: float
    """`start` plus the length of a unit; only the last unit of a file may be shorter."""
    frame: NDArray[np.uint8] | None
    """[H, W, 3] RGB, upright, on the model's canvas."""
    audio: NDArray[np.float32] | None
    """[n] mono, at the rate of its `SoundFormat`."""
    audio_left: NDArray[np.float32]
    """[0 … before] real samples right before `audio`; empty where there are none."""
    audio_right: NDArray[np.float32]
    """[0 … after] real samples right after `audio`; empty at the end."""
    dropped_frames: int = 0
    """Pictures of this unit, or of what went before it, that were left out because the model was behind."""
    complete_at: float | None = None
    """Of a live source: second on time.monotonic()'s clock at which the unit was over."""
    lost_sound_s: float = 0.0
    """Seconds of live sound that were lost since the source was opened."""
    sound_skew_ms: float = 0.0
    """Milliseconds by which the sound card's clock was corrected since then; above 0 if it is slow."""

"""One streaming event: what was seen and heard in one second."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 16_000
"""Samples a second of all sound in OmniTide, one channel."""

LEFT_CONTEXT = 320
"""Samples before a unit that make its mel equal to the mel of the whole recording (two frames)."""

RIGHT_CONTEXT = 200
"""Samples after a unit that its last mel frame reaches into (half a window)."""

SHORTEST_SOUND = 640
"""Samples that one audio token is made of: four mel frames of 160. Less can't be encoded."""

NO_SOUND: NDArray[np.float32] = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True)
class MediaUnit:
    """What happened between `start` and `end`; a modality that was absent is None, never invented.

    If `audio` is there, it has exactly `round((end - start) * 16000)` samples in −1 … 1.
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
    """[n] mono, 16 kHz."""
    audio_left: NDArray[np.float32]
    """[0 … 320] real samples right before `audio`; empty where there are none."""
    audio_right: NDArray[np.float32]
    """[0 … 200] real samples right after `audio`; empty at the end."""
    dropped_frames: int = 0
    """Pictures of this unit, or of what went before it, that were left out because the model was behind."""
    complete_at: float | None = None
    """Of a live source: second on time.monotonic()'s clock at which the unit was over."""
    lost_sound_s: float = 0.0
    """Seconds of live sound that were lost since the source was opened."""
    sound_skew_ms: float = 0.0
    """Milliseconds by which the sound card's clock was corrected since then; above 0 if it is slow."""

"""What the engine takes in: a second of the outside world, as the media room makes it (`media.MediaUnit`)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class StreamUnit(Protocol):
    """A media unit."""

    @property
    def index(self) -> int:
        """Its number in the session, from 0."""
        ...

    @property
    def start(self) -> float:
        """Media seconds."""
        ...

    @property
    def end(self) -> float:
        """Media seconds."""
        ...

    @property
    def frame(self) -> NDArray[np.uint8] | None:
        """[H, W, 3] RGB, on the model's canvas."""
        ...

    @property
    def audio(self) -> NDArray[np.float32] | None:
        """[n] mono, -1 … 1, as `AudioFormat` says."""
        ...

    @property
    def audio_left(self) -> NDArray[np.float32]:
        """[0 … before] samples right before `audio`."""
        ...

    @property
    def audio_right(self) -> NDArray[np.float32]:
        """[0 … after] samples right after `audio`."""
        ...

    @property
    def dropped_frames(self) -> int:
        """Pictures that were left out since the unit before."""
        ...

    @property
    def complete_at(self) -> float | None:
        """When it was over, on time.monotonic()'s clock; None for what isn't live."""
        ...

    @property
    def lost_sound_s(self) -> float:
        """Seconds of sound lost since the session began."""
        ...

    @property
    def sound_skew_ms(self) -> float:
        """Milliseconds by which the sound card's clock was corrected since the session began."""
        ...

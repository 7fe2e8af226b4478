"""Sound that is there and says nothing: a muted microphone, the wrong track."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.media.unit import WHISPER

if TYPE_CHECKING:
    from omnitide_cli.media.sound import Stretch

FAINTEST = 1e-5
"""Below the last bit of 16: nothing but what a codec makes of zeros."""

LONG_S = 30.0
SHORT_S = 3.0


def is_silent(samples: NDArray[Any]) -> bool:
    """Whether samples of any type are all zeros, or as good as."""
    if not samples.size:
        return True
    if samples.dtype == np.uint8:
        return bool((samples == 128).all())
    return float(np.abs(samples.astype(np.float64)).max()) <= (FAINTEST if samples.dtype.kind == "f" else 0)


class SilenceWatch:
    """Tells once when sound has been all zeros for LONG_S seconds, or, at the end, from its beginning on."""

    def __init__(self, tell: Callable[[str, str, str], None], hint: str, rate: int = WHISPER.rate) -> None:
        self._rate = rate
        self._tell = tell
        self._hint = hint
        self._silent_samples = 0
        self._has_heard = False
        self._told = False

    def hear(self, sound: Stretch | None) -> None:
        """A unit's sound."""
        if sound is None or self._told:
            return
        if not is_silent(sound.samples):
            self._has_heard, self._silent_samples = True, 0
            return
        self._silent_samples += sound.heard
        if self._silent_samples >= LONG_S * self._rate:
            self._say(f"the sound has been all zeros for {self._silent_samples / self._rate:.0f} s")

    def end(self) -> None:
        """No more sound comes."""
        if not (self._told or self._has_heard) and self._silent_samples >= SHORT_S * self._rate:
            self._say("all of the sound that was taken is zeros")

    def _say(self, message: str) -> None:
        self._told = True
        self._tell("sound-silent", message, self._hint)

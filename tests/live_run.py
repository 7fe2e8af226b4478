"""`omnitide live` that takes notes: when it saw a flash and heard a beep, on the media clock.

Run as a program with the arguments of `omnitide`. LIVE_NOTES names the file for the notes; LIVE_SLOW: seconds that
every picture takes longer to be understood.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.media import live
from omnitide_cli.media.live_pictures import PictureQueue
from omnitide_cli.runtime.engine import Engine

NOTES = "LIVE_NOTES"
SLOW = "LIVE_SLOW"

flashes: list[float] = []
beeps: list[float] = []


class EveryPicture(PictureQueue):
    """Looks at all frames and notes those that are bright after a dark one."""

    _began: float | None = None
    _is_lit = False

    def start(self, origin: float) -> None:
        self._began = origin
        super().start(origin)

    def wants(self, at: float) -> bool:
        return self._began is not None and at >= self._began

    def put(self, at: float, canvas: NDArray[np.uint8]) -> None:
        is_lit = bool(canvas.mean() > 128)
        if is_lit and not self._is_lit and self._began is not None:
            flashes.append(at - self._began)
        self._is_lit = is_lit
        if super().wants(at):
            super().put(at, canvas)


def attentive(ingest: Any) -> Any:
    """The engine's `ingest`, with an ear of its own."""

    def listen(engine: Engine, unit: Any) -> Any:
        if unit.audio is not None and abs(unit.audio[0]) < 0.1:
            loud = np.flatnonzero(np.abs(unit.audio) > 0.1)
            beeps.extend([unit.start + loud[0] / 16_000] if len(loud) else [])
        if unit.frame is not None:
            time.sleep(float(os.environ.get(SLOW, "0")))
        return ingest(engine, unit)

    return listen


if __name__ == "__main__":
    from omnitide_cli.app import main

    live.PictureQueue = EveryPicture
    Engine.ingest = attentive(Engine.ingest)
    try:
        main()
    finally:
        Path(os.environ[NOTES]).write_text(json.dumps({"flashes": flashes, "beeps": beeps}))

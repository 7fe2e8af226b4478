"""Small pictures of what was seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LONGEST_SIDE = 160  # pixels
QUALITY = 70


def thumbnail(frame: NDArray[np.uint8]) -> bytes:
    """A JPEG of at most LONGEST_SIDE pixels of an RGB picture [H, W, 3]."""
    import cv2

    height, width = frame.shape[:2]
    scale = LONGEST_SIDE / max(height, width)
    if scale < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        frame = cv2.resize(frame, size, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    _, jpeg = cv2.imencode(".jpg", cv2.cvtColor(frame, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    return jpeg.tobytes()

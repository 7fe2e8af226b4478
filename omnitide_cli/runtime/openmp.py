"""How llama.cpp's threads wait for each other: a moment awake, then asleep.

Its threads are OpenMP's. While one is still at work the others spin, by default for milliseconds, and hold processors
that the last one needs: beside other busy processes a session took 12 to 77 times as long. Asleep at once they leave
the processor to whoever has work to do, but waking up takes as long as a small operator: alone on the machine a session
took a fifth more time. A few microseconds awake cost neither. `omnitide bench busy` measures all three on this machine.
"""

from __future__ import annotations

import os

VARIABLES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Whoever sets one of them has decided otherwise: the OpenMP standard's, GNU's, LLVM's."""

BRIEFLY = {"GOMP_SPINCOUNT": "2000", "KMP_BLOCKTIME": "0"}
"""Some tens of microseconds with GNU's library; LLVM's counts in milliseconds, so its threads sleep at once."""

SPINNING = {"GOMP_SPINCOUNT": "300000", "KMP_BLOCKTIME": "200"}
"""What both libraries do unasked."""


def wait_briefly() -> None:
    """Set it before an OpenMP library is loaded, which reads it once, and never against the user's own setting."""
    if not any(name in os.environ for name in VARIABLES):
        os.environ.update(BRIEFLY)


def waiting() -> str:
    """How threads wait, in words."""
    found = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    return ", ".join(found) or "spinning (nothing is set)"

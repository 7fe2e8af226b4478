"""How llama.cpp's threads wait for each other: asleep.

Its threads are OpenMP's. While one is still at work the others spin, by default for milliseconds, and hold processors
that the last one needs: beside other busy processes a session took 12 to 26 times as long. Asleep they leave the
processor to whoever has work to do. `omnitide bench busy` measures both on this machine.
"""

from __future__ import annotations

import os

POLICY = "OMP_WAIT_POLICY"
VARIABLES = (POLICY, "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
"""Whoever sets one of them has decided otherwise: the OpenMP standard's, GNU's, LLVM's."""

SPINNING = {"GOMP_SPINCOUNT": "300000", "KMP_BLOCKTIME": "200"}
"""What both libraries do unasked."""


def wait_asleep() -> None:
    """Set it before an OpenMP library is loaded, which reads it once, and never against the user's own setting."""
    if not any(name in os.environ for name in VARIABLES):
        os.environ[POLICY] = "passive"


def waiting() -> str:
    """How threads wait, in words."""
    found = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    return ", ".join(found) or "spinning (nothing is set)"

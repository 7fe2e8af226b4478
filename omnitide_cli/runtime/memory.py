"""How much memory this process uses and this machine has left."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path


def peak_rss_bytes() -> int:
    """Largest resident set of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def available_bytes() -> int | None:
    """Memory that can be taken without swapping; None where the system doesn't say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError):
        return None

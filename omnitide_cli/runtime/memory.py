"""How much memory this process uses and this machine has left."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from omnitide_cli.runtime.limits import memory_limit


def peak_rss_bytes() -> int:
    """Largest resident set of this process so far."""
    # Linux counts in ru_maxrss what the process that started this one had used, too.
    peak = _kilobytes("/proc/self/status", "VmHWM:")
    if peak is not None:
        return peak
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """Memory of this process that is resident now; its peak where the system doesn't say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return peak_rss_bytes()
    return pages * os.sysconf("SC_PAGE_SIZE")


def available_bytes() -> int | None:
    """Memory that can be taken without swapping, within this process's limits; None where the system doesn't say."""
    limit = memory_limit()
    known = [each for each in (_free_bytes(), limit and limit.left) if each is not None]
    return min(known, default=None)


def _free_bytes() -> int | None:
    """Of the whole machine."""
    available = _kilobytes("/proc/meminfo", "MemAvailable:")
    if available is not None:
        return available
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (OSError, ValueError):
        return None


def _kilobytes(file: str, name: str) -> int | None:
    """Bytes that a line `name 123 kB` of a system file says; None without it."""
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as lines:
            return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
    except OSError:
        return None

"""What of the machine this process may use: the smallest of affinity, control groups and its own limits.

A container's quota shows nowhere else: `os.cpu_count()` and /proc/meminfo speak of the whole machine. Both versions of
Linux's control groups are read (man 7 cgroups), along the whole path from the process's own group to the root, since
any of them may be the tightest.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
UNLIMITED_BYTES = 1 << 60  # version 1 writes "none" as a number about that large


@dataclass(frozen=True, slots=True)
class Cores:
    """Processors that this process may keep busy."""

    usable: int
    """Whole ones, at least 1: more threads than that only wait for each other."""
    affinity: int
    """Those that it may run on."""
    quota: float | None = None
    """How many a control group pays for; None: all."""


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """Bytes that this process (and what shares its limit) may take, and how many of them are left."""

    limit: int
    left: int
    what: str
    """Who sets it, in words."""


def cores() -> Cores:
    """Half a processor is one thread, and one and a half are one, too: a thread that the quota stops in the middle of
    its share of an operation keeps all others waiting."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    return Cores(max(1, min(affinity, math.floor(affinity if quota is None else quota))), affinity, quota)


def cpu_quota() -> float | None:
    """Processors that the tightest control group allows; None without one."""
    quotas = []
    for folder in _folders("cpu"):
        words = _words(folder / "cpu.max") or [
            *_words(folder / "cpu.cfs_quota_us"),
            *_words(folder / "cpu.cfs_period_us"),
        ]
        if len(words) == 2 and words[0].isdecimal() and words[1].isdecimal() and int(words[0]) and int(words[1]):
            quotas.append(int(words[0]) / int(words[1]))
    return min(quotas, default=None)


def memory_limit() -> MemoryLimit | None:
    """The limit that leaves least; None where there is none."""
    found = [*_cgroup_memory(), *_address_space()]
    return min(found, key=lambda each: each.left, default=None)


def _cgroup_memory() -> Iterator[MemoryLimit]:
    for folder in _folders("memory"):
        is_new = (folder / "memory.current").exists()
        used = _number(folder / ("memory.current" if is_new else "memory.usage_in_bytes"))
        names = ("memory.max", "memory.high") if is_new else ("memory.limit_in_bytes",)
        limits = [count for name in names if (count := _number(folder / name)) is not None]
        limit = min(limits, default=UNLIMITED_BYTES)
        if used is not None and limit < UNLIMITED_BYTES:
            # Pages of files that nobody has read lately are given up before anything fails.
            idle = _stat(folder / "memory.stat", "inactive_file" if is_new else "total_inactive_file")
            yield MemoryLimit(limit, max(0, limit - used + min(idle, used)), "a control group")


def _address_space() -> Iterator[MemoryLimit]:
    """`ulimit -v`."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or sys.platform != "linux":
        return
    words = _words(Path("/proc/self/statm"))
    used = int(words[0]) * os.sysconf("SC_PAGE_SIZE") if words else 0
    yield MemoryLimit(limit, max(0, limit - used), "ulimit -v")


def _folders(controller: str) -> Iterator[Path]:
    """Folders of the groups that this process is in, from its own to the root, of version 2 and version 1.

    Inside a container the path may be the host's, which doesn't exist there: its own group is the root then.
    """
    for line in _lines(MEMBERSHIP):
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            roots = [CGROUPS, CGROUPS / "unified"]
        elif controller in controllers.split(","):
            roots = [CGROUPS / controllers, CGROUPS / controller]
        else:
            continue
        root = next((each for each in roots if each.is_dir()), None)
        if root is None:
            continue
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            if folder.is_dir() and folder.is_relative_to(root):
                yield folder


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _words(file: Path) -> list[str]:
    lines = _lines(file)
    return lines[0].split() if lines else []


def _number(file: Path) -> int | None:
    """None for "max" and for what can't be read."""
    words = _words(file)
    return int(words[0]) if words and words[0].isdecimal() else None


def _stat(file: Path, name: str) -> int:
    return next((int(value) for key, _, value in (line.partition(" ") for line in _lines(file)) if key == name), 0)

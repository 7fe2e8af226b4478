"""Threads and memory by the tightest of affinity, control groups (both versions) and ulimit, from made-up trees."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from omnitide_cli.diagnostics import machine
from omnitide_cli.runtime import limits, memory

GB = 1_000_000_000
MEMORY_V1_NONE = "9223372036854771712"


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty /sys/fs/cgroup on a machine of eight processors; `member` says where the process is in it."""
    root = tmp_path / "cgroup"
    root.mkdir()
    monkeypatch.setattr(limits, "CGROUPS", root)
    monkeypatch.setattr(limits, "MEMBERSHIP", tmp_path / "self")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    return root


def member(groups: Path, *lines: str) -> None:
    (groups.parent / "self").write_text("\n".join(lines) + "\n")


def put(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("quota", "threads"), [(0.5, 1), (0.01, 1), (1, 1), (1.5, 1), (2, 2), (3.9, 3), (8, 8), (64, 8)]
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_quota_is_whole_threads(groups: Path, version: int, quota: float, threads: int) -> None:
    if version == 2:
        member(groups, "0::/")
        put(groups, cpu__max=f"{round(quota * 100_000)} 100000")
    else:
        member(groups, "4:cpu,cpuacct:/", "0::/")
        put(groups / "cpu,cpuacct", cpu__cfs_quota_us=f"{round(quota * 50_000)}", cpu__cfs_period_us="50000")
    found = limits.cores()
    assert (found.usable, found.affinity) == (threads, 8)
    assert found.quota == pytest.approx(quota)


def test_the_tightest_group_on_the_path_counts(groups: Path) -> None:
    member(groups, "0::/kubepods/pod7/app")
    put(groups, cpu__max="max 100000")
    put(groups / "kubepods" / "pod7", cpu__max="200000 100000")
    put(groups / "kubepods" / "pod7" / "app", cpu__max="400000 100000")
    assert limits.cores().usable == 2


def test_inside_a_container_the_hosts_path_is_not_there(groups: Path) -> None:
    member(groups, "3:memory:/docker/4711", "2:cpu:/docker/4711")
    put(groups / "cpu", cpu__cfs_quota_us="150000", cpu__cfs_period_us="100000")
    put(groups / "memory", memory__limit_in_bytes=f"{GB}", memory__usage_in_bytes="0")
    assert limits.cores().quota == 1.5
    found = limits.memory_limit()
    assert found is not None
    assert (found.limit, found.left) == (GB, GB)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"cpu__max": "max 100000"},
        {"cpu__max": "rubbish"},
        {"cpu__max": ""},
        {"cpu__max": "0 0"},
        {"cpu__cfs_quota_us": "-1", "cpu__cfs_period_us": "100000"},
    ],
)
def test_without_a_quota_affinity_counts(groups: Path, files: dict[str, str]) -> None:
    member(groups, "0::/", "4:cpu:/")
    put(groups, **files)
    put(groups / "cpu", **files)
    assert limits.cores() == limits.Cores(8, 8, None)


def test_without_control_groups(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MEMBERSHIP", groups / "none")
    assert limits.cores() == limits.Cores(8, 8, None)
    assert limits.memory_limit() is None


def test_affinity_is_below_a_generous_quota(groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    member(groups, "0::/")
    put(groups, cpu__max="400000 100000")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
    assert limits.cores().usable == 1


@pytest.mark.parametrize(
    ("maximum", "high", "left"), [("max", "max", None), (f"{GB}", "max", 500), ("max", f"{GB}", 500)]
)
def test_memory_of_version_2(groups: Path, maximum: str, high: str, left: int | None) -> None:
    member(groups, "0::/")
    used = {"memory__current": f"{700_000_000}", "memory__stat": "anon 5\ninactive_file 200000000\nfile 7"}
    put(groups, memory__max=maximum, memory__high=high, **used)
    found = limits.memory_limit()
    assert (found and found.left) == (left and left * 1_000_000)


def test_memory_of_version_1(groups: Path) -> None:
    member(groups, "4:memory:/", "2:cpu:/")
    stat = "inactive_file 1\ntotal_inactive_file 100000000"
    folder = groups / "memory"
    put(folder, memory__limit_in_bytes=f"{GB}", memory__usage_in_bytes="400000000", memory__stat=stat)
    found = limits.memory_limit()
    assert found is not None
    assert (found.limit, found.left) == (GB, 700_000_000)
    put(folder, memory__limit_in_bytes=MEMORY_V1_NONE)
    assert limits.memory_limit() is None


def test_available_memory_is_within_the_limit(groups: Path) -> None:
    member(groups, "0::/")
    put(groups, memory__max="300000000", memory__current="100000000")
    assert memory.available_bytes() == 200_000_000
    put(groups, memory__max=f"{1 << 50}")
    free = memory.available_bytes()
    assert free is not None
    assert free < 1 << 50, "what the machine has"


def test_a_spent_limit_leaves_nothing(groups: Path) -> None:
    member(groups, "0::/")
    put(groups, memory__max="1000", memory__current="2000")
    assert memory.available_bytes() == 0


def test_ulimit_counts_too() -> None:
    code = "from omnitide_cli.runtime.memory import available_bytes; print(available_bytes())"
    room = 400_000_000
    done = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert 0 < int(done.stdout) < room


def test_doctor_says_why(groups: Path) -> None:
    member(groups, "0::/")
    put(groups, cpu__max="50000 100000", memory__max="600000000", memory__current="50000000")
    (processors,) = machine._processors()
    assert processors.found.startswith("1 thread by default: 8 of ")
    assert "a control group's quota of 0.5" in processors.found
    (found,) = machine._memory()
    assert found.found.startswith("550.0 MB free of the 600.0 MB that a control group allows")
    put(groups, memory__current="590000000")
    (found,) = machine._memory()
    assert (found.state, found.remedy[:15]) == ("warning", "raise the limit")

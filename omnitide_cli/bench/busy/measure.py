"""A session beside busy processes and alone, for each way in which its threads can wait for each other.

All are run in turn, as often as is wanted, so that what else happens on the machine meets all of them; ratios are those
of a round, and the median of the rounds is told.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from omnitide_cli.bench.common.subprocess import run_in_subprocess
from omnitide_cli.bench.session.measure import Job, Run, run_session
from omnitide_cli.runtime.openmp import BRIEFLY, SPINNING, VARIABLES

WAYS = {"briefly": BRIEFLY, "asleep": {"OMP_WAIT_POLICY": "passive"}, "spinning": SPINNING}
"""How threads wait: as OmniTide sets it, asleep at once, and as OpenMP does it unasked."""

BUSY_LOOP = "while True: pass"


@dataclass(frozen=True, slots=True)
class BusyRow:
    """Seconds are those of the stream loop, medians of `rounds`. busy_ratio: beside busy processes ÷ alone;
    idle_ratio: alone ÷ alone with spinning threads; both medians of the rounds' ratios."""

    waiting: str
    threads: int
    processes: int
    idle_s: float
    busy_s: float
    busy_ratio: float
    idle_ratio: float
    rounds: int
    type: str = "busy"


class Busy:
    """Rounds of one job."""

    def __init__(self, job: Job, *, threads: int, processes: int, rounds: int) -> None:
        """`processes`: how many busy ones there are beside it."""
        self._job = job
        self._threads = threads
        self._processes = processes
        self._rounds = rounds

    def run(self, progress: Callable[[str], None], stopped: Callable[[], bool]) -> list[BusyRow]:
        """A row for each way of waiting, from those rounds that were finished."""
        rounds: list[dict[tuple[str, bool], float]] = []
        for number in range(self._rounds):
            times: dict[tuple[str, bool], float] = {}
            for is_busy in (False, True):
                for way in WAYS:
                    if stopped():
                        return self._rows(rounds)
                    beside = f"beside {self._processes} busy processes" if is_busy else "alone"
                    progress(f"round {number + 1} of {self._rounds}: waiting {way}, {beside}")
                    times[way, is_busy] = self._once(way, self._processes if is_busy else 0, stopped)
            if stopped():
                break
            rounds.append(times)
        return self._rows(rounds)

    def _once(self, way: str, processes: int, stopped: Callable[[], bool]) -> float:
        with _environment(WAYS[way]), _busy_processes(processes):
            found: Run = run_in_subprocess(run_session, self._job, progress=lambda _: None, stopped=stopped)
        return found.row.stream_loop_s

    def _rows(self, rounds: list[dict[tuple[str, bool], float]]) -> list[BusyRow]:
        if not rounds:
            return []
        return [
            BusyRow(
                waiting=way,
                threads=self._threads,
                processes=self._processes,
                idle_s=median(times[way, False] for times in rounds),
                busy_s=median(times[way, True] for times in rounds),
                busy_ratio=median(times[way, True] / times[way, False] for times in rounds),
                idle_ratio=median(times[way, False] / times["spinning", False] for times in rounds),
                rounds=len(rounds),
            )
            for way in WAYS
        ]


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Processes that are started inside have these settings of OpenMP and no others."""
    before = {name: os.environ.pop(name, None) for name in VARIABLES}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextmanager
def _busy_processes(count: int) -> Iterator[None]:
    processes = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP], stdin=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()

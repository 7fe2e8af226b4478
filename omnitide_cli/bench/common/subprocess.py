"""A measurement in a process of its own, so that the memory it took is its own, too."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from omnitide_cli.errors import OmniTideError, RuntimeFailure

POLL_S = 0.1

Progress = Callable[[str], None]
Stopped = Callable[[], bool]


def run_in_subprocess(function: Callable[..., Any], *arguments: object, progress: Progress, stopped: Stopped) -> Any:
    """What `function(*arguments, progress, stopped)` returns in a fresh process; it may call both as they are here.

    Function, arguments and result must pickle. Raises what it raises, RuntimeFailure if its process dies.
    """
    fresh = multiprocessing.get_context("spawn")
    here, there = fresh.Pipe()
    stop = fresh.Event()
    process = fresh.Process(target=_work, args=(there, stop, function, arguments), daemon=True)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the child has said what it does with it
    process.start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    there.close()
    try:
        while True:
            if stopped():
                stop.set()
            if not here.poll(POLL_S):
                continue
            kind, value = here.recv()
            if kind == "done":
                return value
            if kind == "failed":
                raise value
            progress(value)
    except EOFError:
        process.join()
        raise RuntimeFailure(
            f"the measuring process ended unexpectedly (exit code {process.exitcode})",
            "check that there is enough memory",
        ) from None
    finally:
        here.close()
        process.join(timeout=5)
        if process.is_alive():
            process.terminate()


def _work(pipe: Connection, stop: Any, function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this is asked, and says `stop`
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    told = 0.0

    def progress(text: str) -> None:
        nonlocal told
        if time.monotonic() - told >= POLL_S:
            told = time.monotonic()
            pipe.send(("progress", text))

    try:
        answer = ("done", function(*arguments, progress, stop.is_set))
    except OmniTideError as error:
        answer = ("failed", error)
    except Exception as error:  # a bug, told where the command tells it
        answer = ("failed", RuntimeError(f"{type(error).__name__}: {error}"))
    pipe.send(answer)

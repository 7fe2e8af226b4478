"""Signals while the main thread is in native code, where Python's own handlers don't run."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from omnitide_cli.session.interrupt import Interrupt

TWO_SIGNALS = """
import hashlib, os, signal, threading
from omnitide_cli.session.interrupt import Interrupt

with Interrupt():
    for delay in {delays}:
        threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", {rounds})
"""


def compute(rounds: int) -> None:
    """C code that gives up the GIL, as llama.cpp does."""
    hashlib.pbkdf2_hmac("sha256", b"", b"", rounds)


def test_native_code_is_told_while_it_runs() -> None:
    told: list[float] = []
    with Interrupt() as interrupt:
        interrupt.on_request(lambda: told.append(time.monotonic()))
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        compute(2_000_000)
        ended = time.monotonic()
    assert interrupt.requested
    assert ended - told[0] > 0.1


def test_a_second_signal_leaves_at_once_whatever_runs() -> None:
    began = time.monotonic()
    code = TWO_SIGNALS.format(delays=(0.1, 0.9), rounds=1 << 30)
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, capture_output=True)
    assert done.returncode == 130
    assert done.stderr == b""
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(("second", "code"), [("SIGINT", 0), ("SIGTERM", 130)])
def test_the_same_signal_at_once_again_is_the_same_one(second: str, code: int) -> None:
    """`timeout`, shells and `uv run` pass a Ctrl-C on that the process has had already."""
    signals = TWO_SIGNALS.replace(
        "signal.SIGINT)).start()", f"signal.SIGINT if delay < 0.2 else signal.{second})).start()"
    )
    done = subprocess.run(
        [sys.executable, "-c", signals.format(delays=(0.1, 0.15, 0.25), rounds=3_000_000)],
        check=False,
        timeout=60,
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (code, b"")


def test_the_first_signal_is_told_at_once() -> None:
    told: list[float] = []
    with Interrupt() as interrupt:
        interrupt.on_ending(lambda: told.append(time.monotonic()))
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        compute(2_000_000)
        assert time.monotonic() - told[0] > 0.1
    assert len(told) == 1


def test_nobody_is_told_after_the_end() -> None:
    told: list[int] = []
    before, threads = signal.getsignal(signal.SIGINT), threading.active_count()
    with Interrupt() as interrupt:
        interrupt.on_request(lambda: told.append(1))
        interrupt.on_request(None)
        os.kill(os.getpid(), signal.SIGINT)
        interrupt.sleep_until(time.monotonic() + 1)
        assert interrupt.requested
    assert not told
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1
    assert threading.active_count() == threads

"""What happens before the command's own code runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

SLOW = """
import sys, time
class Slow:
    def find_spec(self, name, path, target=None):
        if name == "omnitide_cli.app":
            print("importing", flush=True)
            time.sleep(20)
sys.meta_path.insert(0, Slow())
from omnitide_cli.entry import main
sys.argv[1:] = ["--version"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_imports_leaves_no_traceback(number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=15)
    assert (process.returncode, out, err) == (-number, "", "")


def test_an_ignored_signal_stays_ignored() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW.replace("20", "1")],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.startswith("omnitide ")

"""Waiting for what is typed ends when there is something else to do."""

from __future__ import annotations

import os
import threading
import time

import pytest

from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.session.typed_lines import QueuedLines, TypedLines


def test_a_ring_ends_the_wait_with_an_empty_line(monkeypatch: pytest.MonkeyPatch) -> None:
    end, other = os.pipe()
    monkeypatch.setattr("sys.stdin", os.fdopen(end, encoding="utf-8"))
    with Interrupt() as interrupt:
        for prompt in (TypedLines(interrupt), QueuedLines(interrupt)):
            threading.Timer(0.1, prompt.ring).start()
            began = time.monotonic()
            assert prompt.wait() == ""
            assert time.monotonic() - began < 10
        typed = TypedLines(interrupt)
        os.write(other, b"what?\n")
        typed.ring()
        assert typed.wait() == "what?"  # what is typed comes first
        assert typed.wait() == ""
        os.close(other)
        assert typed.wait() is None

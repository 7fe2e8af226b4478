"""The thread that draws, in this process."""

from __future__ import annotations

import os
import pty
import sys
import termios
import time

import pytest

from omnitide_cli.session.interrupt import Interrupt
from omnitide_cli.terminal.dashboard.renderer import Renderer
from omnitide_cli.terminal.dashboard.state import State
from omnitide_cli.terminal.tty import LEAVE, Terminal


def test_a_fault_in_drawing_ends_the_session_and_is_told_once_the_terminal_is_back() -> None:
    master, slave = pty.openpty()
    before, switch = termios.tcgetattr(slave), sys.getswitchinterval()

    def broken() -> State:
        raise ZeroDivisionError

    with Interrupt() as interrupt, open(slave, "r+b", buffering=0, closefd=False) as end:
        show = Renderer(Terminal(end, end), broken, None)  # type: ignore[arg-type]
        show.open()
        interrupt.sleep_until(time.monotonic() + 10)
        assert interrupt.requested
        with pytest.raises(ZeroDivisionError):
            show.close()
        show.close()
    assert termios.tcgetattr(slave) == before
    assert sys.getswitchinterval() == switch
    assert os.read(master, 4096).decode().endswith(LEAVE)
    os.close(slave)
    os.close(master)

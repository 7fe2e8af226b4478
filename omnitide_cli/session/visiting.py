"""`omnitide ask TEXT` while a session runs: that session answers, and the answer is shown here."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from omnitide_cli.catalog.folders import runtime_dir
from omnitide_cli.errors import RuntimeFailure, UsageError
from omnitide_cli.runtime.events import Answer, AnswerDelta, Event, Notice, Recalled, RecalledMoment
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.runtime.published import sessions
from omnitide_cli.session.asking import asked
from omnitide_cli.session.doorway import SUFFIX, connected
from omnitide_cli.session.global_options import GlobalOptions
from omnitide_cli.session.outputs import OutputOptions
from omnitide_cli.times import clock

KINDS: dict[str, type[Event]] = {kind.type: kind for kind in (Recalled, AnswerDelta, Answer, Notice)}


def running(wanted: str | None) -> SessionSnapshot | None:
    """The session that is meant, if it runs and can be asked: `wanted` is its name or how it begins, or a process
    number; None is the newest."""
    for each in sessions(runtime_dir())[0]:
        is_meant = wanted is None or wanted == str(each.pid) or each.state.session.startswith(wanted)
        if is_meant and each.state.running and _socket(each).exists():
            return each
    return None


def ask_running(
    session: SessionSnapshot, questions: Sequence[str], output: OutputOptions, state: GlobalOptions
) -> bool:
    """Put questions to a running session, one after the other, and show its answers; False: a signal ended it.

    Raises RuntimeFailure when it ends, or is too busy, before it has answered.
    """
    questions = [each.strip() for each in questions]
    if not questions or not all(questions):
        raise UsageError("a question is empty", 'ask something: omnitide ask "What happened?"')
    name = session.state.session
    with asked(output, state, name) as (interrupt, outputs):
        for question in questions:
            outputs.sink.asking(question, session.clock)
            has_answer = False
            with interrupt.raising(), suppress(KeyboardInterrupt):
                for event in _events(_socket(session), question, name):
                    outputs.sink.emit(event)
                    has_answer |= isinstance(event, Answer | Notice)
                if not has_answer:
                    raise RuntimeFailure(
                        f"{name} ended before it had answered", "ask what it has saved: omnitide ask FILE.tide TEXT"
                    )
            if interrupt.requested:
                return False
    return True


def where(session: SessionSnapshot) -> str:
    """Which session is asked, for who hasn't named it."""
    return f"asking {session.state.session}, which is at {clock(session.clock)}"


def _socket(session: SessionSnapshot) -> Path:
    return runtime_dir() / f"{session.pid}{SUFFIX}"


def _events(path: Path, question: str, name: str) -> Iterator[Event]:
    try:
        with connected(path) as connection:
            connection.sendall(json.dumps({"ask": question}).encode() + b"\n")
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as lines:
                for line in lines:
                    event = _event(line)
                    if event is not None:
                        yield event
    except OSError as error:
        raise RuntimeFailure(f"{name} can't be asked: {error.strerror or error}", "see whether it runs") from error


def _event(line: bytes) -> Event | None:
    """An event of the answer; None for others, which a later version may send."""
    try:
        known = json.loads(line)
        kind = KINDS[known.pop("type")]
        names = {field.name for field in fields(kind)}
        values: dict[str, Any] = {name: value for name, value in known.items() if name in names}
        for name in ("recalled", "moments"):
            if name in values:
                values[name] = tuple(RecalledMoment(**each) for each in values[name])
        return kind(**values)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None

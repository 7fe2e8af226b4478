"""The rules that flags and files give a session, and what is run when one of them fires."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from omnitide_cli.alerts.command import check_command, filled, variables
from omnitide_cli.alerts.rule import DEFAULT_EVERY_S, Rule, checked, parse_rule, rules_of, with_command
from omnitide_cli.catalog.folders import expanded
from omnitide_cli.errors import OmniTideError, UsageError
from omnitide_cli.formats.sink import Sink
from omnitide_cli.formats.words import moment, one_line
from omnitide_cli.runtime.events import Alert, Event, Notice, Summary
from omnitide_cli.runtime.journal import Journal
from omnitide_cli.session.evidence import Evidence

LIMIT_S = 30.0
"""A command that runs longer is ended."""
CLOSING_S = 5.0
"""At the end of a session, those that still run have so long."""
AT_ONCE = 4
MOST_WAITING = 32
SAID = 400


@dataclass(frozen=True, slots=True)
class AlertOptions:
    """What is waited for, as the flags of the same names give it."""

    alert: Sequence[str] = ()
    alerts: Path | None = None
    on_alert: str | None = None
    alert_every: float = DEFAULT_EVERY_S

    def rules(self) -> Sequence[Rule]:
        """All rules, with their commands. Raises UsageError for what is wrong with one, or with the file."""
        if self.on_alert is not None:
            check_command(self.on_alert, "--on-alert")
        found = [parse_rule(text, every=self.alert_every) for text in self.alert or ()]
        if self.alerts is not None:
            found += read_rules(self.alerts, self.alert_every)
        if self.on_alert and not found:
            raise UsageError("--on-alert: there is no alert to run it at", "give --alert or --alerts")
        return checked(with_command(rule, self.on_alert) for rule in found)


def read_rules(path: Path, every: float = DEFAULT_EVERY_S) -> list[Rule]:
    """The rules of a TOML file. Raises UsageError."""
    import tomllib

    where = f"--alerts {path}"
    try:
        table = tomllib.loads(expanded(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{where}: can't be read: {error.strerror or error}", "give a TOML file of rules") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: it is not UTF-8 text", "give a TOML file of rules") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where}: not TOML: {error}", "correct the file") from error
    return rules_of(table, where, every=every)


class AlertCommands(Sink):
    """Runs the command of a rule at its alert, beside the stream, without a shell. What fails is a warning."""

    def __init__(
        self,
        rules: Sequence[Rule],
        journal: Journal,
        tell: Callable[[Event], None],
        evidence: Evidence | None,
        limit_s: float = LIMIT_S,
    ) -> None:
        """`journal` has the pictures; `tell` hears warnings, on the session's thread."""
        self._commands = {rule.name: rule.command for rule in rules if rule.command}
        self._journal = journal
        self._tell = tell
        self._evidence = evidence
        self._limit_s = limit_s
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="alerts")
        self._waiting: list[Future[Notice | None]] = []
        self._running: set[subprocess.Popen[bytes]] = set()
        self._pictures: tempfile.TemporaryDirectory[str] | None = None
        self._is_over = False

    def emit(self, event: Event) -> None:
        if isinstance(event, Alert) and (command := self._commands.get(event.rule)):
            if sum(not each.done() for each in self._waiting) >= MOST_WAITING:
                message = f"the command of alert '{event.rule}' was not run: {MOST_WAITING} others are still waiting"
                self._tell(Notice("alert-command", message, "let it do less, or raise the rule's cooldown"))
            else:
                self._waiting.append(self._threads.submit(self._run, command, event.rule, self._values(event)))
        if isinstance(event, Summary):
            self._finish()
        elif not isinstance(event, Notice):  # which it may have told itself
            self._tell_done()

    def close(self) -> None:
        """Harmless when called twice."""
        self._finish()
        self._threads.shutdown()
        if self._pictures is not None:
            self._pictures.cleanup()

    def _finish(self) -> None:
        """Give what runs a last moment, then end it: nobody waits for a session that is over."""
        for each in self._waiting:
            with suppress(TimeoutError):
                each.exception(timeout=CLOSING_S if not self._is_over else 0.1)
            self._is_over = self._is_over or not each.done()
        self._is_over = True
        for process in tuple(self._running):
            _end(process)
        self._tell_done(wait=True)

    def _tell_done(self, *, wait: bool = False) -> None:
        done = [each for each in self._waiting if wait or each.done()]
        self._waiting = [each for each in self._waiting if each not in done]
        for each in done:
            if (notice := each.result()) is not None:
                self._tell(notice)

    def _values(self, alert: Alert) -> dict[str, str]:
        return {
            "text": alert.text or alert.question,
            "rule": alert.rule,
            "at": moment(alert.at, alert.wall),
            "picture": self._picture(alert),
            "probability": f"{alert.probability:.3f}",
        }

    def _picture(self, alert: Alert) -> str:
        """Path of the picture in view, "" where there is none: among the evidence, else in a folder of its own."""
        where = self._evidence
        if where is None:
            if self._pictures is None:
                self._pictures = tempfile.TemporaryDirectory(prefix="omnitide-alerts-")
            where = Evidence(Path(self._pictures.name))
        try:
            return where.picture(self._journal, max(alert.at - 0.5, 0.0), alert.at) or ""
        except OmniTideError as error:
            self._tell(Notice("alert-command", f"an alert's command gets no picture: {error.message}", error.hint))
            return ""

    def _run(self, command: str, rule: str, values: dict[str, str]) -> Notice | None:
        """In a thread of its own; a warning where it failed."""
        if self._is_over:
            return _failed(rule, "was not run: the session ended before", "")
        try:
            arguments = filled(command, values)
            with tempfile.TemporaryFile() as said:
                return self._wait(arguments, rule, {**os.environ, **variables(values)}, said)
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            return _failed(rule, f"can't be run: {reason}", "try it in a terminal")

    def _wait(self, arguments: list[str], rule: str, environment: dict[str, str], said: IO[bytes]) -> Notice | None:
        # In a session of its own: Ctrl-C means ours, and what it has started itself can be ended with it.
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=environment,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            code = process.wait(self._limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return _failed(rule, f"ran for {self._limit_s:g} s and was ended", "let it start what takes longer apart")
        finally:
            self._running.discard(process)
        if code == 0:
            return None
        if self._is_over and code == -signal.SIGKILL:
            return _failed(rule, "was ended with the session", "")
        said.seek(max(0, said.seek(0, os.SEEK_END) - SAID))
        words = one_line(said.read().decode("utf-8", "replace"))
        ended = f"ended with code {code}" if code > 0 else f"was ended by signal {-code}"
        return _failed(rule, f"{ended}{': ' if words else ''}{words}", "try it in a terminal")


def _failed(rule: str, what: str, hint: str) -> Notice:
    return Notice("alert-command", f"the command of alert '{rule}' {what}", hint)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With all that it has started."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(1.0)

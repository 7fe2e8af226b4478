"""Events for people: answers on standard output, everything else on standard error.

In a pipe an answer is written once it is finished; on a terminal it appears token by token. No cursor codes leave for
anything but a terminal, and a terminal that has asked for no colour gets none.
"""

from __future__ import annotations

import os
from typing import Literal, TextIO

from omnitide_cli.formats.alerts import alert_words, over_words
from omnitide_cli.formats.origins import origin
from omnitide_cli.formats.sink import Sink
from omnitide_cli.formats.status import StatusLine, columns, is_capable
from omnitide_cli.formats.words import moment, one_line, printable, saved, with_hint
from omnitide_cli.runtime.events import (
    Alert,
    AlertEnded,
    Answer,
    AnswerDelta,
    Event,
    Migration,
    Notice,
    Retention,
    Scene,
    SessionSaved,
    SessionStarted,
    Summary,
    UnitIngested,
)
from omnitide_cli.runtime.kv_state import SessionSnapshot
from omnitide_cli.terminal.summary import summary_lines
from omnitide_cli.times import clock

RED, PLAIN = "\x1b[1;31m", "\x1b[0m"

Detail = Literal["quiet", "normal", "verbose"]
UNHEEDED = {"bad-question"}
"""Codes of warnings that `--quiet` shows as well: what the user asked for isn't done."""


class PlainSink(Sink):
    """The sink for people. `detail` decides what stands on standard error beside errors; without `out`, no answers."""

    def __init__(self, out: TextIO | None, err: TextIO, status: StatusLine, *, detail: Detail = "normal") -> None:
        self._out = out
        self._err = err
        self._status = status
        self._detail = detail
        self._streams = out is not None and is_capable(out)
        self._session: SessionStarted | None = None
        self._units_total: int | None = None
        self._is_live = False
        self._in_answer = False
        self.rings = True
        """An alert rings the terminal's bell; not where it is shown again."""

    def expect(self, units_total: int | None, ratio: float | None = None, *, is_live: bool = False) -> None:
        """How many units will come, if that is known: for the progress line."""
        self._units_total, self._is_live = units_total, is_live

    def loading(self, model: str, fraction: float) -> None:
        """A model is being loaded, 0 … 1."""
        self._status.show(f"loading {model}  {fraction:.0%}" if fraction else f"loading {model}", now=not fraction)

    def asking(self, question: str, at: float) -> None:
        self._status.clear()
        if self._streams:
            self._write(f"[{clock(at)}] {one_line(question)}\n")
            self._in_answer = True
        else:
            self._status.show(f"{clock(at)}  answering: {one_line(question)}", now=True)

    def emit(self, event: Event) -> None:
        match event:
            case AnswerDelta():
                if self._streams:
                    self._write(event.text)
            case Answer():
                self._answer(event)
            case Alert():
                self._alert(event)
            case AlertEnded():
                if self._detail != "quiet":
                    self._say(f"[{moment(event.at, event.wall)}] {over_words(event)}")
            case SessionStarted():
                self._status.clear()
                self._session = event
                if event.resumed_at is not None and self._detail != "quiet":
                    self._say(f"resumed at {clock(event.resumed_at)}")
            case SessionSaved():
                if self._detail != "quiet":
                    self._say(saved(event.path, event.at))
            case UnitIngested():
                self._unit(event)
            case Notice():
                if event.code in UNHEEDED:
                    self._say(f"warning: {with_hint(event.message, event.hint)}")
                else:
                    self.notice(event.message, event.hint)
            case Retention() | Migration():
                if self._detail == "verbose":
                    self._say(_maintenance(event))
            case Scene():
                if self._detail == "verbose":
                    self._say(f"scene {moment(event.at, event.wall)}  similarity {event.similarity:.2f}")
            case Summary():
                self._summary(event)
            case _:
                pass

    def notice(self, message: str, hint: str = "") -> None:
        """A warning, in one line."""
        if self._detail != "quiet":
            self._say(f"warning: {with_hint(message, hint)}")

    def hint(self, text: str) -> None:
        """Something that would have been useful to know."""
        if self._detail != "quiet":
            self._say(f"hint: {text}")

    def say(self, text: str) -> None:
        """What was asked for, on standard error."""
        self._say(text)

    def show_kv(self, snapshot: SessionSnapshot) -> None:
        from omnitide_cli.inspect.kv_view import show

        self._status.clear()
        show(snapshot, self._err)

    def failed(self, error: BaseException) -> None:
        # The error itself is told once, where the command ends.
        self._end_answer()
        self._status.clear()

    def close(self) -> None:
        self._status.clear()

    def _answer(self, answer: Answer) -> None:
        self._status.clear()
        if self._streams:
            self._end_answer()
        elif answer.text or answer.stop != "interrupted":  # an answer that never began is none
            self._write(f"[{moment(answer.at, answer.wall)}] {one_line(answer.question)}\n{answer.text.strip()}\n")
        if (where := origin(answer)) and self._detail != "quiet":
            self._write(f"({where})\n")
        if answer.stop == "length":
            self.notice(
                f"the answer was cut off at {answer.tokens} tokens", "--max-answer-tokens allows longer answers"
            )

    def _alert(self, alert: Alert) -> None:
        self._status.clear()
        time, words = f"[{moment(alert.at, alert.wall)}]", printable(f"ALERT {alert_words(alert)}")
        if self._out is None:
            return
        if self._streams:  # a terminal: heard where nobody looks
            words = words if os.environ.get("NO_COLOR") else f"{RED}{words}{PLAIN}"
            time = f"\a{time}" if self.rings else time
        self._out.write(f"{time} {words}\n")
        self._out.flush()

    def _end_answer(self) -> None:
        if self._in_answer:
            self._in_answer = False
            self._write("\n")

    def _unit(self, unit: UnitIngested) -> None:
        if self._detail == "verbose":
            counts = unit.tokens
            image = "same" if unit.picture == "same" else counts.image
            self._say(
                f"unit {unit.index}  {moment(unit.end, unit.wall)}"
                f"  {counts.total} tokens (image {image}, audio {counts.audio})"
                f"  history {unit.history_tokens}  span {unit.physical_span}"
                f"  encode {unit.encode_ms:.0f} ms  prefill {unit.prefill_ms:.0f} ms"
                f"  maintain {unit.maintain_ms:.1f} ms"
            )
        total = f"/{self._units_total}" if unit.index < (self._units_total or 0) else ""  # joined files go on
        bound = f"/{self._session.high_watermark}" if self._session else ""
        lag = f"  {unit.lag_ms / 1000:.1f} s behind" if unit.lag_ms >= 1000 else ""
        self._status.show(
            f"{clock(unit.end)}  unit {unit.index + 1}{total}  history {unit.history_tokens}{bound} tokens"
            f"  span {unit.physical_span} cells{lag}"
        )

    def _summary(self, summary: Summary) -> None:
        self._end_answer()
        if self._detail == "quiet":
            return
        width = columns(self._err) if self._err.isatty() else None
        self._say(
            "\n".join(
                summary_lines(self._session, summary, width, in_full=self._detail == "verbose", is_live=self._is_live)
            )
        )

    def _say(self, text: str) -> None:
        self._status.clear()
        self._err.write(f"{printable(text)}\n")
        self._err.flush()

    def _write(self, text: str) -> None:
        if self._out is None:
            return
        self._out.write(printable(text))
        self._out.flush()


def _maintenance(event: Retention | Migration) -> str:
    if isinstance(event, Retention):
        return (
            f"retention after unit {event.unit}: {event.before_tokens} -> {event.after_tokens} tokens"
            f" ({event.full_units} units whole, {event.partial_units} in part, {event.dropped_units} dropped)"
        )
    verdict = "" if event.accepted else "rejected, "
    reason = f", {event.reason}" if event.reason else ""
    return (
        f"migration after unit {event.unit}: {verdict}{event.planner}{reason}: {event.rows_moved} rows moved,"
        f" span {event.page_span[0]} -> {event.page_span[1]} cells, {event.ms:.1f} ms"
    )

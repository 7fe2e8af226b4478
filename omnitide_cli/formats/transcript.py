"""The answers of a session as a file: JSONL for programs, WebVTT and SRT for players."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from omnitide_cli.errors import UsageError
from omnitide_cli.formats.sink import Sink
from omnitide_cli.runtime.events import Answer, Event, SessionStarted

FORMATS = (".jsonl", ".vtt", ".srt")
LONGEST_CUE_S = 8.0
SHORTEST_CUE_S = 1.0


def open_transcript(path: Path) -> TranscriptSink:
    """A sink that writes `path`, in the format of its ending, once a session starts. Raises UsageError."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"--transcript {path}: unknown file extension", f"use one of {', '.join(FORMATS)}")
    try:
        return TranscriptSink(path.open("a", encoding="utf-8", errors="replace", newline="\n"), path.suffix.lower())
    except OSError as error:
        raise UsageError(f"--transcript {path}: can't be written: {error.strerror}", "choose another file") from error


@dataclass(frozen=True, slots=True)
class _Cue:
    at: float
    text: str


class TranscriptSink(Sink):
    """Writes each answer once it is clear how long it may be shown: until the next one, or for some seconds."""

    def __init__(self, file: TextIO, suffix: str) -> None:
        self._file = file
        self._suffix = suffix
        self._waiting: _Cue | None = None
        self._cues = 0

    def emit(self, event: Event) -> None:
        if isinstance(event, SessionStarted):
            self._file.truncate(0)  # not before: a mistyped source must not cost an older transcript
            self._file.write("WEBVTT\n" if self._suffix == ".vtt" else "")
        if not isinstance(event, Answer):
            return
        if self._suffix == ".jsonl":
            self._file.write(json.dumps(event.to_json(), ensure_ascii=False) + "\n")
        else:
            self._cue(_Cue(event.at, f"{_line(event.question)}\n{_line(event.text)}".rstrip()))
        self._file.flush()

    def close(self) -> None:
        if self._waiting:
            self._write(self._waiting, self._waiting.at + LONGEST_CUE_S)
            self._waiting = None
        self._file.close()

    def _cue(self, cue: _Cue) -> None:
        if self._waiting and self._waiting.at == cue.at:
            # Two answers at one moment are shown together: cues that overlap hide each other in some players.
            self._waiting = _Cue(cue.at, f"{self._waiting.text}\n{cue.text}")
            return
        if self._waiting:
            shortest, longest = self._waiting.at + SHORTEST_CUE_S, self._waiting.at + LONGEST_CUE_S
            self._write(self._waiting, min(max(cue.at, shortest), longest))
        self._waiting = cue

    def _write(self, cue: _Cue, end: float) -> None:
        self._cues += 1
        point = "," if self._suffix == ".srt" else "."
        text = cue.text if self._suffix == ".srt" else _escaped(cue.text)
        number = f"{self._cues}\n" if self._suffix == ".srt" else "\n"
        after = "\n" if self._suffix == ".srt" else ""
        self._file.write(f"{number}{_stamp(cue.at, point)} --> {_stamp(end, point)}\n{text}\n{after}")


def _line(text: str) -> str:
    """An empty line would end the cue, so there is none."""
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _stamp(seconds: float, point: str) -> str:
    milliseconds = round(seconds * 1000)
    whole, milliseconds = divmod(milliseconds, 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{point}{milliseconds:03}"

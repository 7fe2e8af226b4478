"""`--evidence DIR`: the moments that answers and alerts came from, as pictures, and of a file as clips."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnitide_cli.catalog.folders import expanded
from omnitide_cli.errors import OmniTideError, RuntimeFailure, UsageError
from omnitide_cli.formats.sink import Sink
from omnitide_cli.paths import is_file
from omnitide_cli.runtime.events import Alert, Answer, Event, Notice, Summary, UnitIngested
from omnitide_cli.runtime.journal import Journal
from omnitide_cli.runtime.saved import SavedMedia

MARGIN_S = 1.0
"""A clip begins so much earlier and ends so much later than the moment."""
BEFORE_S, AFTER_S = 2.0, 3.0
"""What is kept of an alert: from so long before its first yes to so long behind it."""
LIST = "evidence.jsonl"


@dataclass(frozen=True, slots=True)
class Evidence:
    """A folder that evidence goes into."""

    folder: Path

    @classmethod
    def into(cls, folder: Path | None) -> Evidence | None:
        """Make the folder, for its owner alone. Raises UsageError where that can't be."""
        if folder is None:
            return None
        path = expanded(folder)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (path / LIST).open("a", encoding="utf-8"):
                pass
        except OSError as error:
            message = f"--evidence {folder}: nothing can be written there: {error.strerror or error}"
            raise UsageError(message, "choose another folder") from error
        return cls(path)

    def picture(self, journal: Journal, start: float, end: float) -> str | None:
        """Write the picture of a moment, and return its path; None where none is kept. Raises RuntimeFailure."""
        found = journal.pictures_of(start, end)
        if not found:
            return None
        path = self.folder / f"{stamp(found[0].start)}.jpg"
        try:
            path.write_bytes(found[0].jpeg)
        except OSError as error:
            raise RuntimeFailure(f"{path} can't be written: {error.strerror or error}", "make room") from error
        return str(path)

    def sink(self, journal: Journal, tell: Callable[[Event], None], media: SavedMedia | None) -> EvidenceSink:
        """What writes it; `journal` has the pictures, `media` says what clips are cut from."""
        return EvidenceSink(self.folder, journal, tell, media)


class EvidenceSink(Sink):
    """Writes pictures and clips of what was recalled for an answer; of one that nothing was recalled for, the picture
    that was in view; of an alert, the seconds around it, once they have passed. Clips are cut in another thread.
    `evidence.jsonl` says which belong to which answer and alert."""

    def __init__(self, folder: Path, journal: Journal, tell: Callable[[Event], None], media: SavedMedia | None) -> None:
        self._folder = folder
        self._journal = journal
        self._tell = tell
        self._media = media
        self._cutter = ThreadPoolExecutor(1, thread_name_prefix="clips")
        self._cutting: list[tuple[dict[str, Any], list[Future[Path | None]]]] = []
        self._alerts: list[Alert] = []
        self._problems: list[str] = []
        self._has_told = False

    def emit(self, event: Event) -> None:
        try:
            if isinstance(event, Answer) and event.text:
                self._answer(event)
            elif isinstance(event, Alert):
                self._alerts.append(event)
            elif isinstance(event, UnitIngested):
                self._note_alerts(until=event.end)
            elif isinstance(event, Summary):  # what was still to come never does
                self._note_alerts(until=None)
            self._note_cut(wait=False)
        except OSError as error:
            self._problems.append(f"{self._folder}: {error.strerror or error}")
        self._tell_trouble()

    def close(self) -> None:
        """Wait for the clips; harmless when called twice."""
        self._cutter.shutdown()
        try:
            self._note_cut(wait=True)
        except OSError as error:
            self._problems.append(f"{self._folder}: {error.strerror or error}")
        self._tell_trouble()

    def _answer(self, answer: Answer) -> None:
        moments = [(each.start, each.end) for each in answer.recalled]
        known = {
            "at": answer.at,
            "question": answer.question,
            "text": answer.text,
            "recalled": [list(moment) for moment in moments],
            "pictures": self._pictures(moments or [(max(answer.at - 0.5, 0.0), answer.at)]),
        }
        clips = [
            self._cutter.submit(self._clip, start, end, MARGIN_S, stamp(start))
            for start, end in moments
            if self._can_cut(start, end)
        ]
        self._cutting.append((known, clips))

    def _note_alerts(self, until: float | None) -> None:
        """Those whose seconds have passed at media second `until`; None: all."""
        while self._alerts and (until is None or until >= self._alerts[0].at + AFTER_S - 1e-6):
            self._alert(self._alerts.pop(0))

    def _alert(self, alert: Alert) -> None:
        start, end = max(alert.since - BEFORE_S, 0.0), alert.at + AFTER_S
        known = {
            "at": alert.at,
            "rule": alert.rule,
            "question": alert.question,
            "text": alert.text,
            "since": alert.since,
            "probability": alert.probability,
            "pictures": self._pictures([(start, end)]),
        }
        name = f"alert-{stamp(alert.at)}"  # one of an answer may begin in the same second
        clips = [self._cutter.submit(self._clip, start, end, 0.0, name)] if self._can_cut(start, end) else []
        self._cutting.append((known, clips))

    def _pictures(self, moments: Iterable[tuple[float, float]]) -> list[str]:
        """Write the pictures of some stretches of time; the names of their files."""
        names: list[str] = []
        for start, end in moments:
            for picture in self._journal.pictures_of(start, end):
                name = f"{stamp(picture.start)}.jpg"
                names += [name] if name not in names else []
                (self._folder / name).write_bytes(picture.jpeg)
        return names

    def _note_cut(self, *, wait: bool) -> None:
        while self._cutting and (wait or all(clip.done() for clip in self._cutting[0][1])):
            known, clips = self._cutting.pop(0)
            names = [path.name for clip in clips if (path := clip.result()) is not None]
            with (self._folder / LIST).open("a", encoding="utf-8") as file:
                file.write(json.dumps(known | {"clips": names}, ensure_ascii=False) + "\n")

    def _can_cut(self, start: float, end: float) -> bool:
        """Only a file that was played once, and is still there, has a place for every moment of the session; what was
        typed lasts no time."""
        media = self._media
        if media is None or media.path is None or media.loops != 1:
            return False
        return end > start and is_file(Path(media.path))

    def _clip(self, start: float, end: float, margin_s: float, name: str) -> Path | None:
        from omnitide_cli.media.clip import copy_clip

        media = self._media
        assert media is not None
        assert media.path is not None
        behind = media.position - media.clock  # where another part of the file is watched than the clock says
        begin = max(0.0, start + behind - margin_s)
        try:
            return copy_clip(Path(media.path), begin, end + behind + margin_s, self._folder / name)
        except OmniTideError as error:
            self._problems.append(error.message)
        except OSError as error:
            self._problems.append(f"{self._folder}: {error.strerror or error}")
        return None

    def _tell_trouble(self) -> None:
        """Whatever goes wrong here must not end the session; it is told once, on the session's thread."""
        if self._problems and not self._has_told:
            self._has_told = True
            message = f"evidence is incomplete: {self._problems[0]}"
            self._tell(Notice("evidence-incomplete", message, "the session goes on"))


def stamp(seconds: float) -> str:
    """A moment as a file's name: 0-12-31, and 0-12-31.500 between full seconds."""
    whole, rest = divmod(round(seconds * 1000), 1000)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}-{minute:02}-{second:02}" + (f".{rest:03}" if rest else "")

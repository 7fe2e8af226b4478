"""What a saved session leaves, by time: answers, the moments they were drawn from, pictures. No model is needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnitide_cli.addresses import display_name
from omnitide_cli.errors import RuntimeFailure
from omnitide_cli.formats.timeline_page import Exchange, Shot, timeline_page
from omnitide_cli.formats.words import counted
from omnitide_cli.runtime.journal import Journal, Picture
from omnitide_cli.runtime.saved import Saved
from omnitide_cli.runtime.session_file import read_session, replace_file
from omnitide_cli.session.resume import read_journal
from omnitide_cli.times import clock

ANSWER, PICTURE = "answer", "picture"


@dataclass(frozen=True, slots=True)
class Chronicle:
    """One saved session; `saved` says what it was."""

    saved: Saved
    journal: Journal

    @classmethod
    def of(cls, path: Path) -> Chronicle:
        """Raises SessionFileError for a file that can't be read."""
        file = read_session(path)
        return cls(file.saved, read_journal(path, file))

    def pictures(self, most: int) -> list[Picture]:
        """At most so many, evenly over time, but for those that answers were drawn from, which are all there."""
        found = self.journal.pictures
        step = max(1.0, len(found) / most) if most else float("inf")
        kept = {int(rank * step) for rank in range(most) if int(rank * step) < len(found)}
        evidence = {id(each) for said in self.journal.answers for s, e, _ in said.recalled for each in self._of(s, e)}
        return [each for index, each in enumerate(found) if index in kept or id(each) in evidence]

    def _of(self, start: float, end: float) -> list[Picture]:
        return self.journal.pictures_of(start, end)

    def entries(self, most_pictures: int) -> Iterator[dict[str, Any]]:
        """By time, as `omnitide timeline --json` writes them."""
        pictures = [
            {"type": PICTURE, "at": each.start, "start": each.start, "end": each.end, "bytes": len(each.jpeg)}
            for each in self.pictures(most_pictures)
        ]
        answers = [
            {
                "type": ANSWER,
                "at": said.at,
                "question": said.question,
                "text": said.text,
                "wall": said.wall,
                "recalled": [{"start": start, "end": end, "score": score} for start, end, score in said.recalled],
            }
            for said in self.journal.answers
        ]
        yield from sorted([*pictures, *answers], key=lambda entry: (entry["at"], entry["type"] == PICTURE))

    @property
    def title(self) -> str:
        """What was watched."""
        media = self.saved.media
        return Path(media.path).name if media.path else display_name(media.source)

    @property
    def about(self) -> str:
        """How long it was, and with which model."""
        said = counted(len(self.journal.answers), "answer")
        return f"{clock(self.saved.media.clock)} watched by {Path(self.saved.model.name).name}, {said}"

    def write_page(self, path: Path, most_pictures: int) -> None:
        """Write the page, readable by its owner alone. Raises RuntimeFailure."""
        shots = [Shot(each.start, each.end, each.jpeg) for each in self.pictures(most_pictures)]
        exchanges = [
            Exchange(said.at, said.question, said.text, said.wall, tuple((s, e) for s, e, _ in said.recalled))
            for said in self.journal.answers
        ]
        page = timeline_page(self.title, self.about, shots, exchanges)
        try:
            replace_file(path.resolve(), [page.encode("utf-8", "replace")])
        except OSError as error:
            message = f"{path} can't be written: {error.strerror or error}"
            raise RuntimeFailure(message, "make room, or choose another place") from error

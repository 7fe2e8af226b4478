"""The moments of a saved session that a text is about, without an answer: found by the model's own attention over what
was seen and heard, and by the words of what was said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.journal import Journal, Said
from omnitide_cli.runtime.saved_view import saved_snapshot
from omnitide_cli.session.asking import AskOptions, asked, reopened
from omnitide_cli.session.global_options import GlobalOptions
from omnitide_cli.session.resume import Resumption
from omnitide_cli.session.words_index import bm25, merged

if TYPE_CHECKING:
    from omnitide_cli.runtime.recall import Found

CLOSE_S = 0.05
WORD_SPAN_S = 1.0
"""A text says what was there until so long before it."""
TOKENS = 64
"""Of what a search recalls, which is nothing: only that there is an archive matters."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A moment that was found. `score`: of both rankings, the best has 1; `attention`: its share of the text's
    attention over all that was searched, None where it was found by words alone; `words`: what was said then."""

    start: float
    end: float
    score: float
    attention: float | None
    words: str

    def to_json(self, picture: str | None) -> dict[str, Any]:
        """As `omnitide find --json` writes it."""
        return {
            "start": self.start,
            "end": self.end,
            "score": round(self.score, 4),
            "attention": None if self.attention is None else round(self.attention, 6),
            "words": self.words,
            "picture": picture,
        }


@dataclass(frozen=True, slots=True)
class Findings:
    """What a search came to. `searched`: seconds of sound and picture that were compared; `oldest`: their begin."""

    hits: list[Hit]
    journal: Journal
    searched: float
    oldest: float | None


def find_saved(path: Path, text: str, options: AskOptions, state: GlobalOptions, *, limit: int) -> Findings:
    """Search a saved session for what `text` is about; the best moments first. Raises OmniTideError."""
    if not text.strip():
        raise UsageError("there is nothing to find", 'for example: omnitide find talk.tide "the budget is mentioned"')
    with asked(options.output, state, path.name) as (interrupt, outputs):
        with reopened(path, options, interrupt, outputs, _searched) as session:
            for _ in session.begun:
                pass
            interrupt.on_request(session.engine.interrupt)
            found: list[Found] = []
            with suppress(KeyboardInterrupt), interrupt.raising():
                found = session.engine.search(text)
            interrupt.on_request(None)
            journal = session.resumption.journal
        if interrupt.requested:
            raise KeyboardInterrupt
    seen = [each for each in found if each.kind == "media"]
    hits = best(text, seen, journal, limit)
    oldest = min((each.start_s for each in seen), default=None)
    return Findings(hits, journal, sum(each.end_s - each.start_s for each in seen), oldest)


def _searched(manifest: Manifest, resumption: Resumption) -> dict[str, Any]:
    """Settings under which all but the newest second is archived, so that all is compared on the same footing."""
    media = resumption.saved.media
    units = saved_snapshot(resumption.path).state.units
    system = sum(unit.tokens for unit in units if unit.kind == "system")
    low = system + manifest.unit_tokens(media.unit_seconds, media.image_tokens)
    return {"policy": "fifo", "low_watermark": low, "high_watermark": low + 1, "recall_tokens": TOKENS}


def best(text: str, seen: Sequence[Found], journal: Journal, limit: int) -> list[Hit]:
    """The best moments of both rankings, neighbours joined."""
    mean = sum(each.score for each in seen) / max(1, len(seen))
    standing_out = [index for index, each in enumerate(seen) if each.score > mean]
    by_attention = sorted(standing_out, key=lambda index: -seen[index].score)
    spans: list[tuple[float, float]] = [(each.start_s, each.end_s) for each in seen]
    said = bm25(text, [f"{each.question} {each.text}" for each in journal.answers])
    by_words: list[int] = []
    for index in sorted((index for index, score in enumerate(said) if score > 0), key=lambda index: -said[index]):
        place = _place(journal.answers[index], spans, len(seen))
        if place not in by_words:
            by_words.append(place)
    scores = merged([by_attention, by_words])
    chosen = list(scores)[:limit]
    top = max(scores.values(), default=1.0)
    attention = [each.score for each in seen]
    return _joined(
        [(*spans[index], scores[index] / top, attention[index] if index < len(seen) else None) for index in chosen],
        lambda start, end: _words(journal.answers, start, end),
    )


def _place(said: Said, spans: list[tuple[float, float]], n_seen: int) -> int:
    """The second of sound and picture that a text was said at the end of; one of its own, where that isn't searched."""
    for index, (start, end) in enumerate(spans[:n_seen]):
        if start < said.at <= end + CLOSE_S or start <= said.at < end:
            return index
    own = (max(0.0, said.at - WORD_SPAN_S), said.at)
    if own not in spans[n_seen:]:
        spans.append(own)
    return n_seen + spans[n_seen:].index(own)


def _joined(
    found: Sequence[tuple[float, float, float, float | None]], words: Callable[[float, float], str]
) -> list[Hit]:
    joined: list[tuple[float, float, float, float | None]] = []
    for start, end, score, attention in sorted(found):
        if joined and start - joined[-1][1] <= CLOSE_S:
            first, last, best_score, share = joined[-1]
            both = None if share is None and attention is None else (share or 0.0) + (attention or 0.0)
            joined[-1] = (first, max(last, end), max(best_score, score), both)
        else:
            joined.append((start, end, score, attention))
    hits = [Hit(start, end, score, share, words(start, end)) for start, end, score, share in joined]
    return sorted(hits, key=lambda hit: (-hit.score, hit.start))


def _words(answers: Sequence[Said], start: float, end: float) -> str:
    return " / ".join(each.text for each in answers if start < each.at <= end + CLOSE_S)

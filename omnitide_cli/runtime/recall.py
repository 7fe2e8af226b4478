"""Recall: what retention cut comes back for the question that asks for it.

The native archive of one session as Python sees it. A session without one forgets what is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omnitide_cli.runtime.native import check, ffi, lib, text
from omnitide_cli.runtime.view import UNIT_KIND_NAMES

if TYPE_CHECKING:
    from omnitide_cli.runtime.native_session import NativeSession

VERDICTS = {
    lib.OT_VERDICT_RECALLED: "recalled",
    lib.OT_VERDICT_NOTHING: "nothing",
    lib.OT_VERDICT_NOT_CLEAR: "not-clear",
    lib.OT_VERDICT_NO_ROOM: "no-room",
}
MOST_RECALLED = 1024
"""Units of one recall that are told of; none has so few tokens that more would fit."""


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """`layers`: whose keys and queries are compared; `threshold`: how many times the score of a unit in the middle the
    best one must have; `share` of its score: what has less doesn't come back; `reference`: tokens of a question about
    nothing in particular that scores are weighed against."""

    layers: tuple[int, ...]
    tokens: int
    threshold: float
    memory: int
    disk: int = 0
    file: Path | None = None
    share: float = 0.7
    reference: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """An archived unit and its share of what a question asks for."""

    unit: int
    kind: str
    score: float
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Recollection:
    """How a question was dealt with: what came back, in the order of time, or why nothing did (`VERDICTS`)."""

    verdict: str
    clearness: float
    tokens: int
    searched: int
    oldest_s: float
    search_ms: float
    insert_ms: float
    units: tuple[Found, ...]


class Recall:
    """Opens the archive of a session; closed with it. All calls belong to the session's thread."""

    def __init__(self, session: NativeSession, settings: RecallSettings) -> None:
        """Raises ModelError where this model's rows can't be searched, UsageError for layers that it doesn't have."""
        self.settings = settings
        self._session = session
        params = lib.ot_recall_default_params()
        layers = ffi.new("uint32_t[]", list(settings.layers))
        file = ffi.NULL if settings.file is None else ffi.new("char[]", bytes(settings.file))
        params.tokens, params.threshold, params.share = settings.tokens, settings.threshold, settings.share
        params.layers, params.n_layers = layers, len(settings.layers)
        reference = ffi.new("int32_t[]", list(settings.reference))
        params.reference, params.n_reference = reference, len(settings.reference)
        params.memory_bytes, params.disk_bytes, params.file = settings.memory, settings.disk, file
        check(lib.ot_recall_open(self._handle, ffi.addressof(params)))

    @property
    def _handle(self) -> Any:
        return self._session.handle

    def note(self, unit: int, *, words: str = "", picture: bytes = b"") -> None:
        """Keep a text and a thumbnail (the bytes of an image file) with a unit for when it is archived."""
        data = words.encode("utf-8", "replace")
        check(lib.ot_recall_note(self._handle, unit, data, len(data), picture, len(picture)))

    def for_question(self, tokens: Sequence[int], *, reserved: int) -> Recollection:
        """Put back what the question asks for, or nothing; `reserved` cells stay free for it and its answer."""
        out, units = ffi.new("ot_recalled *"), ffi.new("ot_found[]", MOST_RECALLED)
        check(lib.ot_recall_question(self._handle, list(tokens), len(tokens), reserved, units, MOST_RECALLED, out))
        return Recollection(
            verdict=VERDICTS[out.verdict],
            clearness=out.clearness,
            tokens=out.tokens,
            searched=out.searched,
            oldest_s=out.oldest_s,
            search_ms=out.search_ms,
            insert_ms=out.insert_ms,
            units=tuple(_found(each) for each in units[0 : min(out.n_units, MOST_RECALLED)]),
        )

    def search(self, tokens: Sequence[int]) -> list[Found]:
        """Every archived unit, by age, with its score."""
        count = ffi.new("size_t *")
        most = self.archive().units
        units = ffi.new("ot_found[]", most)
        check(lib.ot_recall_search(self._handle, list(tokens), len(tokens), units, most, count))
        return [_found(each) for each in units[0 : count[0]]]

    def put_back(self, units: Sequence[int]) -> int:
        """Put these archived units back, whatever is asked, in place of what was recalled before; the tokens that came.
        Units whose rows are gone are left out. Raises UsageError for what isn't archived, CacheFull without room."""
        tokens = ffi.new("uint32_t *")
        check(lib.ot_recall_units(self._handle, list(units), len(units), tokens))
        return tokens[0]

    def dismiss(self) -> None:
        """Take out what was recalled; harmless when there is nothing."""
        check(lib.ot_recall_dismiss(self._handle))

    def noted(self, unit: int) -> tuple[int, str, bytes]:
        """Tokens that are left of an archived unit, and what was noted of it. Raises UsageError for another."""
        tokens, n_words, n_picture = ffi.new("uint32_t *"), ffi.new("size_t *"), ffi.new("size_t *")
        check(lib.ot_recall_noted(self._handle, unit, tokens, ffi.NULL, 0, n_words, ffi.NULL, 0, n_picture))
        words, picture = ffi.new("char[]", n_words[0] + 1), ffi.new("uint8_t[]", n_picture[0] + 1)
        where = words, n_words[0], n_words, picture, n_picture[0], n_picture
        check(lib.ot_recall_noted(self._handle, unit, tokens, *where))
        said = bytes(ffi.buffer(words, n_words[0])).decode("utf-8", "replace")
        return tokens[0], said, bytes(ffi.buffer(picture, n_picture[0]))

    def save(self) -> NDArray[np.uint8]:
        """The archive as bytes, rows on disk included: at most its two budgets, and what is noted of kept units."""
        size = ffi.new("size_t *")
        check(lib.ot_recall_save(self._handle, ffi.NULL, 0, size))
        out = np.empty(size[0], dtype=np.uint8)
        check(lib.ot_recall_save(self._handle, ffi.from_buffer("uint8_t[]", out), out.size, size))
        return out[: size[0]]

    def restore(self, state: NDArray[np.uint8] | bytes | memoryview) -> None:
        """Take what `save` gave in place of what there is, once the session that it belongs to is restored.

        Raises SessionFileError for what is damaged or of another model, ModelError for what can't be searched by these
        layers; then the archive is as it was.
        """
        check(lib.ot_recall_restore(self._handle, ffi.from_buffer("uint8_t[]", state), len(state)))

    def archive(self) -> Any:
        """What the archive holds; an `ot_archive_info`."""
        out = ffi.new("ot_archive_info *")
        check(lib.ot_recall_archive(self._handle, out))
        return out

    def problem(self) -> str:
        """Why nothing is written to disk any more; "" when all is well."""
        return text(self.archive().problem)


def _found(each: Any) -> Found:
    return Found(each.unit, UNIT_KIND_NAMES[each.kind], each.score, each.start_s, each.end_s)

"""Events for programs: one JSON object a line, schema version 1."""

from __future__ import annotations

import codecs
import json
from typing import Any, TextIO

from omnitide_cli.addresses import redact
from omnitide_cli.errors import OmniTideError
from omnitide_cli.formats.sink import Sink
from omnitide_cli.formats.words import error_code
from omnitide_cli.runtime.events import Event


class NdjsonSink(Sink):
    """Writes every event as it comes; each line is flushed, so that a reader is never behind.

    Outside UTF-8 everything beyond ASCII is escaped, which keeps a line whole under any encoding.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ascii = not _is_utf8(stream.encoding)

    def emit(self, event: Event) -> None:
        self._write(event.to_json())

    def failed(self, error: BaseException) -> None:
        hint = error.hint if isinstance(error, OmniTideError) else ""
        self._write({"type": "error", "code": error_code(error), "message": redact(str(error)), "hint": redact(hint)})

    def _write(self, fields: dict[str, Any]) -> None:
        self._stream.write(json.dumps(fields, ensure_ascii=self._ascii) + "\n")
        self._stream.flush()


def _is_utf8(encoding: str | None) -> bool:
    try:
        return codecs.lookup(encoding or "").name == "utf-8"
    except LookupError:
        return False

"""docs/events.md says what the event classes say, and every event there is."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from omnitide_cli.runtime import event_parts, events, kv_state
from omnitide_cli.runtime.saved import SavedMedia

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_document_is_up_to_date(generate: ModuleType) -> None:
    written = (DOCS / "events.md").read_text(encoding="utf-8")
    assert written == generate.events_document(), "run: uv run python docs/generate.py"


def test_every_event_is_in_it(generate: ModuleType) -> None:
    kinds = {each for each in vars(events).values() if isinstance(each, type) and issubclass(each, events.Event)}
    assert set(generate.EVENTS) == kinds - {events.Event}
    document = generate.events_document()
    for kind in kinds - {events.Event}:
        assert f"\n## {kind.type}\n" in document


def test_links_lead_somewhere(generate: ModuleType) -> None:
    document = generate.events_document()
    anchors = {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", document, re.M)}
    assert set(re.findall(r"\]\(#([^)]+)\)", document)) <= anchors


@pytest.mark.parametrize("module", [events, event_parts, kv_state])
def test_every_field_says_what_it_is(generate: ModuleType, module: Any) -> None:
    for kind in vars(module).values():
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__:
            if kind is kv_state.Simulation:
                continue
            generate.field_rows(kind)


def test_a_field_without_a_word_is_found(generate: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"SavedMedia\.source has no docstring"):
        generate.field_rows(SavedMedia)

"""The shipped model and example, and the installed command."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnitide_cli.catalog.files import fetch_files
from omnitide_cli.catalog.manifest import Manifest, load_manifest
from omnitide_cli.runtime.options import ModelFiles

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def manifest() -> Manifest:
    """The demo model's manifest."""
    return load_manifest("omnitide-demo")


@pytest.fixture(scope="session")
def demo_files(manifest: Manifest) -> ModelFiles:
    """The demo model's files."""
    return fetch_files(manifest, None, lambda _: None)


@pytest.fixture(scope="session")
def example() -> Path:
    """The shipped clip with picture and sound."""
    return ROOT / "examples" / "shapes-and-notes.mp4"

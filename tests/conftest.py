"""Tests leave nothing in the folders of whoever runs them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def _home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMNITIDE_HOME", str(tmp_path_factory.mktemp("omnitide-home")))
        yield


@pytest.fixture(scope="session")
def tiny_family_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tiny models of families (tiny_models.families) are written, each once a run."""
    return tmp_path_factory.mktemp("families")


def pytest_configure() -> None:
    """Signals that were ignored where the tests were started (in the background, under nohup) would be ignored by every
    command they start, too. A handler is not inherited: the commands get the default."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)

"""How llama.cpp's threads wait for each other, unless the user wants otherwise: what its OpenMP library says."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from omnitide_cli.runtime import openmp
from omnitide_cli.runtime.versions import report

IMPORT = "import cv2, av, numpy, omnitide_cli.runtime.native"


def displayed(code: str, **environment: str) -> dict[str, str]:
    """The settings that libgomp took when it was loaded."""
    own = {name: value for name, value in os.environ.items() if name not in openmp.VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**own, **environment, "OMP_DISPLAY_ENV": "verbose"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(re.findall(r"^\s*(?:\[\w+\]\s*)?(\w+) = '(.*)'$", done.stderr, re.MULTILINE))
    if "OMP_WAIT_POLICY" not in found:
        pytest.skip("llama.cpp's OpenMP library here shows no settings")
    return found


@pytest.mark.skipif("OPENMP" not in report()["features"], reason="llama.cpp was built without OpenMP")
@pytest.mark.parametrize(
    ("environment", "policy", "spins"),
    [
        ({}, None, openmp.BRIEFLY["GOMP_SPINCOUNT"]),
        ({"OMP_WAIT_POLICY": "passive"}, "PASSIVE", "0"),
        ({"OMP_WAIT_POLICY": "active"}, "ACTIVE", None),
        ({"GOMP_SPINCOUNT": "1000"}, None, "1000"),
    ],
)
def test_threads_soon_sleep_unless_the_user_has_decided(
    environment: dict[str, str], policy: str | None, spins: str | None
) -> None:
    found = displayed(IMPORT, **environment)
    assert policy in (None, found["OMP_WAIT_POLICY"])
    assert spins in (None, found["GOMP_SPINCOUNT"])


@pytest.mark.skipif("OPENMP" not in report()["features"], reason="llama.cpp was built without OpenMP")
def test_it_is_set_before_the_library_is_loaded_by_anything_that_a_session_uses() -> None:
    modules = "omnitide_cli.media, omnitide_cli.session.run, omnitide_cli.terminal.dashboard.renderer"
    found = displayed(f"import {modules}; from omnitide_cli.runtime import engine")
    assert found["GOMP_SPINCOUNT"] == openmp.BRIEFLY["GOMP_SPINCOUNT"]


def test_the_users_own_settings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in openmp.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert openmp.waiting() == "spinning (nothing is set)"
    monkeypatch.setenv("KMP_BLOCKTIME", "30")
    openmp.wait_briefly()
    assert "GOMP_SPINCOUNT" not in os.environ
    assert openmp.waiting() == "KMP_BLOCKTIME=30"

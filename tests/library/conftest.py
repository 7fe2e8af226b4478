"""The shipped model and example, a wheel of this source, and a folder in which it is installed alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "shapes-and-notes.mp4"


@dataclass(frozen=True)
class Installed:
    """A folder with an unpacked wheel, and how to run Python with it and without this source tree."""

    folder: Path

    def python(self, code: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run code in a process of its own."""
        # -S: nothing of site-packages runs, so that the editable install of this source tree isn't found
        path = os.pathsep.join([str(self.folder), sysconfig.get_path("purelib")])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1", "OMNITIDE_HOME": str(cwd / "home")}
        return subprocess.run(
            [sys.executable, "-S", "-c", code], cwd=cwd, env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this source, unpacked. The environment's own build has left all that it takes."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv isn't there to build a wheel with")
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [uv, "build", "--wheel", "--offline", "--out-dir", str(folder / "dist"), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode and "offline" in built.stderr:
        pytest.skip("what builds a wheel is not in uv's cache")
    assert built.returncode == 0, built.stderr
    [wheel] = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return Installed(folder / "installed")

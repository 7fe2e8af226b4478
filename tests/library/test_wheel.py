"""The public face as those get it who install OmniTide: from a wheel, without this source tree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import EXAMPLE, ROOT, Installed

FIVE_LINES = """
import omnitide_cli as omnitide
with omnitide.load("qwen2.5-omni-3b") as session:
    for unit in omnitide.read("talk.mp4", for_=session): session.add(unit)
    print(session.ask("What was it about?").text)
"""

pytestmark = pytest.mark.timeout(900)  # the wheel's native library may have to be compiled


def test_five_lines_watch_and_ask(installed: Installed, tmp_path: Path) -> None:
    code = FIVE_LINES.replace("qwen2.5-omni-3b", "omnitide-demo").replace("talk.mp4", str(EXAMPLE))
    code = code.replace("What was it about?", "What do you see and hear?")
    done = installed.python(f"{code}\nprint(omnitide.__file__)", tmp_path)
    assert done.returncode == 0, done.stderr
    answer, where = done.stdout.splitlines()
    assert answer == "A cyan square and the note do."
    assert Path(where).is_relative_to(installed.folder)


def test_the_wheel_says_that_it_is_typed(installed: Installed) -> None:
    assert (installed.folder / "omnitide_cli" / "py.typed").is_file()


def test_a_user_of_the_whole_public_face_is_typed_strictly(installed: Installed, tmp_path: Path) -> None:
    source = ROOT / "tests" / "library" / "public_face.py"
    assert errors_in(source.read_text(encoding="utf-8"), installed, tmp_path) == []


def test_strict_types_find_what_is_wrong(installed: Installed, tmp_path: Path) -> None:
    lines = (
        'omnitide.load(layout="best")',
        'omnitide.load(high_watermark="2000")',
        "omnitide.load(no=1)",
        "omnitide.read('talk.mp4')",
        "omnitide.missing()",
    )
    found = errors_in("\n".join(("import omnitide_cli as omnitide", *lines)), installed, tmp_path)
    assert {error["range"]["start"]["line"] for error in found} == {1, 2, 3, 4, 5}


def errors_in(code: str, installed: Installed, folder: Path) -> list[dict[str, Any]]:
    """What pyright says of code in strict mode."""
    (folder / "user.py").write_text(code, encoding="utf-8")
    settings = {"include": ["user.py"], "extraPaths": [str(installed.folder)], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "-p", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return report["generalDiagnostics"]

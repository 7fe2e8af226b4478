"""A wrong llama-cpp-python, a foreign libllama, another ABI: one message that names both sides and the remedy."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from omnitide_cli.errors import ModelError
from omnitide_cli.runtime import native, versions


@pytest.mark.parametrize("installed", ["0.3.35", "0.4.0"])
def test_another_release_is_refused(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: installed)
    with pytest.raises(ModelError, match=installed) as refused:
        native._check_package()
    assert native.LLAMA_CPP_PYTHON in refused.value.message
    assert "pip install" in refused.value.hint


@pytest.mark.parametrize("installed", ["0.3.36", "0.3.36+cu124"])
def test_a_build_of_ones_own_is_welcome(monkeypatch: pytest.MonkeyPatch, installed: str) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: installed)
    native._check_package()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(ModelError, match="not installed"):
        native._check_package()


def test_libraries_that_do_not_load_are_an_unusable_model_runtime() -> None:
    """llama_cpp raises RuntimeError or FileNotFoundError when its shared libraries are broken or gone."""
    broken = (
        "import sys; sys.modules['llama_cpp'] = type(sys)('llama_cpp'); sys.modules['llama_cpp'].__path__ = []\n"
        "import importlib.abc\n"
        "class Broken(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name.startswith('llama_cpp.'): raise RuntimeError('Failed to load shared library')\n"
        "sys.meta_path.insert(0, Broken())\n"
        "from omnitide_cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", broken, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "llama-cpp-python can't be loaded: Failed to load shared library" in done.stdout


def test_a_foreign_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "versions", lambda: {"ggml": ("0.9.4", "0.25.3")})
    with pytest.raises(ModelError, match=r"ggml 0\.9\.4 is loaded .* 0\.25\.3"):
        native._check_versions()


def test_another_abi_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "abi_version", lambda: 99)
    with pytest.raises(ModelError, match="ABI 99"):
        native._check_versions()


def test_loaded_libraries_are_the_expected_ones() -> None:
    assert all(loaded == expected for loaded, expected in native.versions().values())
    assert f"ABI {native.ABI_VERSION} ok" in versions.describe()


def test_the_version_is_told_when_nothing_can_be_loaded() -> None:
    """`omnitide --version` must work where the runtime doesn't."""
    broken = "import sys; sys.modules['llama_cpp'] = None; from omnitide_cli.app import main; main()"
    done = subprocess.run([sys.executable, "-c", broken, "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "omnitide 0" in done.stdout
    assert "can't be loaded" in done.stdout

"""From a name or a path to files; the hub is only asked when it must be."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from omnitide_cli.catalog.files import UNKNOWN_WEIGHTS, fetch_files, find_manifest
from omnitide_cli.catalog.folders import cache_dir, config_dir, hub_dir
from omnitide_cli.catalog.manifest import Manifest, ModelFile, load_manifest
from omnitide_cli.errors import ModelError

CONTENT = b"GGUF and more"


class Hub:
    """Stands in for the network: downloads are counted and have a fixed content."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.downloads: list[str] = []
        self.error: Exception | None = None

    def try_to_load_from_cache(self, repo: str, file: str, **options: Any) -> str | None:
        assert options["cache_dir"] == hub_dir()
        path = self.cache / file
        return str(path) if path.exists() else None

    def hf_hub_download(self, repo: str, file: str, **options: Any) -> str:
        if self.error:
            raise self.error
        self.downloads.append(f"{repo}/{file}@{options['revision']}")
        (self.cache / file).write_bytes(CONTENT)
        return str(self.cache / file)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    hub = Hub(tmp_path)
    for name in ("try_to_load_from_cache", "hf_hub_download"):
        monkeypatch.setattr(huggingface_hub, name, getattr(hub, name))
    return hub


@pytest.fixture
def remote() -> Manifest:
    """A model on the hub whose files have the right checksum."""
    file = ModelFile(repo="a/b", file="m.gguf", revision="abc", sha256=hashlib.sha256(CONTENT).hexdigest())
    return replace(load_manifest(UNKNOWN_WEIGHTS), model=file, mmproj=replace(file, file="p.gguf"))


def test_files_are_downloaded_once(hub: Hub, remote: Manifest) -> None:
    told: list[str] = []
    files = fetch_files(remote, notify=told.append)
    assert (files.model, files.mmproj) == (hub.cache / "m.gguf", hub.cache / "p.gguf")
    assert fetch_files(remote, notify=told.append) == files
    assert hub.downloads == ["a/b/m.gguf@abc", "a/b/p.gguf@abc"]
    assert told == ["downloading a/b/m.gguf", "downloading a/b/p.gguf"]


def test_offline_says_what_to_fetch(hub: Hub, remote: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE") as caught:
        fetch_files(remote)
    assert "a/b/m.gguf" in caught.value.hint
    assert hub.downloads == []


def test_a_failed_download_gives_the_reason(hub: Hub, remote: Manifest) -> None:
    hub.error = OSError("Connection refused\nlots of detail")
    with pytest.raises(ModelError, match=r"can't be downloaded: Connection refused$"):
        fetch_files(remote)


def test_a_damaged_download_is_removed(hub: Hub, remote: Manifest) -> None:
    with pytest.raises(ModelError, match="damaged"):
        fetch_files(replace(remote, model=replace(remote.model, sha256="0" * 64)))
    assert not (hub.cache / "m.gguf").exists()


def test_a_bare_gguf_gets_the_prompt_of_its_family(tmp_path: Path) -> None:
    path = tmp_path / "my.gguf"
    path.write_bytes(CONTENT)
    manifest = find_manifest(str(path))
    files = fetch_files(manifest)
    assert (manifest.name, files.name) == ("my", "my")
    assert (files.model, files.mmproj) == (path, None)
    assert manifest.prompt == load_manifest(UNKNOWN_WEIGHTS).prompt


def test_a_projector_replaces_the_manifests(hub: Hub, remote: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "own-mmproj.gguf"
    path.write_bytes(CONTENT)
    assert fetch_files(remote, str(path)).mmproj == path
    assert hub.downloads == ["a/b/m.gguf@abc"]


def test_a_manifest_can_be_given_by_its_path() -> None:
    demo = load_manifest("omnitide-demo")
    assert find_manifest(str(demo.folder / "omnitide-demo.toml")) == demo


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    folder = tmp_path / "x.gguf"
    folder.mkdir()
    manifest = find_manifest(str(folder))
    with pytest.raises(ModelError, match="is a folder"):
        fetch_files(manifest)


def test_one_variable_moves_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path))
    assert (config_dir(), cache_dir(), hub_dir()) == (tmp_path / "config", tmp_path / "cache", tmp_path / "cache/hub")
    monkeypatch.delenv("OMNITIDE_HOME")
    assert hub_dir() is None
    assert config_dir().name == "omnitide"

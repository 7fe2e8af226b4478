"""From a name or a path to files; the hub is only asked when it must be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import huggingface_hub.constants
import pytest
from hub_server import COMMIT, Hub, serving
from tiny_models.families import FAMILIES

from omnitide_cli.catalog import hub
from omnitide_cli.catalog.files import (
    FOR_REAL_VIDEO,
    check_files,
    fetch_files,
    file_states,
    find_manifest,
    remove_files,
    unfinished_bytes,
)
from omnitide_cli.catalog.folders import cache_dir, config_dir, hub_dir
from omnitide_cli.catalog.manifest import Manifest, ModelFile, load_manifest
from omnitide_cli.errors import ModelError

MODEL, MMPROJ = b"GGUF" + bytes(range(256)) * 50, b"GGUF and the encoders"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that has both files, and an empty cache."""
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    with serving() as hub:
        hub.files = {"a/b/m.gguf": MODEL, "a/b/p.gguf": MMPROJ}
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub


@pytest.fixture
def remote() -> Manifest:
    """A model on that hub."""
    file = ModelFile(
        repo="a/b", file="m.gguf", revision=COMMIT, size=len(MODEL), sha256=hashlib.sha256(MODEL).hexdigest()
    )
    encoders = ModelFile(repo="a/b", file="p.gguf")
    return replace(load_manifest(FOR_REAL_VIDEO), name="remote", model=file, mmproj=encoders)


def test_files_are_downloaded_once(server: Hub, remote: Manifest) -> None:
    told: list[str] = []
    assert [state.path for state in file_states(remote)] == [None, None]
    files = fetch_files(remote, notify=told.append)
    assert files.mmproj
    assert (files.model.read_bytes(), files.mmproj.read_bytes()) == (MODEL, MMPROJ)
    assert fetch_files(remote, notify=told.append) == files
    assert server.ranges == ["", ""]
    assert told == [
        *("downloading a/b/m.gguf (0.0 GB)", "checking a/b/m.gguf"),
        *("downloading a/b/p.gguf (0.0 GB)", "checking a/b/p.gguf"),
    ]
    assert [state.path for state in file_states(remote)] == [files.model, files.mmproj]


def test_the_cache_is_the_one_of_the_hub(server: Hub, remote: Manifest) -> None:
    path = fetch_files(remote).model
    found = huggingface_hub.hf_hub_download(
        "a/b", "m.gguf", revision=COMMIT, cache_dir=hub_dir(), endpoint=server.address, local_files_only=True
    )
    assert Path(found) == path
    assert path.resolve().name == hashlib.sha256(MODEL).hexdigest()


def test_a_broken_connection_is_taken_up_again(server: Hub, remote: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 500)
    server.cut_after = [1000]
    assert fetch_files(replace(remote, mmproj=None)).model.read_bytes() == MODEL
    assert server.ranges == ["", "bytes=1000-"]


def test_the_next_try_goes_on_where_the_last_one_ended(server: Hub, remote: Manifest) -> None:
    partial = hub._blobs(remote.model) / (remote.model.sha256 + hub.PARTIAL)
    partial.parent.mkdir(parents=True)
    partial.write_bytes(MODEL[:5000])
    assert unfinished_bytes(remote) == 5000
    assert fetch_files(replace(remote, mmproj=None)).model.read_bytes() == MODEL
    assert server.ranges == ["bytes=5000-"]
    assert not partial.exists()


def test_a_rest_of_another_length_is_fetched_anew(server: Hub, remote: Manifest) -> None:
    partial = hub._blobs(remote.model) / (remote.model.sha256 + hub.PARTIAL)
    partial.parent.mkdir(parents=True)
    partial.write_bytes(MODEL + b"more")
    assert fetch_files(replace(remote, mmproj=None)).model.read_bytes() == MODEL


def test_offline_says_what_to_fetch(server: Hub, remote: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE") as caught:
        fetch_files(remote)
    assert "a/b/resolve/" in caught.value.hint
    assert "--model m.gguf --mmproj p.gguf" in caught.value.hint
    assert (server.ranges, server.heads) == ([], 0)


def test_what_is_here_needs_no_network(server: Hub, remote: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    files, asked = fetch_files(remote), server.heads
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fetch_files(remote) == files
    assert server.heads == asked


def test_a_file_that_the_server_has_not_is_said_so(server: Hub, remote: Manifest) -> None:
    with pytest.raises(ModelError, match=r"a/b/x\.gguf can't be downloaded: the server has no such file \(404\)"):
        fetch_files(replace(remote, model=replace(remote.model, file="x.gguf")))


def test_a_server_that_is_gone_is_said_so(remote: Manifest, server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError, match=r"can't be downloaded: .*refused"):
        fetch_files(remote)


def test_a_damaged_download_is_removed(server: Hub, remote: Manifest) -> None:
    wrong = replace(remote.model, sha256="0" * 64)
    with pytest.raises(ModelError, match="damaged: its checksum differs from the manifest's"):
        fetch_files(replace(remote, model=wrong))
    folder = hub._folder(remote.model)
    assert not [path for path in folder.rglob("*") if path.is_file() or path.is_symlink()]


def test_without_a_checksum_in_the_manifest_the_servers_counts(server: Hub, remote: Manifest) -> None:
    server.etags["a/b/p.gguf"] = "1" * 64
    with pytest.raises(ModelError, match=r"a/b/p\.gguf arrived damaged: its checksum differs from the server's"):
        fetch_files(remote)


def test_another_size_is_refused_before_the_download(server: Hub, remote: Manifest) -> None:
    with pytest.raises(ModelError, match="but the manifest says 17"):
        fetch_files(replace(remote, model=replace(remote.model, size=17)))
    assert server.ranges == []


def test_a_full_disk_is_said_before_the_download(
    server: Hub, remote: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub.shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with pytest.raises(ModelError, match="GB is free") as refused:
        fetch_files(remote)
    assert "HF_HOME" in refused.value.hint
    assert server.ranges == []


def test_a_file_cut_off_in_the_cache_is_fetched_anew(server: Hub, remote: Manifest) -> None:
    fetch_files(remote).model.resolve().write_bytes(MODEL[:10])
    assert fetch_files(remote).model.read_bytes() == MODEL


def test_checksums_of_what_is_here_can_be_checked(server: Hub, remote: Manifest) -> None:
    path = fetch_files(remote).model
    check_files(remote, lambda message: None)
    path.resolve().write_bytes(MODEL[::-1])
    with pytest.raises(ModelError, match="is damaged"):
        check_files(remote, lambda message: None)


def test_removing_leaves_what_others_have_cached(server: Hub, remote: Manifest) -> None:
    server.files["a/b/other"] = b"of another tool"
    other = ModelFile(repo="a/b", file="other")
    kept = hub.fetch(other, lambda message: None)
    fetch_files(remote)
    leftover = hub._blobs(remote.model) / (remote.model.sha256 + hub.PARTIAL)
    leftover.write_bytes(b"12345")
    assert remove_files(remote) == len(MODEL) + len(MMPROJ) + 5
    assert [state.path for state in file_states(remote)] == [None, None]
    assert kept.read_bytes() == b"of another tool"
    assert remove_files(remote) == 0


def test_what_was_not_downloaded_is_not_removed() -> None:
    with pytest.raises(ModelError, match="was not downloaded"):
        remove_files(load_manifest("omnitide-demo"))


def test_a_bare_gguf_describes_itself(tmp_path: Path) -> None:
    path = FAMILIES["qwen2.5-omni"].write(tmp_path)[0]
    manifest = find_manifest(str(path))
    files = fetch_files(manifest)
    assert (manifest.name, files.name) == ("qwen2.5-omni", "qwen2.5-omni")
    assert (files.model, files.mmproj) == (path, None)
    known = load_manifest(FOR_REAL_VIDEO).prompt
    for part in ("system_prefix", "system_suffix", "question_suffix", "response_suffix"):
        assert getattr(manifest.prompt, part) == getattr(known, part)


def test_a_projector_replaces_the_manifests(server: Hub, remote: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "own-mmproj.gguf"
    path.write_bytes(MODEL)
    assert fetch_files(remote, str(path)).mmproj == path
    assert len(server.ranges) == 1


def test_a_manifest_can_be_given_by_its_path() -> None:
    demo = load_manifest("omnitide-demo")
    assert find_manifest(str(demo.folder / "omnitide-demo.toml")) == demo


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    folder = tmp_path / "x.gguf"
    folder.mkdir()
    with pytest.raises(ModelError, match="is a folder"):
        find_manifest(str(folder))


def test_one_variable_moves_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path))
    assert (config_dir(), cache_dir(), hub_dir()) == (tmp_path / "config", tmp_path / "cache", tmp_path / "cache/hub")
    monkeypatch.delenv("OMNITIDE_HOME")
    assert hub_dir() is None
    assert config_dir().name == "omnitide"

"""`omnitide models`: what is known and here; a pull that is interrupted goes on later."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_server import COMMIT, serving
from tiny_models.families import FAMILIES

from omnitide_cli.catalog.manifest import load_manifest

Omnitide = Callable[..., Any]

COMMAND = [sys.executable, "-m", "omnitide_cli", "models"]
LARGE = bytes(range(256)) * (24 << 12)  # 24 MB: the hub's client hands on 10 MB at a time


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A model of one file on the hub."""
    shipped = load_manifest("omnitide-demo").folder / "omnitide-demo.toml"
    before, _, after = shipped.read_text().partition("[files.model]")
    file = f'repo = "a/b"\nfile = "m.gguf"\nrevision = "{COMMIT}"\nsha256 = "{hashlib.sha256(LARGE).hexdigest()}"\n'
    path = tmp_path / "own.toml"
    rest = after[after.index("[prompt]") :]
    path.write_text(f"{before.replace('omnitide-demo', 'own')}[files.model]\n{file}\n{rest}")
    return path


def test_a_pull_that_is_interrupted_goes_on_later(manifest: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    with serving() as hub:
        env = {**kept, "HF_ENDPOINT": hub.address, "OMNITIDE_HOME": str(tmp_path / "home")}
        hub.files = {"a/b/m.gguf": LARGE}
        hub.stall_after = 12 << 20
        with subprocess.Popen([*COMMAND, "pull", str(manifest)], env=env, stderr=subprocess.PIPE) as process:
            until = time.monotonic() + 60
            while not (partials := list((tmp_path / "home").rglob("*-partial"))) or not partials[0].stat().st_size:
                assert time.monotonic() < until
                assert process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
        arrived = partials[0].stat().st_size
        assert 0 < arrived < len(LARGE)
        hub.stall_after = None

        info = subprocess.run([*COMMAND, "info", str(manifest), "--json"], env=env, capture_output=True, check=True)
        described = json.loads(info.stdout)
        assert (described["state"], described["unfinished_bytes"]) == ("in part", arrived)

        done = subprocess.run([*COMMAND, "pull", str(manifest)], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "resuming after" in done.stderr
        assert Path(done.stdout.strip()).read_bytes() == LARGE
        assert hub.ranges == ["", f"bytes={arrived}-"]

        asked = hub.heads
        offline = subprocess.run(
            [*COMMAND, "pull", str(manifest), "--check"], env={**env, "HF_HUB_OFFLINE": "1"}, check=False
        )
        assert (offline.returncode, hub.heads) == (0, asked)
        done = subprocess.run([*COMMAND, "remove", str(manifest), "--yes"], env=env, capture_output=True, check=False)
        assert done.stdout == b"25.2 MB freed\n"


def test_the_known_models_are_listed(omnitide: Omnitide) -> None:
    rows = [json.loads(line) for line in omnitide("models", "list", "--json").out.splitlines()]
    assert [(row["name"], row["state"], row["default"]) for row in rows] == [
        ("omnitide-demo", "shipped", True),
        ("minicpm-o-4.5", "not here", False),
        ("minicpm-v-4.5", "not here", False),
        ("qwen2.5-omni-3b", "not here", False),
        ("qwen2.5-omni-7b", "not here", False),
    ]
    text = omnitide("models", "list").out
    assert all(row["name"] in text for row in rows)
    assert "\x1b" not in text


def test_offline_and_not_here_ends_with_the_way_around(omnitide: Omnitide) -> None:
    result = omnitide("models", "pull", "qwen2.5-omni-3b")
    assert (result.code, result.out) == (4, "")
    assert "HF_HUB_OFFLINE" in result.err
    for file in ("Qwen2.5-Omni-3B-Q4_K_M.gguf", "mmproj-Qwen2.5-Omni-3B-Q8_0.gguf"):
        assert "https://huggingface.co/ggml-org/Qwen2.5-Omni-3B-GGUF/resolve/" in result.err
        assert f"/{file} " in result.err
    assert "--model Qwen2.5-Omni-3B-Q4_K_M.gguf --mmproj mmproj-Qwen2.5-Omni-3B-Q8_0.gguf" in result.err


def test_where_nothing_answers_all_files_are_named_at_once(omnitide: Omnitide, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnitide_cli.catalog.hub.is_offline", lambda: False)
    monkeypatch.setattr("huggingface_hub.get_hf_file_metadata", lambda *_: (_ for _ in ()).throw(OSError("no network")))
    result = omnitide("models", "pull", "qwen2.5-omni-3b")
    assert result.code == 4
    assert "can't be downloaded: no network" in result.err
    assert result.err.count("https://huggingface.co/") == 2


def test_a_path_is_always_enough(omnitide: Omnitide, tmp_path: Path) -> None:
    own = FAMILIES["moondream2"].write(tmp_path)[0]
    assert omnitide("models", "pull", own).out == f"{own}\n"
    assert f"{own}" in omnitide("models", "info", own).out
    result = omnitide("models", "remove", own, "--yes")
    assert (result.code, own.exists()) == (4, True)


@pytest.mark.parametrize("command", ["pull", "info", "remove"])
def test_an_unknown_name_is_told_with_the_known_ones(omnitide: Omnitide, command: str) -> None:
    result = omnitide("models", command, "qwen")
    assert result.code == 4
    assert "qwen2.5-omni-3b" in result.err


def test_the_shipped_model_stays(omnitide: Omnitide) -> None:
    result = omnitide("models", "remove", "omnitide-demo", "--yes")
    assert result.code == 4
    assert all(row["path"] for row in json.loads(omnitide("models", "info", "omnitide-demo", "--json").out)["files"])


def test_removing_what_is_not_here_is_no_error(omnitide: Omnitide) -> None:
    assert omnitide("models", "remove", "qwen2.5-omni-3b").out == "qwen2.5-omni-3b is not on this machine\n"


def test_a_model_that_does_not_hear_says_so(omnitide: Omnitide) -> None:
    line = next(line for line in omnitide("models", "info", "minicpm-v-4.5").out.splitlines() if "per second" in line)
    assert line.split("  ")[-1] == "at most 256 tokens of image (640 with --image-tokens 640), no audio"

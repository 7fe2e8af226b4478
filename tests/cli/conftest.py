"""A command line to call, a clip to watch, and an engine that plays a part instead of a model."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import av
import numpy as np
import pytest
from scripted import ScriptedEngine, module_with
from tiny_models.families import FAMILIES

from omnitide_cli.app import app
from omnitide_cli.commands.run import run


@dataclass
class Result:
    """What a command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, weights: Path) -> type[ScriptedEngine]:
    """The class whose instances the command line opens, fresh for every test."""

    class Engine(ScriptedEngine):
        opened: ClassVar[list[Any]] = []

    monkeypatch.setitem(sys.modules, "omnitide_cli.runtime.engine", module_with(Engine))
    return Engine


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny_family_folder: Path) -> Path:
    """A folder with the files of a tiny model that sees and hears; the variables name them."""
    folder = tmp_path / "weights"
    folder.mkdir()
    for name, path in zip(
        ("tiny.gguf", "mmproj-tiny.gguf"), FAMILIES["qwen2.5-omni"].write(tiny_family_folder), strict=True
    ):
        shutil.copy(path, folder / name)
    monkeypatch.setenv("OMNITIDE_MODEL", str(folder / "tiny.gguf"))
    monkeypatch.setenv("OMNITIDE_MMPROJ", str(folder / "mmproj-tiny.gguf"))
    return folder


@pytest.fixture
def omnitide(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Result]:
    """Run a command line in this process, in an empty folder, with an empty home."""
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("_TYPER_FORCE_DISABLE_TERMINAL", "1")  # Typer colours its help on some build servers

    def call(*arguments: object) -> Result:
        code = run(app, [str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seconds of picture and sound."""
    path = tmp_path_factory.mktemp("clips") / "clip.mkv"
    with av.open(str(path), "w") as container:
        picture = container.add_stream("mjpeg", rate=5)
        picture.width = picture.height = 64
        picture.pix_fmt = "yuvj420p"
        sound = container.add_stream("pcm_s16le", rate=16_000, layout="mono")
        for index in range(15):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 10 * index, np.uint8), format="rgb24")
            frame.pts = index
            container.mux(picture.encode(frame))
        samples = (np.sin(np.arange(48_000) / 6) * 8000).astype(np.int16)
        tone = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        tone.sample_rate = 16_000
        tone.pts = 0
        container.mux(sound.encode(tone))
        container.mux(picture.encode(None))
        container.mux(sound.encode(None))
    return path

"""A command line to call, clips to watch, and an engine that plays a part instead of a model.

The engine follows the runtime's contract to the letter and computes nothing: what is tested is all that is around it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

import av
import numpy as np
import pytest

from omnitide_cli.app import app
from omnitide_cli.commands.run import run
from omnitide_cli.runtime.events import (
    Answer,
    AnswerDelta,
    Event,
    Retention,
    SessionStarted,
    Summary,
    TokenCounts,
    UnitIngested,
)


@dataclass
class Result:
    """What a command line left behind."""

    code: int
    out: str
    err: str


class ScriptedEngine:
    """Answers every question with a fixed text, word by word; the class remembers how it was opened."""

    text = "A red circle."
    opened: ClassVar[list[Any]] = []
    on_ingest: ClassVar[Any] = staticmethod(lambda engine, index: None)
    on_delta: ClassVar[Any] = staticmethod(lambda engine, index: None)

    def __init__(self, files: Any, prompt: Any, options: Any) -> None:
        self.files, self.prompt, self.options = files, prompt, options
        self.units: list[Any] = []
        self.asked: list[tuple[str, float]] = []
        self.interrupted = False
        self.closed = False

    @classmethod
    def open(cls, files: Any, prompt: Any, options: Any, *, progress: Callable[[float], None] | None = None) -> Self:
        if progress:
            progress(0.5)
        engine = cls(files, prompt, options)
        cls.opened.append(engine)
        return engine

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def start(self, source: str) -> SessionStarted:
        options = self.options
        return SessionStarted(
            version="0.1.0",
            model=self.files.name,
            source=source,
            policy=options.policy,
            layout=options.layout,
            positions=options.positions,
            high_watermark=options.high_watermark,
            low_watermark=options.low_watermark,
            n_ctx=4096,
            page_size=64,
            subblock_size=32,
            cache_type=options.cache_type,
            threads=2,
            flash_attn=True,
        )

    def ingest(self, unit: Any) -> list[Event]:
        self.on_ingest(self, unit.index)
        self.units.append(unit)
        unit_event = UnitIngested(
            index=unit.index,
            start=unit.start,
            end=unit.end,
            tokens=TokenCounts(image=16, audio=25, boundary=4, total=45),
            history_tokens=45 * len(self.units),
            page_span=64 * len(self.units),
            physical_span=256,
            encode_ms=1.0,
            prefill_ms=2.0,
            maintain_ms=0.1,
        )
        cut = Retention(
            unit=unit.index,
            before_tokens=90,
            after_tokens=45,
            deleted_tokens=45,
            full_units=1,
            partial_units=0,
            dropped_units=1,
            plan_ms=0.1,
        )
        return [unit_event, cut]

    def ask(self, question: str, at: float) -> Iterator[Event]:
        self.asked.append((question, at))
        said = ""
        for index, word in enumerate(self.text.split(" ")):
            self.on_delta(self, index)
            piece = f" {word}" if index else word
            said += piece
            yield AnswerDelta(at=at, text=piece)
            if self.interrupted:
                break
        yield Answer(
            at=at,
            unit=len(self.units) - 1,
            question=question,
            text=said,
            tokens=len(said.split(" ")),
            ttft_ms=5.0,
            tokens_per_s=100.0,
            stop="interrupted" if self.interrupted else "eos",
        )

    def interrupt(self) -> None:
        self.interrupted = True

    def summary(self) -> Summary:
        return Summary(
            units=len(self.units),
            media_s=self.units[-1].end if self.units else 0.0,
            stream_loop_s=0.5,
            answers=len(self.asked),
            history_tokens=45 * len(self.units),
            peak_history_tokens=45 * len(self.units),
            page_span=64,
            physical_span=256,
            peak_physical_span=256,
        )

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, weights: Path) -> type[ScriptedEngine]:
    """The class whose instances the command line opens, fresh for every test."""

    class Engine(ScriptedEngine):
        opened: ClassVar[list[Any]] = []

    module = ModuleType("omnitide_cli.runtime.engine")
    module.Engine = Engine  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "omnitide_cli.runtime.engine", module)
    return Engine


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with two files that pass for weights; the flags name them."""
    folder = tmp_path / "weights"
    folder.mkdir()
    for name in ("tiny.gguf", "mmproj-tiny.gguf"):
        (folder / name).write_bytes(b"GGUF")
    monkeypatch.setenv("OMNITIDE_MODEL", str(folder / "tiny.gguf"))
    monkeypatch.setenv("OMNITIDE_MMPROJ", str(folder / "mmproj-tiny.gguf"))
    return folder


@pytest.fixture
def omnitide(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Result]:
    """Run a command line in this process, in an empty folder, with an empty home."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "100")

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

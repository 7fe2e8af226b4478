"""Whatever is wrong: the documented exit code and one line that says what to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli import __version__

Omnitide = Callable[..., Any]


def assert_one_line(result: Any, code: int, *parts: str) -> None:
    """Exit `code`, nothing on standard output, one line on standard error that holds `parts`."""
    assert result.code == code
    assert result.out == ""
    assert result.err.startswith("omnitide: ")
    assert result.err.count("\n") == 1
    for part in parts:
        assert part in result.err


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("content", [None, b"", b"These are only words.\n" * 99])
def test_a_source_that_cannot_be_read(omnitide: Omnitide, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "clip.mp4"
    if content is not None:
        path.write_bytes(content)
    assert_one_line(omnitide("watch", path, "--ask", "a"), 3, "clip.mp4")


@pytest.mark.usefixtures("engine")
def test_a_folder_is_no_source(omnitide: Omnitide, tmp_path: Path) -> None:
    assert_one_line(omnitide("watch", tmp_path, "--ask", "a"), 3, str(tmp_path))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--nonsense"], ["No such option: --nonsense", "See omnitide --help"]),
        (["dance"], ["No such command 'dance'"]),
        (["watch"], ["Missing argument 'SOURCE'", "See omnitide watch --help"]),
        (["watch", "CLIP", "--nonsense"], ["No such option: --nonsense"]),
        (["watch", "CLIP", "--policy", "best"], ["--policy best: not one of omnipick, full"]),
        (["watch", "CLIP", "--high-watermark", "many"], ["--high-watermark many: not a whole number"]),
        (["watch", "CLIP", "--loop", "0"], ["--loop"]),
        (["watch", "CLIP", "--high-watermark", "100", "--low-watermark", "100"], ["watermark 100", "--low-watermark"]),
        (["watch", "CLIP", "--low-watermark", "0"], ["watermark 0"]),
        (["watch", "CLIP", "--low-watermark", "2600"], ["watermark 2600"]),
        (["watch", "CLIP", "--ask", " "], ["the question is empty"]),
        (["watch", "CLIP", "--ask-at", "soon=What?"], ["--ask-at 'soon=What?'"]),
        (["watch", "CLIP", "--every", "0=What?"], ["--every '0=What?'"]),
        (["watch", "CLIP", "--questions", "none.jsonl"], ["none.jsonl", "No such file"]),
        (["watch", "CLIP", "--transcript", "answers.doc"], ["answers.doc", ".vtt"]),
        (["watch", "CLIP", "--transcript", "no/folder.srt"], ["no/folder.srt", "No such file"]),
        (["watch", "CLIP", "--no-video", "--no-audio"], ["both video and audio are switched off"]),
        (["watch", "CLIP", "--duration", "-1"], ["duration"]),
        (["watch", "CLIP", "--duration", "nan"], ["duration"]),
        (["watch", "CLIP", "--start", "inf"], ["start"]),
        (["watch", "CLIP", "--high-watermark", "5000000000"], ["--high-watermark 5000000000"]),
        (["watch", "CLIP", "--threads", "100000"], ["--threads"]),
        (["watch", "CLIP", "--start", "99"], ["before the start"]),
    ],
)
def test_wrong_usage(omnitide: Omnitide, clip: Path, arguments: list[str], parts: list[str]) -> None:
    result = omnitide(*(clip if argument == "CLIP" else argument for argument in arguments))
    assert_one_line(result, 2, *parts)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--model", "gpt-5"], ["'gpt-5'", "omnitide-demo", "qwen2.5-omni-3b", ".gguf"]),
        (["--model", "missing.gguf"], ["missing.gguf", "no such model file"]),
        (["--model", "missing.toml"], ["missing.toml"]),
        (["--mmproj", "missing-mmproj.gguf"], ["missing-mmproj.gguf"]),
        (["--model", "qwen2.5-omni-3b", "--mmproj", ""], ["ggml-org/Qwen2.5-Omni-3B-GGUF", "HF_HUB_OFFLINE"]),
    ],
)
def test_a_model_that_is_not_there(omnitide: Omnitide, clip: Path, arguments: list[str], parts: list[str]) -> None:
    assert_one_line(omnitide("watch", clip, "--no-ask", *arguments), 4, *parts)


@pytest.mark.usefixtures("engine")
def test_a_model_without_encoders(
    omnitide: Omnitide, clip: Path, weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMNITIDE_MMPROJ")
    assert_one_line(omnitide("watch", clip, "--no-ask", "--model", weights / "tiny.gguf"), 4, "--mmproj")


@pytest.mark.usefixtures("engine")
def test_an_error_before_the_session_is_an_event_too(omnitide: Omnitide, tmp_path: Path) -> None:
    result = omnitide("watch", tmp_path / "none.mp4", "--json")
    assert result.code == 3
    assert result.out.startswith('{"type": "error", "code": "source-error", "message": "')
    assert result.out.count("\n") == 1


def test_version(omnitide: Omnitide) -> None:
    result = omnitide("--version")
    assert result.code == 0
    assert result.out.splitlines()[0] == f"omnitide {__version__}"
    assert len(result.out.splitlines()) == 2


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_the_commands(omnitide: Omnitide, arguments: list[str]) -> None:
    result = omnitide(*arguments)
    assert result.code == 0
    assert "watch" in result.out
    assert result.err == ""


def test_help_imports_nothing_heavy() -> None:
    heavy = (
        "{'numpy', 'av', 'cv2', 'llama_cpp', 'huggingface_hub', 'omnitide_cli.media', 'omnitide_cli.runtime.native'}"
    )
    script = f"import sys, omnitide_cli.app; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

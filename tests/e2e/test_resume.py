"""Sessions that survive, with the shipped model: saved, killed, damaged, and gone on with."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnitide_cli.catalog.manifest import Manifest
from omnitide_cli.errors import RuntimeFailure, SessionFileError
from omnitide_cli.media import MediaUnit, open_source
from omnitide_cli.runtime.engine import Engine
from omnitide_cli.runtime.events import Answer
from omnitide_cli.runtime.native_session import LAYOUTS
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.runtime.session_file import DIGEST_BYTES, PREFIX, SessionFile, read_session
from omnitide_cli.session.configuration import frame_fit

QUESTION = "What do you see and hear?"
PRESSED = ("--high-watermark", "320", "--low-watermark", "220", "--every", f"2={QUESTION}")
POLICIES = cycle(["omnipick", "fifo", "token", "streaming-llm"])
CACHES = [("f16", "off"), ("f16", "on"), ("q8_0", "on")]
COMBINATIONS = [(*cache, layout, next(POLICIES)) for cache in CACHES for layout in sorted(LAYOUTS)]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "omnitide_cli", "watch", *map(str, arguments), "--json"]


def watch(*arguments: object, code: int = 0) -> tuple[list[dict[str, Any]], str]:
    """Run `omnitide watch --json`; its events and what it wrote to standard error."""
    done = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def course(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """What was seen and said, and where it lay."""
    units = [
        ("unit", e["index"], e["start"], e["history_tokens"], e["page_span"]) for e in events if e["type"] == "unit"
    ]
    return units + [("answer", e["at"], e["question"], e["text"]) for e in events if e["type"] == "answer"]


def summed(events: list[dict[str, Any]]) -> dict[str, Any]:
    counts = ("units", "media_s", "answers", "history_tokens", "peak_history_tokens", "page_span", "retentions")
    return {name: events[-1][name] for name in counts} | {"rows": events[-1]["migrations"]["rows"]}


@pytest.fixture(scope="module")
def units(example: Path, manifest: Manifest) -> list[MediaUnit]:
    """The first seconds of the example clip."""
    with open_source(str(example), fit=frame_fit(manifest, None), duration=12) as source:
        return list(source)


@pytest.fixture(scope="module")
def whole(example: Path) -> list[dict[str, Any]]:
    """The events of a session that nothing interrupted."""
    return watch(example, *PRESSED)[0]


def feed(engine: Engine, units: list[MediaUnit]) -> list[str]:
    """Units go in, each second one is asked about; the answers."""
    texts = []
    for unit in units:
        engine.ingest(unit)
        if unit.index % 2:
            texts += [event.text for event in engine.ask(QUESTION, unit.end) if isinstance(event, Answer)]
    return texts


@pytest.mark.parametrize(("cache_type", "flash_attn", "layout", "policy"), COMBINATIONS)
def test_every_kind_of_session_goes_on_bit_by_bit(
    units: list[MediaUnit],
    manifest: Manifest,
    demo_files: ModelFiles,
    cache_type: str,
    flash_attn: str,
    layout: str,
    policy: str,
) -> None:
    options = EngineOptions(
        policy=policy,
        layout=layout,
        cache_type=cache_type,
        flash_attn=flash_attn,
        high_watermark=250,
        low_watermark=170,
        unit_tokens=64,
        threads=2,
    )
    with (
        Engine.open(demo_files, manifest.prompt, options) as first,
        Engine.open(demo_files, manifest.prompt, options) as second,
    ):
        first.start("test")
        feed(first, units[:7])
        assert first.summary().retentions > 0
        second.session.restore(first.session.save())
        assert feed(second, units[7:]) == feed(first, units[7:])
        np.testing.assert_array_equal(second.session.tokens(), first.session.tokens())
        np.testing.assert_array_equal(second.session.cells(), first.session.cells())
        np.testing.assert_array_equal(second.session.save(), first.session.save())
        second.session.check()


def test_a_saved_and_resumed_session_equals_an_uninterrupted_one(
    example: Path, tmp_path: Path, whole: list[dict[str, Any]]
) -> None:
    file = tmp_path / "half.tide"
    before, _ = watch(example, *PRESSED, "--duration", 7, "--save-session", file)
    after, _ = watch(example, "--resume", file, "--duration", 100)
    assert sorted(course(before) + course(after), key=str) == sorted(course(whole), key=str)
    assert summed(after) == summed(whole)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_or_killed_process_goes_on(
    example: Path, tmp_path: Path, whole: list[dict[str, Any]], number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM saves what was taken in; SIGKILL loses what came after the last checkpoint."""
    monkeypatch.setenv("OMNITIDE_HOME", str(tmp_path / "home"))
    asked = tmp_path / "asked.tide"
    saving = ("--save-session", asked) if number == signal.SIGTERM else ("--checkpoint-every", 0.5)
    with subprocess.Popen(command(example, *PRESSED, "--pace", "realtime", *saving), stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        seen = 0
        for line in running.stdout:
            seen += json.loads(line)["type"] == "unit"
            if seen == 5:  # nothing is asked here: an answer in hand would be cut short
                running.send_signal(number)
                break
        seen += sum(json.loads(line)["type"] == "unit" for line in running.stdout)
        assert running.wait(60) == (130 if number == signal.SIGTERM else -signal.SIGKILL)

    (file,) = [asked] if number == signal.SIGTERM else (tmp_path / "home" / "state" / "checkpoints").glob("*.tide")
    media = read_session(file).saved.media
    assert media.index == seen if number == signal.SIGTERM else seen - 2 <= media.index <= seen
    after, _ = watch(example, "--resume", file)
    rest = [entry for entry in course(after) if entry[0] == "unit"]
    assert rest == [entry for entry in course(whole) if entry[0] == "unit"][media.index :]
    assert course(after)[-1] == course(whole)[-1]
    assert after[-1]["units"] == whole[-1]["units"]


def test_an_hour_later_there_is_only_a_question(example: Path, tmp_path: Path) -> None:
    file = tmp_path / "end.tide"
    first, _ = watch(example, "--ask", QUESTION, "--save-session", file)
    again, _ = watch(example, "--resume", file, "--ask", QUESTION)
    assert not [event for event in again if event["type"] == "unit"]
    assert again[-1]["units"] == first[-1]["units"]
    assert [e["at"] for e in again if e["type"] == "answer"] == [e["at"] for e in first if e["type"] == "answer"]


def test_a_cache_too_small_and_damaged_files_end_with_3(example: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.tide"
    watch(example, "--high-watermark", 500, "--low-watermark", 400, "--no-ask", "--save-session", file)
    _, errors = watch(example, "--resume", file, "--high-watermark", 200, "--low-watermark", 100, "--ctx", 256, code=3)
    assert "needs a cache of" in errors
    assert "--ctx" in errors
    data = file.read_bytes()
    body = bytearray(data[:-DIGEST_BYTES])
    body[PREFIX.size + PREFIX.unpack_from(body)[2] + 20] ^= 0xFF  # the ledger, under a checksum that is right
    for number, damaged in enumerate((data[:1000], data[:-1], bytes(body) + hashlib.sha256(body).digest())):
        broken = tmp_path / f"broken-{number}.tide"
        broken.write_bytes(damaged)
        _, errors = watch(example, "--resume", broken, code=3)
        assert broken.name in errors


def test_a_thousand_mutated_files_are_refused_or_run(
    units: list[MediaUnit], manifest: Manifest, demo_files: ModelFiles, tmp_path: Path, example: Path
) -> None:
    """With checksums that are right: what the native reader finds is for it alone to find."""
    file = tmp_path / "s.tide"
    watch(example, *PRESSED, "--duration", 6, "--save-session", file)
    sound = read_session(file)
    options = EngineOptions(high_watermark=320, low_watermark=220, unit_tokens=64, threads=2)
    random = np.random.default_rng(1)
    refused = ran = 0
    with Engine.open(demo_files, manifest.prompt, options) as engine:
        for attempt in range(1000):
            state = sound.state.copy()
            # Half in the ledger, half anywhere: rows are rows, whatever they hold.
            end = 2000 if attempt % 2 else state.size
            for place in random.integers(0, end, int(random.integers(1, 4))):
                state[place] = random.integers(0, 256)
            if attempt % 10 == 0:
                state = state[: int(random.integers(0, state.size))]
            try:
                engine.start("test", SessionFile(sound.saved, state))
            except SessionFileError:
                refused += 1
                continue
            if attempt % 10 == 2:
                ran += 1
                with suppress(RuntimeFailure):  # positions that llama.cpp won't go on from
                    engine.ingest(replace(units[6], index=6))
                    list(engine.ask(QUESTION, 7.0))
        engine.start("test", sound)
        engine.session.check()
    assert refused > 300
    assert ran > 20


def test_sessions_are_for_their_owner_alone(example: Path, tmp_path: Path) -> None:
    file = tmp_path / "s.tide"
    old = os.umask(0)
    try:
        watch(example, "--duration", 1, "--no-ask", "--save-session", file)
    finally:
        os.umask(old)
    assert file.stat().st_mode & 0o777 == 0o600

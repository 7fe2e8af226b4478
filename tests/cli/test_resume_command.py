"""`--save-session`, `--resume`, `--checkpoint-every`: what is written when, and what goes on from where."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import ScriptedEngine

from omnitide_cli.errors import SessionFileError
from omnitide_cli.runtime.session_file import SessionFile, read_session, write_session

Run = Callable[..., Any]


@pytest.fixture
def saved(omnitide: Run, engine: type[ScriptedEngine], clip: Path) -> Path:
    """A session of the first two seconds of the clip."""
    done = omnitide("watch", clip, "--duration", 2, "--ask", "Last?", "--save-session", "two.tide")
    assert done.code == 0, done.err
    assert "saved two.tide (0:02); --resume two.tide continues from there" in done.err
    return Path("two.tide").absolute()


def indices(engine: Any) -> list[tuple[int, float]]:
    return [(unit.index, unit.start) for unit in engine.units]


def test_a_session_says_where_it_is_and_what_was_asked(saved: Path, clip: Path, weights: Path) -> None:
    found = read_session(saved).saved
    media, questions = found.media, found.questions
    assert (media.path, media.size) == (str(clip), clip.stat().st_size)
    assert (media.clock, media.position, media.index, media.duration) == (2.0, 2.0, 2, 2.0)
    assert (questions.last, questions.closed_at) == (("Last?",), 2.0)
    assert found.model.name == str(weights / "tiny.gguf")
    assert found.options.high_watermark == 2500


def test_it_goes_on_at_its_clock(omnitide: Run, engine: type[ScriptedEngine], clip: Path, saved: Path) -> None:
    done = omnitide("watch", clip, "--resume", saved, "--duration", 3, "--ask", "New?", "--json")
    assert done.code == 0, done.err
    assert '"resumed_at": 2.0' in done.out
    again = engine.opened[-1]
    assert again.resumed.state.tolist() == list(range(100))
    assert indices(again) == [(2, 2.0)]
    assert again.asked == [("New?", 3.0)]
    assert again.options.least_ctx == 90


def test_at_the_end_there_are_questions_left(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, saved: Path
) -> None:
    done = omnitide("watch", clip, "--resume", saved)
    assert engine.opened[-1].units == []
    assert "saved at 0:02: nothing of what was to be watched comes after that" in done.err
    assert engine.opened[-1].asked == [], "it was asked at this very moment before"
    omnitide("watch", clip, "--resume", saved, "--ask", "And now?")
    assert engine.opened[-1].asked == [("And now?", 2.0)]
    omnitide("watch", clip, "--resume", saved, "--duration", 3)
    assert engine.opened[-1].asked == [("Last?", 3.0)], "it has seen more since"
    whole = omnitide("watch", clip, "--resume", saved, "--duration", 3, "--save-session", "whole.tide")
    assert whole.code == 0, whole.err
    assert "comes after that" not in omnitide("watch", clip, "--resume", "whole.tide", "--ask", "At the end?").err


def test_start_overrides_the_place_and_the_clock_goes_on(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, saved: Path
) -> None:
    done = omnitide("watch", clip, "--resume", saved, "--start", 1, "--duration", 1.5)
    assert done.code == 0, done.err
    assert indices(engine.opened[-1]) == [(2, 2.0), (3, 3.0)]


def test_settings_are_the_saved_ones_unless_flags_say_otherwise(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path
) -> None:
    first = ("--high-watermark", 300, "--low-watermark", 200, "--policy", "fifo", "--no-audio", "--unit-seconds", 0.5)
    omnitide("watch", clip, *first, "--duration", 1, "--no-ask", "--save-session", "s.tide")
    done = omnitide("watch", clip, "--resume", "s.tide", "--low-watermark", 100, "--duration", 2, "--no-ask")
    assert done.code == 0, done.err
    again = engine.opened[-1]
    options = again.options
    assert (options.high_watermark, options.low_watermark, options.policy) == (300, 100, "fifo")
    assert indices(again) == [(2, 1.0), (3, 1.5)]
    assert all(unit.audio is None for unit in again.units)


def test_a_full_cache_keeps_its_size(omnitide: Run, engine: type[ScriptedEngine], clip: Path) -> None:
    omnitide("watch", clip, "--policy", "full", "--no-ask", "--save-session", "s.tide")
    omnitide("watch", clip, "--resume", "s.tide", "--no-ask")
    assert engine.opened[-1].options.ctx == 4096


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--cache-type", "q8_0"], 2, "was saved with f16"),
        (["--system", "Be rude."], 2, "--system"),
        (["--low-watermark", "5000"], 2, "low watermark"),
    ],
)
def test_what_can_not_change_is_told(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, saved: Path, flags: list[str], code: int, words: str
) -> None:
    opened = len(engine.opened)
    done = omnitide("watch", clip, "--resume", saved, *flags)
    assert done.code == code
    assert words in done.err
    assert len(engine.opened) == opened


def test_other_weights_and_other_sources_are_refused(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, saved: Path, weights: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.mkv"
    other.write_bytes(clip.read_bytes() + b"x")
    done = omnitide("watch", other, "--resume", saved)
    assert done.code == 3
    assert "clip.mkv, not" in done.err
    assert "--start" in done.err
    assert omnitide("watch", other, "--resume", saved, "--start", 0, "--no-ask").code == 0
    assert engine.opened[-1].units[0].start == 2.0

    moved = tmp_path / "elsewhere"
    moved.mkdir()
    (moved / clip.name).write_bytes(clip.read_bytes())
    assert omnitide("watch", moved / clip.name, "--resume", saved, "--no-ask").code == 0

    (weights / "tiny.gguf").write_bytes((weights / "tiny.gguf").read_bytes() + b"more")
    done = omnitide("watch", clip, "--resume", saved)
    assert done.code == 3
    assert "other weights than" in done.err


def test_files_that_are_no_sessions_end_with_3(omnitide: Run, engine: type[ScriptedEngine], clip: Path) -> None:
    Path("foreign.tide").write_bytes(b"something else")
    for name, words in (
        ("foreign.tide", "not an OmniTide session"),
        ("none.tide", "does not exist"),
        (".", "can't be read"),
    ):
        done = omnitide("watch", clip, "--resume", name)
        assert done.code == 3
        assert words in done.err
        assert "\n" not in done.err.strip()
    assert not engine.opened


def test_names_that_do_not_exist_are_damage(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, saved: Path
) -> None:
    from dataclasses import replace

    file = read_session(saved)
    options = replace(file.saved.options, layout="heaps")
    write_session(saved, SessionFile(replace(file.saved, options=options), file.state))
    done = omnitide("watch", clip, "--resume", saved)
    assert done.code == 3
    assert "'layout'" in done.err


def test_a_place_that_can_not_be_written_is_told_before_the_stream(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path
) -> None:
    done = omnitide("watch", clip, "--save-session", "none/s.tide")
    assert done.code == 2
    assert "--save-session none/s.tide" in done.err
    assert not engine.opened


def test_ctrl_c_saves_what_was_taken(omnitide: Run, engine: type[ScriptedEngine], clip: Path) -> None:
    def interrupt(playing: ScriptedEngine, index: int) -> None:
        if index == 1:
            os.kill(os.getpid(), signal.SIGINT)

    engine.on_ingest = staticmethod(interrupt)
    done = omnitide("watch", clip, "--save-session", "s.tide", "--every", "1=What?")
    assert done.code == 130
    engine.on_ingest = staticmethod(lambda playing, index: None)
    assert read_session(Path("s.tide")).saved.media.index == 2
    omnitide("watch", clip, "--resume", "s.tide")
    assert indices(engine.opened[-1]) == [(2, 2.0)]
    assert engine.opened[-1].asked == [("What?", 2.0), ("What?", 3.0)], "the first was due when the signal came"


def checkpoints(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "home" / "state" / "checkpoints").glob("*"))


def slow(seconds: float) -> Any:
    return staticmethod(lambda playing, index: time.sleep(seconds))


def test_checkpoints_are_made_and_go_when_the_stream_ends(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, tmp_path: Path
) -> None:
    seen: list[list[Path]] = []

    def look(playing: ScriptedEngine, index: int) -> None:
        time.sleep(0.2)
        seen.append(checkpoints(tmp_path))

    engine.on_ingest = staticmethod(look)
    assert omnitide("watch", clip, "--no-ask", "--checkpoint-every", 0.1).code == 0
    assert seen[0] == []
    (path,) = seen[-1]
    assert path.name.startswith("clip-")
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert checkpoints(tmp_path) == []
    omnitide("watch", clip, "--no-ask", "--checkpoint-every", 0)
    assert seen[-1] == []


def test_a_session_that_fails_leaves_its_checkpoint(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, tmp_path: Path
) -> None:
    def fail(playing: ScriptedEngine, index: int) -> None:
        time.sleep(0.2)
        if index == 2:
            raise OSError(5, "broken")

    engine.on_ingest = staticmethod(fail)
    done = omnitide("watch", clip, "--no-ask", "--checkpoint-every", 0.1)
    assert done.code == 1
    (path,) = checkpoints(tmp_path)
    assert f"--resume {path}" in done.err
    assert read_session(path).saved.media.index in (1, 2)


def test_only_the_newest_checkpoints_stay(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "home" / "state" / "checkpoints"
    folder.mkdir(parents=True)
    for number in range(8):
        old = folder / f"old-{number}.tide"
        old.write_bytes(b"")
        os.utime(old, (number, number))

    def interrupt(playing: ScriptedEngine, index: int) -> None:
        time.sleep(0.2)
        if index == 2:
            os.kill(os.getpid(), signal.SIGINT)

    engine.on_ingest = staticmethod(interrupt)
    assert omnitide("watch", clip, "--no-ask", "--checkpoint-every", 0.1).code == 130
    names = [path.name for path in checkpoints(tmp_path)]
    assert [name for name in names if name.startswith("old")] == ["old-5.tide", "old-6.tide", "old-7.tide"][
        -len(names) + 1 :
    ]
    assert any(name.startswith("clip-") for name in names)


def test_a_checkpoint_that_fails_stops_nothing(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "state").write_text("a file where the folder should be")
    engine.on_ingest = slow(0.2)
    done = omnitide("watch", clip, "--no-ask", "--checkpoint-every", 0.1)
    assert done.code == 0
    assert done.err.count("no checkpoint could be written") == 1
    assert len(engine.opened[0].units) == 3


def test_memory_that_can_not_be_saved_is_told_where_it_was_asked_for(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path
) -> None:
    engine.can_save = False
    assert omnitide("watch", clip, "--no-ask", "--checkpoint-every", 0.001).code == 0
    done = omnitide("watch", clip, "--no-ask", "--save-session", "s.tide")
    assert done.code == 2
    assert "own memory" in done.err


@pytest.fixture
def checkpoint(omnitide: Run, engine: type[ScriptedEngine], clip: Path, tmp_path: Path) -> Path:
    """Of a session that was ended in its third second."""

    def interrupt(playing: ScriptedEngine, index: int) -> None:
        time.sleep(0.2)
        if index == 2:
            os.kill(os.getpid(), signal.SIGINT)

    engine.on_ingest = staticmethod(interrupt)
    assert omnitide("watch", clip, "--no-ask", "--checkpoint-every", 0.1, "--loop", 2).code == 130
    engine.on_ingest = staticmethod(lambda playing, index: None)
    (path,) = checkpoints(tmp_path)
    return path


@pytest.mark.parametrize("every", [0, 0.05])
@pytest.mark.parametrize("through", ["itself", "link"])
def test_a_checkpoint_that_is_saved_to_again_stays(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, checkpoint: Path, every: float, through: str
) -> None:
    """What is in the file is newer than the checkpoint that was taken over: that is taken away, if it is another."""
    link = Path("link.tide")
    link.symlink_to(checkpoint)
    engine.on_ingest = slow(0.1)
    file = link if through == "link" else checkpoint
    flags = ("--no-ask", "--checkpoint-every", every)
    done = omnitide("watch", clip, "--resume", checkpoint, "--save-session", file, *flags)
    assert done.code == 0, done.err
    assert read_session(checkpoint).saved.media.index == 6
    done = omnitide("watch", clip, "--resume", checkpoint, "--save-session", "other.tide", *flags)
    assert done.code == 0, done.err
    assert not checkpoint.exists(), "the other file is newer"


def test_a_session_that_never_began_leaves_the_checkpoint_it_took_over(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(playing: ScriptedEngine, source: str, saved: Any = None) -> Any:
        raise SessionFileError("its rows are of another model")

    before = checkpoint.read_bytes()
    monkeypatch.setattr(engine, "start", refuse)
    done = omnitide("watch", clip, "--resume", "last", "--no-ask")
    assert (done.code, engine.opened[-1].closed) == (3, True)
    assert checkpoint.read_bytes() == before
    monkeypatch.undo()


def test_a_resumed_session_that_is_left_early_stays(
    omnitide: Run, engine: type[ScriptedEngine], clip: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/quit ends it as Ctrl-C does: it can be gone on with again."""
    read_end, write_end = os.pipe()
    os.write(write_end, b"/quit\n")
    os.close(write_end)
    with os.fdopen(read_end) as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        done = omnitide("watch", clip, "--resume", checkpoint, "--questions", "-", "--pace", "realtime")
    assert done.code == 0, done.err
    assert checkpoint.exists()
    assert len(engine.opened[-1].units) <= 1

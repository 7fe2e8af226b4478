"""Published snapshots: whole, private, cheap, and read as if a stranger had written them."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnitide_cli.errors import SessionFileError
from omnitide_cli.formats.charts import ASCII
from omnitide_cli.inspect.kv_view import Canvas, console, save_svg, view
from omnitide_cli.runtime import published, publishing
from omnitide_cli.runtime.kv_state import KvState, Moment, SessionSnapshot
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.published import choose, read_session, sessions
from omnitide_cli.runtime.publishing import Publisher
from omnitide_cli.runtime.simulation import Stream, simulate
from omnitide_cli.runtime.snapshot_file import read_snapshot, write_snapshot
from omnitide_cli.runtime.timeline import MOST_MOMENTS, Timeline

SIMULATED = simulate(EngineOptions(high_watermark=400, low_watermark=300), Stream(20, 16, 25)).last
SNAPSHOT = replace(SIMULATED, pid=os.getpid(), started=1.0, written=2.0)


def look(name: str) -> KvState:
    return replace(SNAPSHOT.state, session=name)


def publisher(folder: Path, source: str = "clip.mp4") -> Publisher:
    opened = Publisher(folder, look)
    opened.emit(replace(SNAPSHOT.about, source=source))
    return opened


def test_a_snapshot_comes_back_as_it_was(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "a.json", SNAPSHOT)
    assert read_snapshot(tmp_path / "a.json") == SNAPSHOT
    assert SNAPSHOT.retention
    assert SNAPSHOT.migration


def test_files_are_private_and_replaced_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "runtime"
    folder.mkdir(mode=0o755)
    running = publisher(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    (path,) = folder.glob("*.json")
    with path.open() as before:
        running.offer(now=True)
        json.loads(before.read())  # the old one is whole as long as it is read
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
    running.close()
    assert [each.name for each in folder.iterdir()] == [path.name]


def test_a_session_runs_until_it_takes_leave(tmp_path: Path) -> None:
    running = publisher(tmp_path)
    (found,), _ = sessions(tmp_path)
    assert (found.state.running, found.ended, found.pid) == (True, False, os.getpid())
    running.close()
    running.close()
    (found,), _ = sessions(tmp_path)
    assert (found.state.running, found.ended) == (False, True)


def test_a_killed_session_is_over(tmp_path: Path) -> None:
    code = (
        "import sys, time; sys.path[:0] = sys.argv[2:]\n"
        "from pathlib import Path; import test_snapshots as t\n"
        "t.publisher(Path(sys.argv[1])); print('ready', flush=True); time.sleep(60)"
    )
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *paths], stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        assert choose(tmp_path, None)[0].state.running
        process.send_signal(signal.SIGKILL)
        process.wait()
    found, _ = choose(tmp_path, str(process.pid))
    assert (found.state.running, found.ended) == (False, False)
    assert "killed?" in shown(found)


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    opened = publisher(tmp_path)
    assert "isn't a folder that belongs to this user" in opened.problem
    opened.offer(now=True)
    opened.close()
    assert list(tmp_path.iterdir()) == []


def test_a_failure_to_write_ends_publishing_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = publisher(tmp_path)

    def full(path: Path, snapshot: SessionSnapshot) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(publishing, "write_snapshot", full)
    opened.offer(now=True)
    assert "No space left" in opened.problem
    opened.close()


def test_publishing_takes_its_share_of_the_time_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, spent, writes = 0.0, 0.0, 0

    def slow(path: Path, snapshot: SessionSnapshot) -> None:
        nonlocal now, spent, writes
        now, spent, writes = now + 0.01, spent + 0.01, writes + 1

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "thread_time", lambda: now)
    monkeypatch.setattr(publishing, "write_snapshot", slow)
    opened = publisher(tmp_path)
    while now < 100:
        now += 0.012  # a unit
        opened.offer()
    assert writes > 20
    assert spent < 0.005 * now


def test_two_sessions_of_one_process_have_two_names(tmp_path: Path) -> None:
    both = [publisher(tmp_path), publisher(tmp_path)]
    found, _ = sessions(tmp_path)
    assert len({each.state.session for each in found}) == 2
    for each in both:
        each.close()


def test_old_ones_are_pruned_and_running_ones_are_not(tmp_path: Path) -> None:
    running = publisher(tmp_path, "old.mp4")
    (live,) = tmp_path.glob("*.json")
    for age in range(published.KEPT + 5):
        write_snapshot(tmp_path / f"ended-{age}.json", SNAPSHOT)
        os.utime(tmp_path / f"ended-{age}.json", (0, time.time() - 3600 * age))
    ancient = time.time() - published.KEPT_S - 3600
    for name in ("ended-0.json", live.name, "left.new", "left.lock"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, ancient))
    published.prune(tmp_path)
    left = {path.name for path in tmp_path.glob("ended-*.json")}
    assert left == {f"ended-{age}.json" for age in range(1, published.KEPT + 1)}
    assert live.exists()
    assert not list(tmp_path.glob("left.*"))
    running.close()


def test_the_newest_running_one_is_meant_else_the_one_that_ended_last(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "early.json", replace(SNAPSHOT, ended=True, pid=7, written=5.0))
    write_snapshot(tmp_path / "late.json", replace(SNAPSHOT, ended=True, pid=8, written=9.0))
    assert choose(tmp_path, None)[0].state.session == "late"
    assert choose(tmp_path, "e")[0].state.session == "early"
    assert choose(tmp_path, "7")[0].state.session == "early"
    running = publisher(tmp_path)
    chosen, remark = choose(tmp_path, None)
    assert (chosen.state.session, remark) == (f"clip-{os.getpid()}", "")
    assert choose(tmp_path, "late")[1] == f"Also running: clip-{os.getpid()}."
    with pytest.raises(SessionFileError, match="no session is called 'x'") as missing:
        choose(tmp_path, "x")
    assert "late" in missing.value.hint
    running.close()


def _damages() -> dict[str, Callable[[Path], object]]:
    def changed(**changes: Any) -> Callable[[Path], object]:
        def write(path: Path) -> None:
            fields = {"format": 1, **dataclasses.asdict(SNAPSHOT)}
            fields["state"] |= changes
            path.write_text(json.dumps(fields))

        return write

    return {
        "empty": lambda path: path.touch(),
        "not JSON": lambda path: path.write_bytes(b"\xff\xfe{"),
        "deep": lambda path: path.write_text("[" * 100_000),
        "another format": lambda path: path.write_text('{"format": 2}'),
        "folder": lambda path: path.mkdir(),
        "link": lambda path: path.symlink_to("/dev/zero"),
        "pipe": lambda path: os.mkfifo(path),
        "infinite": changed(span_ratio=float("inf")),
        "huge": changed(cells=10**400),
        "map": changed(cell_map="X" * SNAPSHOT.state.cells),
        "pages": changed(page_size=0),
        "text for a number": changed(holes="0"),
    }


@pytest.mark.parametrize("damage", _damages())
def test_damaged_files_are_passed_over(tmp_path: Path, damage: str) -> None:
    _damages()[damage](tmp_path / "bad.json")
    with pytest.raises(SessionFileError, match=r"bad\.json"):
        read_session(tmp_path / "bad.json")
    with pytest.raises(SessionFileError, match=r"no session to inspect \(damaged snapshot files in .* skipped: 1"):
        choose(tmp_path, None)
    write_snapshot(tmp_path / "good.json", SNAPSHOT)
    chosen, remark = choose(tmp_path, None)
    assert chosen.state.session == "good"
    assert remark.startswith("damaged snapshot files")
    assert "skipped: 1" in remark


def test_mutated_files_crash_neither_reader_nor_view(tmp_path: Path) -> None:
    """A value or a byte changed at random: an error of ours, or something that can be shown."""
    rng = random.Random(5)
    whole = json.dumps({"format": 1, **dataclasses.asdict(SNAPSHOT)})
    path = tmp_path / "mutant.json"
    read = 0
    for round_ in range(300):
        if round_ % 2:
            fields = json.loads(whole)
            _mutate(fields, rng)
            path.write_text(json.dumps(fields))
        else:
            data = bytearray(whole.encode())
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            path.write_bytes(data)
        try:
            snapshot = read_session(path)
        except SessionFileError:
            continue
        read += 1
        for history in (False, True):
            assert "\x1b" not in shown(snapshot, history=history)
    assert 20 < read < 270


def _mutate(value: Any, rng: random.Random) -> None:
    """Replace something somewhere within."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = rng.choice(keys)
    if isinstance(value[key], (dict, list)) and value[key] and rng.random() < 0.9:
        _mutate(value[key], rng)
        return
    odd = [0, -1, 1 << 50, -(1 << 50), 1e308, "", "\x1b[31m[bold]", None, [], {}, True, 10**30, "x" * 5000, 0.5]
    value[key] = rng.choice(odd)


def shown(snapshot: SessionSnapshot, width: int = 80, *, history: bool = False) -> str:
    out = io.StringIO()
    room = Canvas(width, ASCII)
    console(out, room).print(view(snapshot, room, history=history))
    return out.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("history", [False, True])
def test_views_fit_every_width(width: int, history: bool) -> None:
    text = shown(SNAPSHOT, width, history=history)
    assert max(map(len, text.splitlines())) <= width
    assert "watermark" in text


@pytest.mark.parametrize("height", [24, 30, 48, 60])
def test_watching_fits_the_screen(height: int) -> None:
    out = io.StringIO()
    room = Canvas(80, ASCII, height)
    console(out, room).print(view(SNAPSHOT, room))
    assert out.getvalue().count("\n") <= height


def test_a_drawing_needs_nothing_from_a_network_and_is_the_same_again(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        save_svg(SNAPSHOT, tmp_path / name, 100)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    assert text.count("http") == 1  # the name of the format
    assert ">&#160;" not in text  # spaces that some readers drop
    assert "useful" in text


def test_a_timeline_keeps_the_peaks_in_bounded_memory() -> None:
    timeline = Timeline()
    for index in range(10 * MOST_MOMENTS + 7):
        timeline.add(Moment(float(index), 5000 if index == 777 else index % 10, 64, 256))
    moments = timeline.moments()
    assert len(moments) <= MOST_MOMENTS
    assert timeline.units_each == 16
    assert max(moment.useful_cells for moment in moments) == 5000
    assert moments[-1].media_s == 10 * MOST_MOMENTS + 6
    assert [moment.media_s for moment in moments] == sorted(moment.media_s for moment in moments)

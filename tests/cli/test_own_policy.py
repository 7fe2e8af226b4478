"""Policies in Python: `--policy FILE.py:FUNCTION`, and what is said of those that can't be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnitide_cli.errors import RuntimeFailure, UsageError
from omnitide_cli.runtime.history import History, Part
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.own_policy import load_policy

Omnitide = Callable[..., Any]

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "adding-a-policy.md"
PRESSED = ("--high-watermark", 300, "--low-watermark", 200)
TIMES = re.compile(r"(_ms|_s|^ms|^wall|rss_bytes|version)$")


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    """The ten lines that the document shows."""
    code = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.M | re.S)[0]
    assert len(code.splitlines()) <= 10
    path = tmp_path / "mine.py"
    path.write_text(code, encoding="utf-8")
    return f"{path}:fifo"


def write(tmp_path: Path, code: str) -> str:
    path = tmp_path / "mine.py"
    path.write_text(code, encoding="utf-8")
    return f"{path}:policy"


def untimed(value: Any) -> Any:
    """An event without what no two runs share."""
    if isinstance(value, dict):
        return {name: untimed(each) for name, each in value.items() if not TIMES.search(name) and name != "policy"}
    return value


def test_fifo_in_python_is_fifo_event_by_event(omnitide: Omnitide, fifo: str, clip: Path) -> None:
    found = {}
    for policy in ("fifo", fifo):
        shown = omnitide("watch", clip, "--loop", 6, *PRESSED, "--policy", policy, "--ask", "What is there?", "--json")
        assert shown.code == 0, shown.err
        found[policy] = [json.loads(line) for line in shown.out.splitlines()]
    events = found[fifo]
    notices = [event for event in events if event["type"] == "warning" and event["code"] == "python-policy"]
    assert len(notices) == 1
    assert "runs in Python" in notices[0]["message"]
    assert events[0]["policy"] == fifo
    assert [event["type"] for event in events].count("retention") >= 2
    told = [untimed(event) for event in events if event not in notices]
    assert told == [untimed(event) for event in found["fifo"]]


@pytest.mark.parametrize("name", ["first", "last", "spread", "values", "keys", "apart", "new"])
def test_the_examples_keep_as_much_as_omnipick(omnitide: Omnitide, name: str, clip: Path) -> None:
    """Each makes another choice of as many tokens; `first` makes OmniPick's own."""
    example = Path(__file__).parents[2] / "examples" / "older_seconds.py"
    found = []
    for policy in ("omnipick", f"{example}:{name}"):
        shown = omnitide("watch", clip, "--loop", 6, *PRESSED, "--policy", policy, "--ask", "What is there?", "--json")
        assert shown.code == 0, shown.err
        found.append([json.loads(line) for line in shown.out.splitlines()])
    told = [[untimed(event) for event in events if event["type"] == "retention"] for events in found]
    assert told[0] == told[1] != []
    answers = [[event["text"] for event in events if event["type"] == "answer"] for events in found]
    assert len(answers[0]) == len(answers[1]) == 1
    if name == "first":
        assert answers[0] == answers[1]


def test_fifo_in_python_is_fifo_in_benches(omnitide: Omnitide, fifo: str) -> None:
    flags = ("--units", 12, "--limit", 4, "--watermarks", "300/200", "--threads", 2, "--json")
    shown = omnitide("bench", "quality", "--policy", "fifo", "--policy", fifo, *flags)
    assert shown.code == 0, shown.err
    rows = [json.loads(line) for line in shown.out.splitlines()]
    native, own = ([untimed(row) for row in rows if row["policy"] == policy] for policy in ("fifo", fifo))
    assert native
    assert native == own


def test_fifo_in_python_is_fifo_in_simulations(omnitide: Omnitide, fifo: str) -> None:
    flags = ("--simulate", 40, "--image", 40, "--audio", 25, *PRESSED, "--json")
    native, own = (omnitide("inspect-kv", *flags, "--policy", policy) for policy in ("fifo", fifo))
    assert native.code == own.code == 0, own.err
    first, second = json.loads(native.out), json.loads(own.out)
    assert first["migrations"] == second["migrations"]
    assert first == second


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("def policy(history): return [1 / 0]", r"failed: ZeroDivisionError: division by zero (line 1)"),
        ("def policy(history): return None", "it returned NoneType, not what stays"),
        ("def policy(history): return ['a']", "it returned 'a' among what stays"),
        ("def policy(history): return [*history.units, 999]", "it returned token 999; the history has 0 to"),
        ("def policy(history): return history.units[1:]", "drops the system unit"),
        ("def policy(history): return history.units[:-1]", "drops the newest token (unit"),
        ("import numpy\ndef policy(history): return numpy.ones(3, bool)", "it returned [3] flags for"),
    ],
)
def test_a_wrong_answer_is_a_clear_error(tmp_path: Path, code: str, part: str) -> None:
    options = EngineOptions(policy=write(tmp_path, code), high_watermark=60, low_watermark=40)
    with History(options, 200) as history:
        history.append("system", [Part("system", 5)])
        for second in range(6):
            history.append("media", [Part("audio", 10)], second, second + 1)
        before = history.cells()
        with pytest.raises(RuntimeFailure, match=re.escape(part)):
            history.maintain()
        assert (history.cells() == before).all()


@pytest.mark.parametrize(
    "stays", ["[True] * history.tokens", "range(history.tokens)", "[*history.units[:2], *history.units[2]]"]
)
def test_what_stays_may_be_said_in_several_ways(tmp_path: Path, stays: str) -> None:
    options = EngineOptions(
        policy=write(tmp_path, f"def policy(history): return {stays}"), high_watermark=20, low_watermark=10
    )
    with History(options, 200) as history:
        for second in range(3):
            history.append("media", [Part("audio", 10)], second, second + 1)
        assert not history.maintain().retained


@pytest.mark.parametrize(
    ("code", "part"),
    [
        (None, "there is no file"),
        ("x = (", "SyntaxError"),
        ("other = 1", "has no function policy"),
        ("def policy(history, weights): ...", "policy(history, weights) has parameters that no policy is given"),
        ("def policy(): ...", "policy() has parameters that no policy is given"),
    ],
)
def test_what_is_no_policy_is_refused(tmp_path: Path, code: str | None, part: str) -> None:
    name = f"{tmp_path / 'mine.py'}:policy" if code is None else write(tmp_path, code)
    with pytest.raises(UsageError, match=re.escape(part)):
        load_policy(name)


def test_attention_keys_and_values_need_a_model(omnitide: Omnitide, tmp_path: Path) -> None:
    policy = write(tmp_path, "def policy(history, attention, keys): return history.units")
    shown = omnitide("inspect-kv", "--simulate", 3, "--image", 40, "--policy", policy)
    assert shown.code == 2
    assert "reads attention and keys, and a simulation has no model" in shown.err
    shown = omnitide("watch", "nothing.mp4", "--policy", policy, "--flash-attn", "on")
    assert shown.code != 0


def test_attention_keys_and_values_are_given(omnitide: Omnitide, tmp_path: Path, clip: Path) -> None:
    out = tmp_path / "seen.txt"
    code = f"""
import numpy

def policy(history, attention, keys, values):
    with open({str(out)!r}, "a") as file:
        shapes = [rows.shape for rows in (keys[0], values[len(values) - 1])]
        print(history.tokens, attention.shape, *shapes, float(attention.sum()) > 0, numpy.isfinite(values[0]).all(),
              float(numpy.abs(values[0]).sum()) > 0, file=file)
    return [*history.units[:1], *history.units[-2:]]
"""
    shown = omnitide("watch", clip, "--loop", 4, *PRESSED, "--policy", write(tmp_path, code), "--no-ask")
    assert shown.code == 0, shown.err
    for line in out.read_text().splitlines():
        tokens = int(line.split()[0])
        assert line.startswith(f"{tokens} ({tokens},) ({tokens}, ")
        assert line.endswith("True True True")


def test_a_session_names_its_policy_and_resumes_with_it_or_another(omnitide: Omnitide, fifo: str, clip: Path) -> None:
    assert omnitide("watch", clip, "--policy", fifo, "--save-session", "own.tide", "--no-ask").code == 0
    assert f"policy {fifo}" in omnitide("inspect-kv", "own.tide").out.replace("\n", " ")
    refused = omnitide("watch", clip, "--resume", "own.tide", "--no-ask")
    assert refused.code == 2
    assert f"say --policy {fifo}" in refused.err.replace("Say", "say")
    for policy in (fifo, "omnipick"):
        shown = omnitide("watch", clip, "--resume", "own.tide", "--policy", policy, "--no-ask")
        assert shown.code == 0, shown.err


def test_the_masks_of_numpy_count_as_flags(tmp_path: Path) -> None:
    code = "import numpy\ndef policy(history): return numpy.arange(history.tokens) % 3 != 0"
    options = EngineOptions(policy=write(tmp_path, code), high_watermark=20, low_watermark=10)
    with History(options, 200) as history:
        for second in range(3):
            history.append("media", [Part("text", 10)], second, second + 1)
        done = history.maintain()
        assert done.after_tokens == np.count_nonzero(np.arange(30) % 3)

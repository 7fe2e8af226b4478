"""`omnitide timeline`, and what is said when nothing can be found."""

from __future__ import annotations

import base64
import json
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import TEXT, ScriptedEngine

from omnitide_cli.formats.timeline_page import Exchange, Shot, timeline_page
from omnitide_cli.runtime.journal import Journal, Picture, Said
from omnitide_cli.runtime.session_file import JOURNAL, SessionFile, read_session, write_session

Run = Callable[..., Any]


@pytest.fixture
def saved(omnitide: Run, engine: type[ScriptedEngine], clip: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session of the clip with an answer at two seconds and one at the end."""
    monkeypatch.setenv(TEXT, "A <b>red</b> circle.")
    done = omnitide("watch", clip, "--ask-at", "2=Now?", "--ask", "Last?", "--save-session", "s.tide")
    assert done.code == 0, done.err
    return Path("s.tide").absolute()


def test_entries_come_by_time(omnitide: Run, saved: Path) -> None:
    done = omnitide("timeline", saved)
    assert done.code == 0, done.err
    assert [line.strip() for line in done.out.splitlines()] == [
        "0:02  Now? A <b>red</b> circle.",
        "0:03  Last? A <b>red</b> circle.",
    ]
    assert "2 answers, 3 pictures from 0:00 to 0:03" in done.err
    assert omnitide("timeline", "-q").out == done.out
    entries = [json.loads(line) for line in omnitide("timeline", saved, "--json").out.splitlines()]
    assert [(each["type"], each["at"]) for each in entries] == [
        ("picture", 0.0),
        ("picture", 1.0),
        ("answer", 2.0),
        ("picture", 2.0),
        ("answer", 3.0),
    ]


def test_the_page_has_all_inside_and_runs_nothing(omnitide: Run, saved: Path) -> None:
    done = omnitide("timeline", saved, "--html", "a.html")
    assert done.code == 0, done.err
    assert done.out == ""
    page = Path("a.html").read_text()
    assert stat.S_IMODE(Path("a.html").stat().st_mode) == 0o600
    assert "A &lt;b&gt;red&lt;/b&gt; circle." in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"(?!data:image/jpeg;base64,|#)", page)
    assert "http" not in page.replace("http-equiv", "")
    assert page.count("<figure") == 3
    assert omnitide("timeline", saved, "--html", "b.html", "--pictures", 1).code == 0
    assert Path("b.html").read_text().count("<figure") == 1


def test_recalled_moments_lead_to_their_pictures_which_are_always_there(omnitide: Run, saved: Path) -> None:
    file = read_session(saved)
    pictures = [Picture(float(at), at + 1.0, b"\xff\xd8" + bytes([at])) for at in range(100)]
    journal = Journal([Said(90.0, "When?", "Then.", None, ((41.0, 42.0, 0.5),))], pictures)
    write_session(saved, SessionFile(file.saved, file.state, {JOURNAL: journal.to_bytes()}))
    omnitide("timeline", saved, "--html", "a.html", "--pictures", 4)
    page = Path("a.html").read_text()
    assert page.count("<figure") == 5
    assert 'from <a href="#at-41000">0:41</a>' in page
    assert '<figure id="at-41000">' in page
    assert base64.b64encode(pictures[41].jpeg).decode() in page
    assert "(from 0:41)" in omnitide("timeline", saved).out


def test_what_anyone_may_have_written_can_not_get_out_of_its_place() -> None:
    evil = '"><script>alert(1)</script>\x1b[2J'
    shot = Shot(0.0, 1.0, b"\xff\xd8")
    page = timeline_page(evil, evil, [shot], [Exchange(1.0, evil, evil, evil, ((0.0, 1.0),))])
    assert "<script" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("timeline", "none.tide"), 3, "does not exist"),
        (("timeline", "s.tide", "--html", "a.pdf"), 2, "--html a.pdf"),
        (("timeline", "s.tide", "--html", "none/a.html"), 2, "there is no folder"),
        (("find", "none.tide", "x"), 3, "does not exist"),
        (("find", "s.tide"), 2, "TEXT"),
        (("find", "s.tide", " "), 2, "nothing to find"),
    ],
)
def test_what_can_not_be_is_said(omnitide: Run, saved: Path, arguments: Any, code: int, words: str) -> None:
    done = omnitide(*arguments)
    assert (done.code, words in done.err) == (code, True), done.err


def test_a_damaged_journal_is_told_and_nothing_else_breaks(omnitide: Run, saved: Path) -> None:
    file = read_session(saved)
    write_session(saved, SessionFile(file.saved, file.state, {JOURNAL: b"nonsense"}))
    done = omnitide("timeline", saved)
    assert done.code == 3
    assert "journal" in done.err
    write_session(saved, SessionFile(file.saved, file.state))
    done = omnitide("timeline", saved)
    assert (done.code, done.out) == (0, "")

"""docs/adding-a-policy.md and adding-a-planner.md, carried out: a copy of the tree is changed, built and run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("adding-a-policy.md", "adding-a-planner.md")
STEP = re.compile(
    r"^`(?P<path>[\w./-]+)`, (?P<what>a new file|a line among the others):\n\n```cpp\n(?P<code>.*?)^```", re.M | re.S
)

DRIVER = r"""
// A stream of units of 10 tokens (5 seconds each) under the document's policy and planner, as the session runs them.
#include "session/history.h"

#include <cstdio>

using namespace ot;

int main() {
    for (const PolicyEntry & entry : policies()) std::printf("policy %d %s\n", int(entry.policy), entry.name);
    for (const PlannerEntry & entry : planners()) std::printf("planner %d %s\n", int(entry.planner), entry.name);
    HistorySettings settings;
    settings.pick.policy = Policy::Bookends;
    settings.pick.high_watermark = 100;
    settings.pick.low_watermark = 60;
    settings.page.planner = Planner::LastPages;
    settings.geometry = {8, 4, 8};
    if (set_knob(settings.pick, "first_units", 3) != KnobFit::Set) return 1;
    if (set_knob(settings.page, "pages_to_empty", 0) != KnobFit::OutOfRange) return 1;
    if (set_knob(settings.page, "pages_to_empty", 2) != KnobFit::Set) return 1;
    History history(false, 160, settings);
    for (int unit = 0; unit < 12; ++unit) {
        Span span;
        span.role = unit == 0 ? Role::System : Role::Audio;
        span.length = 10;
        std::vector<Span> spans{span};
        std::vector<Cell> cells = history.place(10);
        history.lay_out(spans);
        const UnitKind kind = unit == 0 ? UnitKind::System : UnitKind::Media;
        history.append(kind, std::move(spans), std::move(cells), unit, unit + 1);
        const Upkeep upkeep = history.maintain(0);
        if (!upkeep.retention.triggered) continue;
        std::printf("after %d: %u of %u, moved %u by %d\n", unit, upkeep.retention.after_tokens,
                    upkeep.retention.before_tokens, upkeep.rows_moved, int(upkeep.migration.planner));
    }
    std::printf("left");
    for (const Unit & unit : history.ledger().units()) std::printf(" %d", int(unit.id));
    std::printf("\n");
    return 0;
}
"""


def compiler() -> str:
    found = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if found is None:
        pytest.skip("no C++ compiler")
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with what both documents say."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "native", tree / "native")
    shutil.copytree(ROOT / "omnitide_cli", tree / "omnitide_cli", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    changed = []
    for document in DOCUMENTS:
        steps = list(STEP.finditer((ROOT / "docs" / document).read_text(encoding="utf-8")))
        assert [step["what"] for step in steps] == ["a new file", "a line among the others"], document
        for step in steps:
            path = tree / step["path"]
            assert path.exists() == (step["what"] != "a new file")
            changed.append(path)
            if step["what"] == "a new file":
                path.write_text(step["code"], encoding="utf-8")
            else:
                before, end, after = path.read_text(encoding="utf-8").rpartition("\n#undef P")
                path.write_text(f"{before}{step['code']}{end}{after}", encoding="utf-8")
    assert len(changed) == 4  # two product files each
    script, out = tree / "native" / "cmake" / "write_registry.py", tree / "omnitide_cli" / "runtime" / "_registry.py"
    subprocess.run([sys.executable, str(script), str(tree / "native" / "src"), str(out)], check=True)
    return tree


@pytest.fixture(scope="module")
def run(tree: Path) -> list[str]:
    """What the driver prints, built of the pure rooms of the copy."""
    command = [
        *([found] if (found := shutil.which("ccache")) else []),
        compiler(),
        "-std=c++17",
        "-O0",
        "-Wall",
        "-Wextra",
    ]
    source = tree / "native" / "src"
    (tree / "driver.cpp").write_text(DRIVER, encoding="utf-8")
    sources = [
        *(file for room in ("ledger", "pick", "page") for file in (source / room).glob("*.cpp")),
        source / "session" / "history.cpp",
        tree / "driver.cpp",
    ]
    include = [f"-I{source}", f"-I{tree / 'native' / 'include'}"]

    def build(file: Path) -> str:
        target = tree / f"{file.parent.name}-{file.stem}.o"
        done = subprocess.run(
            [*command, *include, "-c", str(file), "-o", str(target)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr, done.stderr
        return str(target)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(build, sources))
    subprocess.run([compiler(), *objects, "-o", str(tree / "driver")], check=True)
    done = subprocess.run([str(tree / "driver")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def in_copy(tree: Path, code: str) -> str:
    """What Python code prints that imports the copy's package and nothing of the installed one."""
    packages = Path(np.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{packages}", "COLUMNS": "200", "TERM": "dumb"}
    # -S: no .pth file, so that an editable installation of this tree is not found.
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False, env=environment, cwd=tree
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_native_code_knows_them_and_they_plan(run: list[str]) -> None:
    assert "policy 7 bookends" in run
    assert "planner 6 last_pages" in run
    rounds = [line for line in run if line.startswith("after ")]
    assert rounds[0].startswith("after 10: 60 of 110, moved ")
    assert "by 6" in rounds[0]
    (left,) = [line.split()[1:] for line in run if line.startswith("left")]
    units = [int(unit) for unit in left]
    assert units[:4] == [units[0], units[0] + 1, units[0] + 2, units[0] + 3]  # the system unit and the first three
    assert units[4] > units[3] + 1  # then a gap
    assert units[-1] == units[0] + 11  # and the newest


@pytest.mark.parametrize("command", ["watch", "live", "inspect-kv"])
def test_flags_and_help_know_them(tree: Path, command: str) -> None:
    main = "import sys; from omnitide_cli.app import main; main()"
    shown = in_copy(tree, f"import sys; sys.argv[1:] = [{command!r}, '--help']\n{main}")
    text = " ".join(re.sub(r"[│\n]", " ", shown).split())
    assert "recent|bookends" in re.sub(r"\s", "", text)
    for part in ("--first-units", "Keep this many first units.", "--pages-to-empty", "last-pages"):
        assert part in text, part


def test_words_saved_sessions_and_benches_know_them(tree: Path) -> None:
    found = in_copy(
        tree,
        """
from dataclasses import fields
from omnitide_cli.bench.quality.sweep import parse_sweep, policies_swept
from omnitide_cli.catalog.manifest import Defaults
from omnitide_cli.inspect.kv_words import RULES
from omnitide_cli.runtime.options import LAYOUTS, POLICIES, EngineOptions, check_watermarks
from omnitide_cli.runtime.saved import SavedOptions
from omnitide_cli.session.resume import NAMES

options = EngineOptions(policy="bookends", first_units=5, layout="last-pages")
check_watermarks(options)
print(options.first_units, options.pages_to_empty, "bookends" in POLICIES, "last-pages" in LAYOUTS)
print("bookends" in NAMES["policy"], "first_units" in {each.name for each in fields(SavedOptions)})
print("first_units" in {each.name for each in fields(Defaults)}, policies_swept(parse_sweep("first-units=0,4"), None))
print(RULES["bookends"])
""",
    )
    assert found.splitlines() == [
        "5 1 True True",
        "True True",
        "True ['bookends']",
        "bookends keeps the first units and the newest ones, and drops whole units between them",
    ]

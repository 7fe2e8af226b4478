"""The architecture as the folders show it: which room may use which, and where llama.cpp's internals may be seen."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "omnitide_cli"
NATIVE = ROOT / "native" / "src"

PYTHON_ARROWS = {
    "media": set(),
    "runtime": {"_omnitide"},
    "alerts": {"runtime", "catalog.values"},
    "catalog": {"runtime.options", "runtime.gguf_file", "runtime.encoders", "runtime.marks", "runtime.parts"},
    "formats": {"runtime.events", "runtime.kv_state"},
    "inspect": {"formats", "runtime", "catalog.folders"},
    "terminal": {"inspect", "formats", "runtime.events", "runtime.kv_state"},
    "diagnostics": {"catalog", "runtime", "media", "formats"},
    "session": {"alerts", "catalog", "runtime", "media", "formats", "terminal"},
    "commands": {"alerts", "session", "diagnostics", "inspect", "terminal", "formats", "catalog", "runtime", "media"},
    "bench": {"alerts", "commands.options", "commands.lazy", "session", "formats", "catalog", "runtime", "media"},
}
EVERYONE = {"errors", "addresses", "paths", "times"}

NATIVE_ARROWS = {
    "ledger": set(),
    "pick": {"ledger"},
    "page": {"ledger"},
    "recall": {"ledger"},
    "encode": set(),
    "llama": set(),
    "session": {"encode", "pick", "page", "recall", "llama", "ledger"},
}
DOORS = {"llama", "encode"}
POSIX_HEADERS = {"fcntl.h", "unistd.h"}
INSTALLED_HEADERS = re.compile(r"^(llama|mtmd|mtmd-helper|ggml(-[a-z]+)?|gguf)(-cpp)?\.h$")


def imported_rooms(module: Path) -> set[str]:
    """Modules of the package that a module imports anywhere, without the package's name."""
    found = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.removeprefix("omnitide_cli.") for name in names if name.startswith("omnitide_cli.")}
    return found


@pytest.mark.parametrize("room", sorted(PYTHON_ARROWS))
def test_rooms_use_what_they_may(room: str) -> None:
    allowed = {room} | PYTHON_ARROWS[room] | EVERYONE
    modules = list((PACKAGE / room).rglob("*.py"))
    assert modules
    for module in modules:
        for name in imported_rooms(module):
            assert name.startswith("__") or any(f"{name}.".startswith(f"{a}.") for a in allowed), f"{module}: {name}"


def test_every_room_is_known() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert rooms == set(PYTHON_ARROWS)
    assert {path.name for path in NATIVE.iterdir() if path.is_dir()} == set(NATIVE_ARROWS)


def test_one_room_touches_native_code() -> None:
    for module in PACKAGE.rglob("*.py"):
        source = module.read_text(encoding="utf-8")
        if module.parent != PACKAGE / "runtime":
            assert not re.search(r"^\s*(import|from) (llama_cpp|cffi|omnitide_cli\._omnitide)", source, re.M), module
        if module != PACKAGE / "runtime" / "native.py":
            assert "_omnitide import" not in source, module


def includes(source: Path) -> list[str]:
    return re.findall(r'^#include ["<]([^">]+)[">]', source.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("room", sorted(NATIVE_ARROWS))
def test_native_rooms_use_what_they_may(room: str) -> None:
    for source in (NATIVE / room).iterdir():
        for header in includes(source):
            if "/" in header:
                assert header.split("/")[0] in {room} | NATIVE_ARROWS[room], f"{source}: {header}"


def test_only_two_rooms_see_internal_headers() -> None:
    own = {path.name for path in (ROOT / "native").rglob("*.h")}
    for source in NATIVE.rglob("*"):
        if source.suffix not in (".h", ".cpp") or source.parent.name in DOORS:
            continue
        for header in includes(source):
            is_standard = "." not in header
            is_known = header in own | POSIX_HEADERS or "/" in header or INSTALLED_HEADERS.match(header)
            assert is_standard or is_known, f"{source}: {header}"


def test_pure_rooms_know_no_llama() -> None:
    for room in ("ledger", "pick", "page", "recall"):
        for source in (NATIVE / room).iterdir():
            assert not [h for h in includes(source) if h.startswith(("llama", "ggml", "mtmd", "clip"))], source

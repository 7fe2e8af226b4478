"""The public C header as a stranger reads it: its usage block compiles, and every field says what it is."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

INCLUDE = Path(__file__).resolve().parents[2] / "native" / "include"
HEADER = (INCLUDE / "omnitide.h").read_text(encoding="utf-8")
STRUCTS = re.findall(r"typedef struct (ot_\w+) \{\n(.*?)\n\} \1;", HEADER, re.DOTALL)


def usage() -> str:
    """The indented block of the comment at the top, as C."""
    comment = HEADER.partition("#pragma once")[0]
    return "\n".join(line.removeprefix("//   ") for line in comment.splitlines() if line.startswith("//   "))


@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_usage_block_compiles(tmp_path: Path, language: str) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    assert "ot_session_create" in usage()
    source = tmp_path / "usage.c"
    source.write_text(f'#include <stdio.h>\n#include "omnitide.h"\n\n{usage()}\n', encoding="utf-8")
    flags = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", f"-I{INCLUDE}", "-x", language]
    done = subprocess.run([compiler, *flags, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_are_structs() -> None:
    assert {"ot_session_params", "ot_snapshot", "ot_maintenance", "ot_ingest"} <= {name for name, _ in STRUCTS}


@pytest.mark.parametrize(("name", "body"), STRUCTS, ids=[name for name, _ in STRUCTS])
def test_every_field_of_a_public_struct_says_what_it_is(name: str, body: str) -> None:
    for line in body.splitlines():
        if line.strip().startswith("//"):
            continue
        field, _, comment = line.partition("//")
        assert field.count(";") == 1, f"{name}: one field a line, not {line.strip()}"
        assert "," not in field, f"{name}: one field a line, not {line.strip()}"
        assert comment.strip(), f"{name}: {field.strip()}"

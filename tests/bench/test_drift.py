"""What evictions do to keys and answers, measured on the shipped model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from omnitide_cli.app import app
from omnitide_cli.bench.common.fixture import Fixture
from omnitide_cli.bench.drift.measure import DriftRow, Tape, as_stored, measure_drift, relative_error
from omnitide_cli.bench.soak.measure import decoded
from omnitide_cli.catalog.files import fetch_files, find_manifest
from omnitide_cli.commands.run import run
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.template import TokenTemplate
from omnitide_cli.session.configuration import frame_fit

EXAMPLE = Path(__file__).parents[2] / "examples" / "shapes-and-notes.mp4"
SMALL = EngineOptions(high_watermark=300, low_watermark=200, unit_tokens=45, threads=2)


def test_relative_error_worked_by_hand() -> None:
    expected = np.array([[3.0, 4.0]], np.float32)
    assert relative_error(np.array([[3.0, 4.5]], np.float32), expected) == pytest.approx(0.1)
    assert relative_error(expected, expected) == 0


def test_keys_of_a_quantised_cache_are_compared_in_its_own_basis() -> None:
    keys = np.random.default_rng(0).standard_normal((5, 128)).astype(np.float32)
    two = np.array([[1, 1], [1, -1]]) / np.sqrt(2)
    hadamard = two
    for _ in range(5):
        hadamard = np.kron(two, hadamard)
    stored = np.concatenate([keys[:, :64] @ hadamard, keys[:, 64:] @ hadamard], axis=1).astype(np.float32)
    assert relative_error(stored, as_stored(keys, stored)) < 1e-6
    assert as_stored(keys, keys + 0.01) is keys


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str, int], DriftRow]:
    manifest = find_manifest(None)
    files = fetch_files(manifest)
    clip = decoded(str(EXAMPLE), frame_fit(manifest, None), audio=True)
    with Fixture(files.model, SMALL, files.mmproj) as fixture:
        tape = Tape(fixture, TokenTemplate.of(manifest.prompt, fixture.model), clip, manifest.default_question)
        found = list(measure_drift(fixture, tape, [6, 2], lambda _: None))
    return {(row.positions, row.cache_type, row.rounds): row for row in found}


def test_every_case_is_measured(rows: dict[tuple[str, str, int], DriftRow]) -> None:
    assert list(rows) == [(p, c, n) for p in ("compact", "sparse") for c in ("f16", "q8_0") for n in (2, 6)]


def test_errors_are_those_of_storage_however_often_a_row_was_shifted(
    rows: dict[tuple[str, str, int], DriftRow],
) -> None:
    for (positions, cache_type, count), row in rows.items():
        assert row.key_rel_err < {"f16": 5e-4, "q8_0": 1e-2}[cache_type], row
        assert row.key_rel_err > {"f16": 1e-5, "q8_0": 1e-3}[cache_type], "a cache of such a type does round"
        assert row.kl < {"f16": 1e-3, "q8_0": 0.05}[cache_type], row
        assert row.max_rotations == (0 if positions == "sparse" else row.max_rotations)
        if count == 6:
            assert row.key_rel_err < 1.5 * rows[positions, cache_type, 2].key_rel_err
    assert rows["compact", "f16", 6].max_rotations > rows["compact", "f16", 2].max_rotations > 0


def test_what_can_not_fit_is_refused() -> None:
    manifest = find_manifest(None)
    files = fetch_files(manifest)
    clip = decoded(str(EXAMPLE), frame_fit(manifest, None), audio=True)[:1]
    with Fixture(files.model, EngineOptions(high_watermark=60, low_watermark=40), files.mmproj) as fixture:
        tape = Tape(fixture, TokenTemplate.of(manifest.prompt, fixture.model), clip, "?")
        with pytest.raises(UsageError, match="low watermark"):
            next(measure_drift(fixture, tape, [1], lambda _: None))


def test_the_command_prints_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    size = ["--rounds", "1", "--high-watermark", "200", "--low-watermark", "120", "--threads", "2"]
    assert run(app, ["bench", "drift", str(EXAMPLE), *size, "--json", "--out", str(tmp_path)]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    fields = {"type", "positions", "cache_type", "rounds", "max_rotations", "key_rel_err", "kl"}
    assert [row["type"] for row in rows] == ["drift"] * 4
    assert all(fields <= row.keys() for row in rows)
    assert {path.name for path in tmp_path.iterdir()} == {"drift.csv", "drift.svg"}
    assert run(app, ["bench", "drift", str(EXAMPLE), "--policy", "full"]) == 2
    assert run(app, ["bench", "drift", str(EXAMPLE), "--policy", "h2o"]) == 2

"""What retention cut comes back exactly as a fresh run would have it at its new place, and leaves without a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_stream import PROBE, Running, Stream
from test_exactness import errors_in_steps

from omnitide_cli.bench.common.replay import replay
from omnitide_cli.errors import CacheFull, ModelError, SessionFileError, UsageError
from omnitide_cli.runtime.native_session import Unit
from omnitide_cli.runtime.options import EngineOptions
from omnitide_cli.runtime.recall import Recall, RecallSettings, Recollection

N_CTX = 768
HISTORY: dict[str, Any] = {"high_watermark": 380, "low_watermark": 240, "recent_units": 2, "text_budget": 40}
CACHES = [("f16", "on"), ("f16", "off"), ("q8_0", "on")]
ARCHES = ["qwen2vl", "llama", "qwen2"]
SETTINGS = RecallSettings(layers=(0, 2), tokens=200, threshold=0.0, memory=1 << 26, share=0.0)


def options(**other: object) -> EngineOptions:
    return EngineOptions(**{**HISTORY, **other})  # pyright: ignore[reportArgumentType]


def opened(path: Path, settings: EngineOptions, recall: RecallSettings | None = SETTINGS) -> tuple[Running, Any]:
    running = Running.open(path, settings, N_CTX)
    return running, None if recall is None else Recall(running.session, recall)


def pressed(
    path: Path, settings: EngineOptions, recall: RecallSettings | None = SETTINGS
) -> tuple[Running, Any, Stream]:
    """A session whose history was cut, shifted and moved."""
    running, archive = opened(path, settings, recall)
    stream = Stream(running, seed=1)
    stream.system()
    assert stream.run(24) >= 2
    return running, archive, stream


def recalled(recall: Recall) -> Recollection:
    done = recall.for_question(PROBE, reserved=64)
    assert done.verdict == "recalled"
    assert done.tokens > 40
    return done


def bytes_of(running: Running) -> bytes:
    """Ledger and every cached row, original keys included."""
    return running.session.save().tobytes()


@pytest.mark.parametrize("positions", ["compact", "sparse"])
@pytest.mark.parametrize(("cache_type", "flash_attn"), CACHES)
@pytest.mark.parametrize("arch", ARCHES)
def test_recalled_keys_are_those_of_a_fresh_run(
    models: dict[str, Path], arch: str, cache_type: str, flash_attn: str, positions: str
) -> None:
    chosen = options(cache_type=cache_type, flash_attn=flash_attn, positions=positions)
    running, recall, stream = pressed(models[arch], chosen)
    done = recalled(recall)
    running.session.check()
    units = running.session.units()
    back = [unit for unit in units if unit.recalled]
    assert [unit.id for unit in back] == [found.unit for found in done.units]
    assert sum(unit.tokens for unit in back) == done.tokens
    assert units[1 : 1 + len(back)] == back
    # A fresh run of the system unit and what came back; what lies behind has positions of its own, if they are sparse.
    fresh = Running.open(models[arch], options(policy="full", cache_type=cache_type, flash_attn=flash_attn), N_CTX)
    replay(units[: 1 + len(back)], stream.units, fresh.session)
    n = fresh.session.snapshot().history_tokens
    places = running.session.tokens()[:n]
    np.testing.assert_array_equal(places[:, 1:], fresh.session.tokens()[:, 1:])
    keys = running.session.keys(0, places[:, 0].tolist())
    errors = errors_in_steps(keys, fresh.session.keys(0, fresh.session.tokens()[:, 0].tolist()), cache_type)
    fresh.close()
    if cache_type == "f16":
        assert errors.max() <= 1.0
    else:
        assert np.sqrt((errors**2).mean(axis=1)).max() < 1.0
    assert np.isfinite(running.probe()).all()
    running.close()


@pytest.mark.parametrize("layout", ["auto", "native", "class-packing", "ordered-suffix"])
@pytest.mark.parametrize(("cache_type", "flash_attn"), CACHES)
@pytest.mark.parametrize("arch", ["qwen2vl", "llama"])
def test_what_was_recalled_leaves_no_trace(
    models: dict[str, Path], arch: str, cache_type: str, flash_attn: str, layout: str
) -> None:
    chosen = options(cache_type=cache_type, flash_attn=flash_attn, layout=layout)
    running, recall, stream = pressed(models[arch], chosen)
    other, _, twin = pressed(models[arch], chosen, recall=None)
    for _ in range(3):
        recalled(recall)
        recall.dismiss()
        running.session.check()
        assert_alike(running, other)
        for each in (stream, twin):
            each.media()
            each.running.session.maintain()
    np.testing.assert_array_equal(running.probe(), other.probe())
    assert_alike(running, other)
    running.close()
    other.close()


def assert_alike(found: Running, expected: Running) -> None:
    """The same history in the same cells, every key the same bits."""
    np.testing.assert_array_equal(found.session.tokens(), expected.session.tokens())
    np.testing.assert_array_equal(found.session.cells(), expected.session.cells())
    assert found.session.units() == expected.session.units()
    cells = expected.session.tokens()[:, 0].tolist()
    for layer in range(3):
        np.testing.assert_array_equal(found.session.keys(layer, cells), expected.session.keys(layer, cells))


@pytest.mark.parametrize("arch", ["qwen2vl", "llama"])
def test_every_byte_is_as_before_once_what_was_recalled_has_left(models: dict[str, Path], arch: str) -> None:
    running, recall, _ = pressed(models[arch], options())
    recalled(recall)
    recall.dismiss()  # from here on every key that has shifted was put aside
    before = bytes_of(running)
    running.session.begin("question")
    running.session.add_tokens("text", PROBE)
    logits = running.session.peek_logits(running.model.n_vocab)
    recalled(recall)
    recall.dismiss()
    assert bytes_of(running) == before
    running.session.begin("question")
    running.session.add_tokens("text", PROBE)
    np.testing.assert_array_equal(running.session.peek_logits(running.model.n_vocab), logits)
    running.close()


def test_a_question_and_its_answer_stay_when_what_was_recalled_leaves(models: dict[str, Path]) -> None:
    running, recall, stream = pressed(models["qwen2vl"], options())
    end = running.session.snapshot().next_position
    recalled(recall)
    stream.question()
    stream.answer()
    stream.media()
    running.session.check()
    units = running.session.units()
    assert not any(unit.recalled for unit in units)
    assert [unit.kind for unit in units[-3:]] == ["question", "response", "media"]
    assert units[-3].spans[0].base == end
    fresh = Running.open(models["qwen2vl"], options(policy="full"), N_CTX)
    stream.replay(fresh)
    tokens, expected = running.session.tokens(), fresh.session.tokens()
    np.testing.assert_array_equal(tokens[:, 1:], expected[:, 1:])
    keys = running.session.keys(0, tokens[:, 0].tolist())
    assert errors_in_steps(keys, fresh.session.keys(0, expected[:, 0].tolist()), "f16").max() <= 1.0
    fresh.close()
    running.close()


def whole(unit: Unit, stream: Stream) -> bool:
    parts = stream.units[unit.id]
    return unit.tokens == sum(len(part.tokens or ()) or len(part.rows) for part in parts)  # pyright: ignore[reportArgumentType]


def test_the_archive_has_what_was_cut_whole(models: dict[str, Path]) -> None:
    running, recall, stream = pressed(models["qwen2vl"], options())
    found = recall.search(PROBE)
    kept = {unit.id for unit in running.session.units() if not unit.partial}
    assert {each.unit for each in found} == set(stream.units) - kept
    assert recall.archive().whole == len(found)
    assert abs(sum(each.score for each in found) - 1) < 1e-4
    for each in found:
        recall.noted(each.unit)
    done = recalled(recall)
    assert all(whole(unit, stream) for unit in running.session.units() if unit.recalled)
    assert done.oldest_s == min(each.start_s for each in found)
    running.close()


def test_a_search_tells_units_apart_and_is_repeatable(models: dict[str, Path]) -> None:
    running, recall = opened(models["qwen2"], options())
    stream = Stream(running, seed=3)
    stream.system()
    stream.run(30)
    first, again = recall.search(PROBE), recall.search(PROBE)
    assert [each.score for each in first] == [each.score for each in again]
    assert len({each.score for each in first}) == len(first)
    running.close()


def test_positions_do_not_count_in_a_search(models: dict[str, Path]) -> None:
    """The same archive searched from another place of the stream: layer 0 sees the question's tokens alone."""
    running, recall = opened(models["qwen2vl"], options(), RecallSettings((0,), 200, 0.0, 1 << 26, share=0.0))
    stream = Stream(running, seed=3)
    stream.system()
    stream.run(30)
    before = recall.search(PROBE)
    stream.question()  # moves the next position, archives nothing
    after = recall.search(PROBE)
    np.testing.assert_allclose([e.score for e in after], [e.score for e in before], rtol=2e-3, atol=1e-6)
    running.close()


@pytest.mark.parametrize("arch", ["qwen2vl", "llama", "qwen2"])
def test_a_quantised_cache_is_searched_as_well(models: dict[str, Path], arch: str) -> None:
    scores = {}
    for cache_type in ("f16", "q8_0"):
        running, recall = opened(
            models[arch],
            options(cache_type=cache_type, flash_attn="on"),
            RecallSettings((0,), 200, 0.0, 1 << 26, share=0.0),
        )
        stream = Stream(running, seed=5)
        stream.system()
        stream.run(30)
        scores[cache_type] = np.array([each.score for each in recall.search(PROBE)])
        running.close()
    assert np.corrcoef(scores["f16"], scores["q8_0"])[0, 1] > 0.99


def test_nothing_is_recalled_without_room_or_from_an_empty_archive(models: dict[str, Path]) -> None:
    running, recall = opened(models["llama"], options())
    stream = Stream(running, seed=1)
    stream.system()
    assert recall.for_question(PROBE, reserved=10).verdict == "nothing"
    stream.run(24)
    state = bytes_of(running)
    assert recall.for_question(PROBE, reserved=N_CTX).verdict == "no-room"
    assert bytes_of(running) == state
    running.close()


def test_rows_on_disk_come_back_as_those_in_memory(models: dict[str, Path], tmp_path: Path) -> None:
    found = []
    # So little memory that rows go to disk.
    for memory, disk in ((1 << 26, 0), (150_000, 1 << 26)):
        settings = RecallSettings((0, 2), 200, 0.0, memory, disk, tmp_path / "archive", share=0.0)
        running, recall, _ = pressed(models["qwen2vl"], options(), settings)
        assert (recall.archive().disk_bytes > 0) == (disk > 0)
        assert recall.archive().memory_bytes <= memory
        assert not list(tmp_path.iterdir())
        done = recalled(recall)
        tokens = running.session.tokens()
        found.append(([each.unit for each in done.units], tokens, running.session.keys(2, tokens[:, 0].tolist())))
        running.close()
    assert found[0][0] == found[1][0]
    np.testing.assert_array_equal(found[0][2], found[1][2])


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="an unlinked file is reached through /proc")
@pytest.mark.parametrize("damaged", ["question", "response"])
def test_half_a_turn_that_cannot_be_read_takes_the_other_half_along(
    models: dict[str, Path], tmp_path: Path, damaged: str
) -> None:
    settings = RecallSettings((0, 2), 200, 0.0, 300_000, 1 << 26, tmp_path / "turns", share=0.0)
    running, recall, stream = pressed(models["llama"], options(), settings)
    stream.run(12)
    found = recall.search(PROBE)
    ends = np.cumsum([recall.noted(each.unit)[0] for each in found])
    pairs = [i for i, each in enumerate(found[:-1]) if each.kind == "question" and found[i + 1].kind == "response"]
    first = pairs[0]
    row_bytes = bytes_a_row(running)
    assert 0 < int(ends[first + 1]) * row_bytes <= recall.archive().disk_bytes, "both are on disk"
    at = int(ends[first + (damaged == "response")]) * row_bytes - 1  # its last byte: rows lie in the order of their age
    with unlinked("turns").open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    turn = [found[first].unit, found[first + 1].unit]
    assert recall.put_back(turn) == 0
    assert not any(unit.recalled for unit in running.session.units())
    assert recall.archive().lost == 1
    assert recall.put_back([found[pairs[1]].unit, found[pairs[1] + 1].unit]) > 0
    running.session.check()
    running.close()


def unlinked(name: str) -> Path:
    """A file of this process that has no name any more."""
    for fd in Path("/proc/self/fd").iterdir():
        if name in str(fd.readlink()):
            return fd
    raise FileNotFoundError(name)


def bytes_a_row(running: Running) -> int:
    """Of a token in the archive: keys and values of all layers."""
    session = running.session
    cell = session.tokens()[:1, 0].tolist()
    return sum(2 * 2 * session.keys(layer, cell).shape[1] for layer in session.layers())


def test_a_thinned_unit_comes_back_with_its_most_telling_tokens(models: dict[str, Path]) -> None:
    running, recall, stream = pressed(
        models["qwen2vl"], options(), RecallSettings((0, 2), 200, 0.0, 500_000, share=0.0)
    )
    assert recall.archive().thinned > 0
    recalled(recall)
    running.session.check()
    back = [unit for unit in running.session.units() if unit.recalled]
    assert any(unit.partial for unit in back)
    fresh = Running.open(models["qwen2vl"], options(policy="full"), N_CTX)
    stream.replay(fresh)
    np.testing.assert_array_equal(fresh.session.tokens()[:, 1:], running.session.tokens()[:, 1:])
    fresh.close()
    running.close()


def test_what_cannot_be_recalled_says_so(models: dict[str, Path]) -> None:
    running = Running.open(models["llama"], options(), N_CTX)
    for layers in ((9,), (), (2, 0)):
        with pytest.raises(UsageError, match="layer"):
            Recall(running.session, RecallSettings(layers, 200, 1.3, 1 << 20))
    running.close()


def test_notes_are_kept_with_their_unit(models: dict[str, Path]) -> None:
    running, recall = opened(models["llama"], options())
    stream = Stream(running, seed=1)
    stream.system()
    stream.media()
    unit = running.session.units()[-1].id
    recall.note(unit, words="größe", picture=b"\x00jpeg")
    with pytest.raises(UsageError, match="no archived unit"):
        recall.noted(unit)
    stream.run(24)
    tokens, words, picture = recall.noted(unit)
    assert (words, picture) == ("größe", b"\x00jpeg")
    assert tokens > 0
    running.close()


def test_a_session_on_stock_memory_recalls_nothing(models: dict[str, Path]) -> None:
    from omnitide_cli.runtime.model import Model
    from omnitide_cli.runtime.native_session import NativeSession
    from omnitide_cli.runtime.options import ModelFiles

    chosen = options(policy="full")
    model = Model(ModelFiles("test", models["llama"], None), chosen)
    model.open_context(chosen, N_CTX)
    session = NativeSession(model.context_address, 0, chosen, threads=1, stock_memory=True)
    with pytest.raises(ModelError, match="own memory"):
        Recall(session, SETTINGS)
    session.close()
    model.close()


def test_any_archived_unit_can_be_put_back(models: dict[str, Path]) -> None:
    running, recall, stream = pressed(models["qwen2vl"], options())
    ids = [each.unit for each in recall.search(PROBE)]
    before = running.session.snapshot().history_tokens
    came = recall.put_back(ids[1:3])
    back = [unit for unit in running.session.units() if unit.recalled]
    assert [unit.id for unit in back] == ids[1:3]
    assert all(whole(unit, stream) for unit in back)
    assert came == sum(unit.tokens for unit in back)
    assert running.session.snapshot().history_tokens == before + came
    assert running.session.snapshot().recalled_cells == came
    assert recall.put_back(ids[:1]) > 0
    assert [unit.id for unit in running.session.units() if unit.recalled] == ids[:1]
    running.session.check()
    with pytest.raises(UsageError, match="not archived"):
        recall.put_back([10**9])
    with pytest.raises(UsageError, match="ascend"):
        recall.put_back([ids[1], ids[0]])
    with pytest.raises(CacheFull, match="no room"):
        recall.put_back(ids)
    running.close()


def test_a_session_that_was_set_back_archives_nothing_twice(models: dict[str, Path]) -> None:
    running, recall, stream = pressed(models["llama"], options())
    state = running.session.save()
    found = [each.unit for each in recall.search(PROBE)]
    stream.run(6)
    running.session.restore(state)
    assert stream.run(8) > 0
    later = [each.unit for each in recall.search(PROBE)]
    assert later == sorted(set(later))
    assert set(found) <= set(later)
    running.close()


@pytest.mark.parametrize("disk", [0, 1 << 26])
@pytest.mark.parametrize(("cache_type", "flash_attn"), CACHES)
def test_a_resumed_session_recalls_what_one_that_went_on_recalls(
    models: dict[str, Path], tmp_path: Path, cache_type: str, flash_attn: str, disk: int
) -> None:
    chosen = options(cache_type=cache_type, flash_attn=flash_attn)
    settings = RecallSettings((0, 2), 200, 0.0, 1 << 26 if not disk else 150_000, disk, tmp_path / "archive")
    running, recall, _ = pressed(models["qwen2vl"], chosen, settings)
    recall.note(running.session.units()[-1].id, words="of a kept unit")
    again, other = opened(models["qwen2vl"], chosen, settings)
    again.session.restore(running.session.save())
    other.restore(recall.save())
    assert other.save().tobytes() == recall.save().tobytes()
    assert other.archive().disk_bytes == recall.archive().disk_bytes
    assert bool(other.archive().disk_bytes) == bool(disk)
    assert other.search(PROBE) == recall.search(PROBE)
    came, expected = (each.for_question(PROBE, reserved=64) for each in (other, recall))
    assert came.verdict == expected.verdict == "recalled"
    assert came.units == expected.units
    again.session.check()
    assert_alike(again, running)
    np.testing.assert_array_equal(again.probe(), running.probe())
    again.close()
    running.close()


def test_archives_that_are_damaged_or_of_another_kind_change_nothing(models: dict[str, Path]) -> None:
    running, recall, _ = pressed(models["qwen2vl"], options())
    sound = recall.save().tobytes()
    for damaged in (b"", sound[:9], sound[:-1], sound + b"x", sound[:60] + bytes(len(sound) - 60)):
        with pytest.raises(SessionFileError):
            recall.restore(damaged)
    for strange, words in ((b"\2" + sound[1:], "version"), (sound[:21] + b"\1" + sound[22:], "layers")):
        with pytest.raises(ModelError, match=words):
            recall.restore(strange)
    assert recall.save().tobytes() == sound
    for arch, cache_type in (("llama", "f16"), ("qwen2vl", "q8_0")):
        another, other = opened(models[arch], options(cache_type=cache_type, flash_attn="on"))
        with pytest.raises((SessionFileError, ModelError)):
            other.restore(sound)
        another.close()
    fresh, new = opened(models["qwen2vl"], options())
    with pytest.raises(SessionFileError, match="archive"):
        new.restore(sound)  # without the session that it belongs to
    fresh.close()
    running.close()

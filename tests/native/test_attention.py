"""Attention as the runtime counts it for h2o: its mass, a computation by hand, and whom its tokens stay with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray
from random_stream import PROBE, Running, Stream
from tiny_models import HEAD_DIM, N_HEAD, N_HEAD_KV, write_attention_model

from omnitide_cli.errors import ModelError, UsageError
from omnitide_cli.runtime.history import History
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native import Interrupted
from omnitide_cli.runtime.native_session import LAYOUTS, NativeSession
from omnitide_cli.runtime.options import EngineOptions, ModelFiles
from omnitide_cli.runtime.view import Part

LAYERS = 3
A_QUERY = N_HEAD * LAYERS  # what one token gives away: 1 in each head of each layer
H2O = EngineOptions(policy="h2o", high_watermark=380, low_watermark=240)
N_CTX = 512
SYSTEM = 12


def opened(path: Path, options: EngineOptions = H2O, n_ctx: int = N_CTX) -> tuple[Running, Stream]:
    running = Running.open(path, options, n_ctx)
    stream = Stream(running, seed=4)
    stream.system()
    return running, stream


def mass(running: Running) -> float:
    return float(running.session.scores().sum())


@pytest.mark.parametrize("arch", ["qwen2vl", "llama"])
def test_every_query_gives_away_one_in_every_head_of_every_layer(models: dict[str, Path], arch: str) -> None:
    running, stream = opened(models[arch], n_ctx=1536)
    given = SYSTEM
    assert mass(running) == pytest.approx(given * A_QUERY, rel=1e-5)
    for grow in (stream.media, stream.question, stream.answer, stream.media):
        grow()
        given = running.session.snapshot().history_tokens  # nothing is forgotten yet
        assert mass(running) == pytest.approx(given * A_QUERY, rel=1e-5)
    stream.add("question", [stream.text("text", 700)])  # more than goes through the model at once
    assert mass(running) == pytest.approx((given + 700) * A_QUERY, rel=1e-5)
    assert (running.session.scores() > 0).all()
    running.close()


def test_an_answer_counts_token_by_token(models: dict[str, Path]) -> None:
    running, _ = opened(models["qwen2vl"])
    running.probe()
    before = mass(running)
    running.session.generate_begin(0.0)
    for count in range(1, 6):
        running.session.generate_next()
        assert mass(running) == pytest.approx(before + count * A_QUERY, rel=1e-5)
    running.session.generate_end([1, 2])
    assert mass(running) == pytest.approx(before + 7 * A_QUERY, rel=1e-5)
    running.close()


def test_what_is_taken_back_does_not_count(models: dict[str, Path]) -> None:
    running, stream = opened(models["qwen2vl"])
    stream.media()
    before = running.session.scores()
    for watched in (False, True):
        running.session.begin("question")
        running.session.add_tokens("text", PROBE)
        assert (running.session.dry_run_watched()[1] if watched else running.session.dry_run()) > 0
        np.testing.assert_array_equal(running.session.scores(), before)
    running.session.interrupt()
    with pytest.raises(Interrupted):
        stream.media()
    running.session.interrupt(False)
    np.testing.assert_array_equal(running.session.scores(), before)
    running.probe()
    assert mass(running) == pytest.approx(before.sum() + len(PROBE) * A_QUERY, rel=1e-5)
    running.close()


def test_other_policies_count_nothing(models: dict[str, Path]) -> None:
    running, stream = opened(models["qwen2vl"], replace(H2O, policy="omnipick"))
    stream.media()
    assert mass(running) == 0
    running.close()


# --- by hand


def attention_by_hand(path: Path, tokens: list[int], heads: int = N_HEAD, kv_heads: int = N_HEAD_KV) -> NDArray:
    """Column sums [n] of causal attention over `tokens` in a model of one layer, over all queries and heads."""
    weights = {t.name: np.array(t.data, dtype=np.float64) for t in gguf.GGUFReader(path).tensors}
    x = weights["token_embd.weight"][tokens]
    x = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6) * weights["blk.0.attn_norm.weight"]

    def projected(name: str, count: int) -> NDArray:
        y = x @ weights[f"blk.0.attn_{name}.weight"].T + weights[f"blk.0.attn_{name}.bias"]
        y = y.reshape(len(tokens), count, HEAD_DIM)
        angle = np.arange(len(tokens))[:, None] * 1e6 ** (-np.arange(HEAD_DIM // 2) * 2 / HEAD_DIM)
        cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
        one, two = y[..., : HEAD_DIM // 2], y[..., HEAD_DIM // 2 :]
        return np.concatenate([one * cos - two * sin, one * sin + two * cos], axis=2)

    queries, keys = projected("q", heads), projected("k", kv_heads)
    sums = np.zeros(len(tokens))
    for head in range(heads):
        logits = queries[:, head] @ keys[:, head * kv_heads // heads].T / np.sqrt(HEAD_DIM)
        logits[np.triu_indices(len(tokens), 1)] = -np.inf
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        sums += (shares / shares.sum(axis=1, keepdims=True)).sum(axis=0)
    return sums


def test_scores_are_the_column_sums_of_attention(tmp_path: Path) -> None:
    path = write_attention_model(tmp_path / "one.gguf", "qwen2", layers=1)
    tokens = np.random.default_rng(0).integers(0, 512, 60).tolist()
    running = Running.open(path, H2O, N_CTX)
    for begin, end in ((0, 12), (12, 50), (50, 51), (51, 60)):
        running.session.begin("question")
        running.session.add_tokens("text", tokens[begin:end])
        running.session.commit()
    found = running.session.scores()
    running.close()
    expected = attention_by_hand(path, tokens)
    assert expected.max() > 3 * expected.min()  # there is something to tell apart
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.02)


# --- with their tokens


def kept_by_hand(scores: NDArray[np.float64], low: int) -> NDArray[np.bool_]:
    """Which tokens h2o keeps: the system text, the newest, and the heaviest of the others; of equals the newer."""
    budget = low - SYSTEM
    newest = budget - budget // 2
    older = np.arange(SYSTEM, len(scores) - newest)
    heavy = older[np.argsort(scores[older], kind="stable")[len(older) - budget // 2 :]]
    kept = np.zeros(len(scores), dtype=bool)
    kept[:SYSTEM] = kept[len(scores) - newest :] = kept[heavy] = True
    return kept


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_heavy_hitters_stay_and_keep_their_scores(models: dict[str, Path], layout: str) -> None:
    running, stream = opened(models["qwen2vl"], replace(H2O, layout=layout))
    session, retentions = running.session, 0
    while retentions < 4:
        stream.media()
        if retentions % 2:
            stream.question()
            stream.answer()
        before = session.scores()
        done = session.maintain()
        stream.rows_moved += done.rows_moved
        session.check()
        if done.retained:
            retentions += 1
            np.testing.assert_array_equal(session.scores(), before[kept_by_hand(before, H2O.low_watermark)])
            assert session.snapshot().history_tokens == H2O.low_watermark
        else:
            np.testing.assert_array_equal(session.scores(), before)
    assert (stream.rows_moved > 0) == (layout != "native")
    running.close()


def test_a_resumed_session_retains_as_the_uninterrupted_one(models: dict[str, Path]) -> None:
    running, stream = opened(models["qwen2vl"])
    assert stream.run(14) > 0
    state = running.session.save()
    other = Running.open(models["qwen2vl"], H2O, N_CTX)
    other.session.restore(state)
    np.testing.assert_array_equal(other.session.scores(), running.session.scores())
    again = Stream(other, seed=9)
    stream.random = np.random.default_rng(9)
    assert stream.run(8) == again.run(8) > 0
    np.testing.assert_array_equal(other.session.scores(), running.session.scores())
    np.testing.assert_array_equal(other.session.tokens(), running.session.tokens())
    running.close()
    other.close()


def test_a_session_may_go_on_with_h2o_and_without_it(models: dict[str, Path]) -> None:
    """Tokens from before have received nothing yet; what was counted is kept, but nothing is added."""
    running, stream = opened(models["qwen2vl"], replace(H2O, policy="omnipick"))
    assert stream.run(14) > 0
    tokens = running.session.snapshot().history_tokens
    counting = Running.open(models["qwen2vl"], H2O, N_CTX)
    counting.session.restore(running.session.save())
    assert mass(counting) == 0
    counting.probe()
    assert mass(counting) == pytest.approx(len(PROBE) * A_QUERY, rel=1e-5)
    running.session.restore(counting.session.save())
    running.probe()
    assert running.session.snapshot().history_tokens == tokens + 2 * len(PROBE)
    assert mass(running) == mass(counting)
    running.close()
    counting.close()


# --- where it can't be counted


def test_flash_attention_and_quantised_caches_are_refused(models: dict[str, Path]) -> None:
    for changes, part in (({"flash_attn": "on"}, "--flash-attn off"), ({"cache_type": "q8_0"}, "--cache-type f16")):
        with pytest.raises(UsageError, match="--policy h2o needs attention weights") as refusal:
            Running.open(models["qwen2vl"], replace(H2O, **changes), N_CTX)  # type: ignore[arg-type]
        assert part in refusal.value.hint


def test_a_context_with_flash_attention_is_refused_by_the_session(models: dict[str, Path]) -> None:
    options = EngineOptions(policy="omnipick", flash_attn="on")
    model = Model(ModelFiles("test", models["qwen2vl"], None), options)
    model.open_context(options, N_CTX)
    with pytest.raises(ModelError, match="flash attention doesn't expose"):
        NativeSession(model.context_address, 0, replace(options, policy="h2o"), threads=2)
    model.close()


def test_attention_that_is_no_number_a_token_is_refused() -> None:
    with History(H2O, 128) as history:
        history.append("media", [Part("audio", 4)])
        wrong: list[Any] = [np.ones(3), np.array([1, 2, 3, -1.0]), np.array([1, 2, 3, np.nan])]
        for scores in wrong:
            with pytest.raises(UsageError, match="one number per token, 0 or above"):
                history.attend(scores)
        assert not history.scores().any()

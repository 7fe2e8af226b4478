"""How large the cache is made, and what is refused before llama.cpp could run out of memory over it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from omnitide_cli.errors import ModelError, UsageError
from omnitide_cli.runtime import sizing
from omnitide_cli.runtime.options import MOST_TOKENS, EngineOptions, check_watermarks


def model(*, on_gpu: bool = False) -> Any:
    return SimpleNamespace(
        n_ctx_train=4096,
        caches_on_gpu=on_gpu,
        bytes_per_cell=lambda cache_type: 600,
        scratch_per_cell=lambda options: 100,
    )


@pytest.fixture(autouse=True)
def a_small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "available_bytes", lambda: 4_000_000)


def test_watermark_unit_and_answer_fit_with_slack_in_whole_pages() -> None:
    options = EngineOptions(high_watermark=2500, unit_tokens=100, max_answer_tokens=100)
    assert sizing.choose_ctx(options, model()) == (43 + sizing.SLACK_PAGES) * sizing.PAGE_SIZE


def test_full_takes_half_of_the_memory_at_most() -> None:
    assert sizing.choose_ctx(EngineOptions(policy="full"), model()) == 4_000_000 // 2 // 700 // 64 * 64


def test_policies_that_shift_need_room_for_untouched_keys() -> None:
    assert sizing.bytes_per_cell(EngineOptions(policy="full"), model()) == 700
    assert sizing.bytes_per_cell(EngineOptions(), model()) == 1000


@pytest.mark.parametrize(
    "options",
    [EngineOptions(ctx=5000), EngineOptions(high_watermark=5000), EngineOptions(policy="full", ctx=1_000_000)],
)
def test_a_cache_that_memory_can_not_hold_is_refused(options: EngineOptions) -> None:
    with pytest.raises(ModelError, match=r"GB of memory is free") as refused:
        sizing.choose_ctx(options, model())
    assert "--ctx" in refused.value.hint
    assert sizing.choose_ctx(options, model(on_gpu=True)) >= 5000


@pytest.mark.parametrize("name", ["high_watermark", "image_sinks", "max_answer_tokens", "ctx"])
@pytest.mark.parametrize("count", [-1, MOST_TOKENS + 1])
def test_counts_that_no_cache_has_are_refused(name: str, count: int) -> None:
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} {count}"):
        check_watermarks(EngineOptions(**{name: count}))  # pyright: ignore[reportArgumentType]

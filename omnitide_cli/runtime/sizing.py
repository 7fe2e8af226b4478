"""How large the cache is made, and what must fit it."""

from __future__ import annotations

from omnitide_cli.errors import ModelError, UsageError
from omnitide_cli.runtime.memory import available_bytes
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.options import EngineOptions

PAGE_SIZE = 64
SUBBLOCK_SIZE = 32
SLACK_PAGES = 2
QUESTION_TOKENS = 128  # room for a question, where the cache's size is ours to choose
FULL_CTX = 32768  # the most that `full` takes unasked


def check_low_watermark(options: EngineOptions, system_tokens: int) -> None:
    """Raise UsageError when system prompt and one unit don't fit below the low watermark."""
    least = system_tokens + options.unit_tokens
    if options.policy != "full" and options.low_watermark < least:
        raise UsageError(
            f"the low watermark ({options.low_watermark}) is below the system prompt and one unit ({least} tokens)",
            "raise --low-watermark, shorten --system, or lower --image-tokens",
        )


def whole_pages(cells: int, page_size: int = PAGE_SIZE) -> int:
    """Cells of a cache that must hold `cells`, slack included."""
    return (-(-cells // page_size) + SLACK_PAGES) * page_size


def choose_ctx(options: EngineOptions, model: Model) -> int:
    """Cells of the cache, in whole pages unless --ctx says otherwise. Raises ModelError for what memory can't hold."""
    if options.ctx is not None:
        cells = options.ctx
    elif options.policy == "full":
        cells = min(model.n_ctx_train or FULL_CTX, FULL_CTX)
        available = _available_bytes(model)
        if available is not None:
            cells = min(cells, available // 2 // bytes_per_cell(options, model))
        return max(cells // PAGE_SIZE * PAGE_SIZE, PAGE_SIZE, options.least_ctx)
    else:
        largest = options.high_watermark + max(options.unit_tokens, QUESTION_TOKENS) + options.max_answer_tokens
        cells = max(whole_pages(largest + options.recall_budget), options.least_ctx)
    if what := shortage(cells, options, model):
        lower = "--ctx" if options.policy == "full" else "--ctx or the watermarks"
        fit = (_available_bytes(model) or 0) // bytes_per_cell(options, model) // PAGE_SIZE * PAGE_SIZE
        raise ModelError(what, f"lower {lower} (about {fit} cells fit), or choose --cache-type q8_0")
    return cells


def shortage(cells: int, options: EngineOptions, model: Model) -> str | None:
    """How much memory a cache of this many cells would lack; None when it fits, or when the system doesn't say.

    llama.cpp would be given the memory, and the process killed while it fills it.
    """
    available, needed = _available_bytes(model), cells * bytes_per_cell(options, model)
    if available is None or needed <= available:
        return None
    return (
        f"a cache of {cells} cells takes {needed / 1e9:.1f} GB including what attention needs, but only"
        f" {available / 1e9:.1f} GB of memory is free"
    )


def _available_bytes(model: Model) -> int | None:
    return None if model.caches_on_gpu else available_bytes()


def bytes_per_cell(options: EngineOptions, model: Model) -> int:
    """What a cell takes once it is used: keys and values, the untouched keys of shifted rows, attention's scratch."""
    cache = model.bytes_per_cell(options.cache_type)
    untouched = 0 if options.policy == "full" else cache // 2
    return cache + untouched + model.scratch_per_cell(options)

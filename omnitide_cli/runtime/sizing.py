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
            "raise --low-watermark, or shorten --system or lower --image-tokens",
        )


def whole_pages(cells: int, page_size: int = PAGE_SIZE) -> int:
    """Cells of a cache that must hold `cells`, slack included."""
    return (-(-cells // page_size) + SLACK_PAGES) * page_size


def choose_ctx(options: EngineOptions, model: Model) -> int:
    """Cells of the cache, in whole pages unless --ctx says otherwise. Raises ModelError for what memory can't hold."""
    if options.policy == "full":
        if options.ctx is not None:
            return options.ctx
        cells = min(model.n_ctx_train or FULL_CTX, FULL_CTX)
        if (available := available_bytes()) is not None:
            cells = min(cells, available // 2 // model.bytes_per_cell(options.cache_type))
        return max(cells // PAGE_SIZE * PAGE_SIZE, PAGE_SIZE)
    largest = options.high_watermark + max(options.unit_tokens, QUESTION_TOKENS) + options.max_answer_tokens
    cells = options.ctx or whole_pages(largest)
    needed, available = cells * model.bytes_per_cell(options.cache_type), available_bytes()
    if available is not None and needed > available and not model.caches_on_gpu:
        # llama.cpp would be given the memory, and the process killed while it fills it.
        raise ModelError(
            f"a cache of {cells} cells takes {needed / 1e9:.1f} GB, {available / 1e9:.1f} GB of memory are free",
            "lower --ctx or the watermarks, or choose --cache-type q8_0",
        )
    return cells

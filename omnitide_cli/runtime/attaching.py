"""What a session begins with: the native session on a loaded model, and what the user should know of its settings."""

from __future__ import annotations

from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.events import Event, Notice
from omnitide_cli.runtime.limits import cores
from omnitide_cli.runtime.model import Model
from omnitide_cli.runtime.native_session import NativeSession
from omnitide_cli.runtime.options import EngineOptions, is_own_policy
from omnitide_cli.runtime.sizing import PAGE_SIZE, SUBBLOCK_SIZE


def standing_notices(model: Model, options: EngineOptions) -> list[Event]:
    """What the user should know of the settings; told with the first unit."""
    notices: list[Event] = []
    if options.cache_type == "q8_0" and not model.caches_on_gpu:
        message = "a q8_0 cache halves memory, but makes attention several times slower on a CPU"
        hint = "leave out --cache-type unless you are short of memory"
        notices.append(Notice(code="slow-cache-type", message=message, hint=hint))
    here = cores().usable
    if model.threads > 2 * here:
        message = f"{model.threads} threads share {counted(here)}, which makes all of them slower"
        notices.append(Notice(code="many-threads", message=message, hint=f"--threads {here}, or leave it out"))
    if is_own_policy(options.policy):
        message = f"{options.policy} runs in Python: each retention takes longer than with a built-in policy"
        notices.append(Notice(code="python-policy", message=message))
    return notices


def counted(processors: int) -> str:
    return "one processor" if processors == 1 else f"{processors} processors"


def attach_session(model: Model, options: EngineOptions) -> NativeSession:
    """Put OmniTide below the model's context, or beside llama.cpp's own memory where policy `full` has to use that.

    Raises ModelError for a memory that OmniTide can't manage, under any other policy.
    """

    def attach(*, stock_memory: bool) -> NativeSession:
        return NativeSession(
            model.context_address,
            model.mtmd_address,
            options,
            threads=model.threads,
            position_limit=model.n_ctx_train,
            stock_memory=stock_memory,
            page_size=PAGE_SIZE,
            subblock_size=SUBBLOCK_SIZE,
            costs=model.costs(options),
        )

    try:
        return attach(stock_memory=False)
    except ModelError as error:
        if options.policy != "full":
            raise ModelError(
                f"OmniTide can't manage this model's memory: {error.message}",
                "run it with --policy full, on llama.cpp's own memory, or choose another model",
            ) from error
        return attach(stock_memory=True)

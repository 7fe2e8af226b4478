"""What a session is opened with: files, the prompt's template, settings. Plain values, cheap to import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from omnitide_cli.errors import UsageError

Policy = Literal["omnipick", "full", "fifo", "token", "streaming-llm", "h2o"]
Layout = Literal["auto", "class-packing", "ordered-suffix", "hole-filling", "native", "eager"]
Positions = Literal["compact", "sparse"]
CacheType = Literal["f16", "q8_0"]
FlashAttention = Literal["auto", "on", "off"]

POLICIES: tuple[str, ...] = get_args(Policy)
LAYOUTS: tuple[str, ...] = get_args(Layout)
POSITIONS: tuple[str, ...] = get_args(Positions)

DEFAULT_MAX_ANSWER_TOKENS = 128
MOST_TOKENS = 1 << 24


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """The template around media, questions and answers; special tokens by name, any part may be empty."""

    system_prefix: str
    system_text: str
    system_suffix: str
    unit_prefix: str
    unit_suffix: str
    image_prefix: str
    image_suffix: str
    audio_prefix: str
    audio_suffix: str
    question_suffix: str
    response_suffix: str


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A language model and, unless it knows text alone, its encoders."""

    name: str
    model: Path
    mmproj: Path | None


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings of a session; counts are tokens (= cells) unless the name says otherwise."""

    policy: str = "omnipick"
    layout: str = "auto"
    positions: str = "compact"
    high_watermark: int = 2500
    low_watermark: int = 1800
    recent_units: int | None = None  # None: as many as fit the low watermark
    image_sinks: int = 4
    audio_sinks: int = 4
    text_budget: int = 256
    unit_tokens: int = 512  # the largest media unit expected
    ctx: int | None = None  # None: high watermark + the largest unit + the longest answer, in whole pages
    least_ctx: int = 0  # cells that a saved session lies in
    threads: int | None = None  # None: as many as there are processors for this process
    gpu_layers: int = -1  # -1: all that the backend takes
    cache_type: str = "f16"
    flash_attn: str = "auto"
    max_answer_tokens: int = DEFAULT_MAX_ANSWER_TOKENS
    temperature: float = 0.0
    seed: int = 0
    costs_file: Path | None = None  # where calibrations are kept (runtime/costs.py)


COUNTS = (
    "high_watermark",
    "low_watermark",
    "recent_units",
    "image_sinks",
    "audio_sinks",
    "text_budget",
    "max_answer_tokens",
    "ctx",
)


def check_watermarks(options: EngineOptions) -> None:
    """Raise UsageError unless 0 < low < high, high fits --ctx, and every count is from 0 to MOST_TOKENS."""
    for name in COUNTS:
        count = getattr(options, name)
        if count is not None and not 0 <= count <= MOST_TOKENS:
            raise UsageError(
                f"--{name.replace('_', '-')} {count}: must be between 0 and {MOST_TOKENS}",
                "choose a number in that range",
            )
    low, high = options.low_watermark, options.high_watermark
    if not 0 < low < high:
        raise UsageError(
            f"the low watermark {low} must be above 0 and below the high watermark ({high})",
            "for example --high-watermark 2500 --low-watermark 1800",
        )
    if options.policy != "full" and options.ctx is not None and high >= options.ctx:
        raise UsageError(
            f"the high watermark ({high}) must be below --ctx ({options.ctx})", "raise --ctx, or leave it out"
        )


def check_policy(options: EngineOptions) -> None:
    """Raise UsageError for a policy that these kernels can't serve: h2o reads what flash attention never writes."""
    if options.policy != "h2o":
        return
    if options.flash_attn == "on":
        raise UsageError(
            "--policy h2o needs attention weights, which flash attention doesn't expose",
            "use --flash-attn off, or choose another policy",
        )
    if options.cache_type == "q8_0":
        raise UsageError(
            "--policy h2o needs attention weights, and a q8_0 cache needs flash attention, which doesn't expose them",
            "use --cache-type f16, or choose another policy",
        )

"""What a session is opened with: files, the prompt's template, settings. Plain values, cheap to import."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from omnitide_cli.errors import UsageError
from omnitide_cli.runtime._registry import LAYOUTS as LAYOUT_ENTRIES
from omnitide_cli.runtime._registry import POLICIES as POLICY_ENTRIES
from omnitide_cli.runtime._registry import SOUND_ENCODERS, ChosenKnobs, Knobs, Layout, Policy

__all__ = ["LAYOUT_ENTRIES", "POLICY_ENTRIES", "SOUND_ENCODERS", "ChosenKnobs", "Layout", "Policy"]

Positions = Literal["compact", "sparse"]
CacheType = Literal["f16", "q8_0"]
FlashAttention = Literal["auto", "on", "off"]
Change = Literal["auto", "off"]

POLICIES = tuple(POLICY_ENTRIES)
LAYOUTS = tuple(LAYOUT_ENTRIES)
KNOBS = {knob.field: knob for entry in (*POLICY_ENTRIES.values(), *LAYOUT_ENTRIES.values()) for knob in entry.knobs}
"""Settings of policies and layouts, by their field in `EngineOptions`."""
POSITIONS: tuple[str, ...] = get_args(Positions)

NAMES = re.compile(r"<[^<>\s]+>|\[/?[A-Z][A-Z_]+\]")
"""What a special token is called: <|im_end|>, <s>, [INST]."""
DEFAULT_MAX_ANSWER_TOKENS = 128
MOST_TOKENS = 1 << 24


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """The template around media, questions and answers; special tokens by name, any part may be empty.

    Marks that are None are those that libmtmd writes for the model's encoders.
    """

    system_prefix: str
    system_text: str
    system_suffix: str
    unit_prefix: str
    unit_suffix: str
    question_suffix: str
    response_suffix: str
    image_prefix: str | None = None
    image_suffix: str | None = None
    audio_prefix: str | None = None
    audio_suffix: str | None = None
    same_picture: str = ""
    """In place of a picture that is left out since it shows the same as the last one."""
    plain_names: list[str] = field(default_factory=list)
    """What looks like a token's name and is plain text for this model."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A language model and, unless it knows text alone, its encoders."""

    name: str
    model: Path
    mmproj: Path | None


@dataclass(frozen=True, slots=True)
class EngineOptions(Knobs):
    """Settings of a session, those of policies and layouts included; counts are tokens (= cells) unless the name says
    otherwise."""

    policy: str = "omnipick"
    """One of POLICIES, or FILE.py:FUNCTION (see own_policy.py)."""
    layout: str = "auto"
    positions: str = "compact"
    high_watermark: int = 2500
    low_watermark: int = 1800
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
    show_thoughts: bool = False  # of models that think aloud; they cost answer tokens in any case
    costs_file: Path | None = None  # where calibrations are kept (runtime/costs.py)
    recall_layers: tuple[int, ...] = ()  # whose keys and queries find what a question asks for; none: no recall
    recall_reference: str = ""  # a question about nothing in particular, which scores are weighed against
    recall_threshold: float = 6.0  # so many times the score of a unit in the middle must the best one have
    recall_tokens: int | None = (
        None  # that come back for a question; None: as the model's manifest allows, 0: no recall
    )
    archive_memory: int = 512 << 20  # bytes of what was cut
    archive_disk: int = 4 << 30  # the same on disk, where there is a folder for it
    archive_folder: Path | None = None
    change: str = "off"
    """`auto`: a picture that shows the same as the last encoded one isn't encoded (change.py); `off`: all are."""
    refresh: float = 30.0  # seconds after which one is encoded all the same
    change_mean: float = 3.0  # levels of 255 by which blocks differ in a new picture, in the mean
    change_peak: float = 12.0  # and at their 99th percentile

    @property
    def recall_budget(self) -> int:
        """Tokens that may come back for a question; 0: what is cut is gone."""
        if self.policy == "full" or not self.recall_layers or self.archive_memory == 0:
            return 0
        return self.recall_tokens or 0


COUNTS = ("high_watermark", "low_watermark", *KNOBS, "max_answer_tokens", "ctx", "recall_tokens")


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


def has_knob(policy: str, field: str) -> bool:
    """Whether a setting means something to a policy: its own does, and those of layouts to all that delete anything."""
    if any(knob.field == field for entry in LAYOUT_ENTRIES.values() for knob in entry.knobs):
        return policy != "full"
    return policy in POLICY_ENTRIES and any(knob.field == field for knob in POLICY_ENTRIES[policy].knobs)


def is_own_policy(name: str) -> bool:
    """Whether a policy is the user's own: FILE.py:FUNCTION."""
    file, colon, function = name.rpartition(":")
    return bool(colon) and file.endswith(".py") and function.isidentifier()


def reads_attention(policy: str) -> bool:
    """Whether a policy retains by the attention that tokens receive. Raises UsageError for one that isn't there."""
    if is_own_policy(policy):
        from omnitide_cli.runtime.own_policy import load_policy

        return "attention" in load_policy(policy).wants
    return POLICY_ENTRIES[policy].reads_attention


def check_policy(options: EngineOptions) -> None:
    """Raise UsageError for a policy that these kernels can't serve (flash attention never writes what h2o reads), and
    for one of the user's own that can't be loaded."""
    if not reads_attention(options.policy):
        return
    if options.flash_attn == "on":
        raise UsageError(
            f"--policy {options.policy} needs attention weights, which flash attention doesn't expose",
            "use --flash-attn off, or choose another policy",
        )
    if options.cache_type == "q8_0":
        raise UsageError(
            f"--policy {options.policy} needs attention weights, and a q8_0 cache needs flash attention, which doesn't"
            " expose them",
            "use --cache-type f16, or choose another policy",
        )

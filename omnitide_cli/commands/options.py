"""The options that `watch` and `live` share: names, help texts, limits and variables, each said once.

A value that no flag, variable or file sets is None: the model's manifest may have one, and the runtime has the rest.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from omnitide_cli.catalog.settings import ALERTS, QUESTIONS
from omnitide_cli.catalog.values import TIME, did_you_mean, seconds
from omnitide_cli.errors import UsageError
from omnitide_cli.runtime.entries import Knob
from omnitide_cli.runtime.options import (
    KNOBS,
    POLICIES,
    CacheType,
    Change,
    FlashAttention,
    Layout,
    Positions,
    is_own_policy,
)

MODEL = "Model"
HISTORY = "History"
RECALL = "Recall"
MEDIA = "Media"
ANSWERS = "Answers"
MACHINE = "Machine"
OUTPUT = "Output"
SAVING = "Saving"


def option(flag: str, panel: str, text: str, *, also: str = "", **more: Any) -> Any:
    """`also`: a second name."""
    variable = "OMNITIDE_" + flag.partition("/")[0].removeprefix("--").upper().replace("-", "_")
    flags = [flag, also] if also else [flag]
    return typer.Option(*flags, help=text, rich_help_panel=panel, envvar=variable, show_envvar=False, **more)


def _one_run(flag: str, panel: str, text: str, **more: Any) -> Any:
    """Without a variable: it is meant for one run."""
    return typer.Option(flag, help=text, rich_help_panel=panel, **more)


def _question_option(flag: str, text: str, panel: str = QUESTIONS, **more: Any) -> Any:
    """Without a variable: Typer would split the text of a repeatable option at its spaces."""
    return typer.Option(flag, help=text, rich_help_panel=panel, **more)


def time_option(flag: str, panel: str, text: str, *, least: float = 0.0, most: float = math.inf, **more: Any) -> Any:
    """Seconds, written as such or as m:ss."""
    return option(flag, panel, text, parser=seconds(least=least, most=most), metavar=TIME, **more)


def check_names(what: str, names: Iterable[str], known: Sequence[str]) -> None:
    """Raise UsageError for the first of a repeatable option's names (`--<what>`) that isn't known."""
    for name in names:
        if name not in known:
            hint = f"{did_you_mean(name, known)} Choose from {', '.join(known)}".strip()
            raise UsageError(f"--{what} {name}: there is no such {what}", hint)


def complete_models(incomplete: str) -> list[str]:
    from omnitide_cli.catalog.manifest import model_names

    return [name for name in model_names() if name.startswith(incomplete)]


Model = Annotated[
    str | None,
    option(
        "--model",
        MODEL,
        "A known model, or the path of a .gguf file or a manifest.",
        metavar="NAME|PATH",
        show_default="omnitide-demo",
        autocompletion=complete_models,
    ),
]
Mmproj = Annotated[
    str | None,
    option("--mmproj", MODEL, "Vision and audio encoders for a .gguf model.", metavar="PATH", show_default=False),
]
System = Annotated[str | None, option("--system", MODEL, "System prompt.", metavar="TEXT", show_default="the model's")]

Ask = Annotated[
    list[str] | None,
    _question_option("--ask", "Ask at the end. Repeatable.", metavar="TEXT", show_default=False),
]
AskAt = Annotated[
    list[str] | None,
    _question_option("--ask-at", "Ask at this time. Repeatable.", metavar="TIME=TEXT", show_default=False),
]
Every = Annotated[
    list[str] | None,
    _question_option("--every", "Ask at this interval. Repeatable.", metavar="TIME=TEXT", show_default=False),
]
Questions = Annotated[
    Path | None,
    option(
        "--questions",
        QUESTIONS,
        'Read questions from a JSONL file, one {"at": "1:30", "ask": "..."} per line; - for standard input.',
        metavar="FILE.jsonl",
        show_default=False,
    ),
]
Manual = Annotated[bool, option("--manual", QUESTIONS, "Don't ask the model's own question; I'll type mine.")]
NoAsk = Annotated[bool, option("--no-ask", QUESTIONS, "Ask nothing, whatever other settings say.")]


AlertRules = Annotated[
    list[str] | None,
    _question_option(
        "--alert",
        "Tell when the answer to a yes-or-no question becomes yes. Repeatable.",
        panel=ALERTS,
        metavar="[NAME=]TEXT",
        show_default=False,
    ),
]
AlertsFile = Annotated[
    Path | None,
    option("--alerts", ALERTS, "Read such rules from a file.", metavar="FILE.toml", show_default=False),
]
OnAlert = Annotated[
    str | None,
    option(
        "--on-alert",
        ALERTS,
        "Run this at an alert, without a shell; {text}, {rule}, {at}, {picture} are filled in.",
        metavar="COMMAND",
        show_default=False,
    ),
]
AlertEvery = Annotated[
    float,
    time_option(
        "--alert-every", ALERTS, "Check the rules this often, and whenever the scene changes.", least=0.1, most=86_400.0
    ),
]


def policy_name(name: str) -> str:
    """A known policy, or one of the user's own. Raises ValueError, in Typer's words for choices."""
    if name in POLICIES or is_own_policy(name):
        return name
    known = ", ".join(repr(policy) for policy in (*POLICIES, "FILE.py:FUNCTION"))
    raise ValueError(f"{name!r} is not one of {known}.")


def complete_policies(incomplete: str) -> list[str]:
    return [name for name in POLICIES if name.startswith(incomplete)]


PolicyOption = Annotated[
    str | None,
    option(
        "--policy",
        HISTORY,
        "Which tokens to keep when the history is full; may be a Python function of yours.",
        metavar=f"[{'|'.join(POLICIES)}|FILE.py:FUNCTION]",
        show_default="omnipick",
        parser=policy_name,
        autocompletion=complete_policies,
    ),
]
LayoutOption = Annotated[Layout | None, option("--layout", HISTORY, "Cache layout.", show_default="auto")]
PositionsOption = Annotated[
    Positions | None,
    option("--positions", HISTORY, "Renumber kept tokens, or keep their original positions.", show_default="compact"),
]
HighWatermark = Annotated[
    int | None,
    option(
        "--high-watermark",
        HISTORY,
        "Evict above this many tokens; models may have their own.",
        metavar="TOKENS",
        show_default="2500",
    ),
]
LowWatermark = Annotated[
    int | None,
    option(
        "--low-watermark",
        HISTORY,
        "Evict down to this many tokens.",
        metavar="TOKENS",
        show_default="1800",
    ),
]


def _knob_parameter(name: str, knob: Knob) -> inspect.Parameter:
    shown = option(
        f"--{knob.name}",
        HISTORY,
        knob.sentence,
        min=knob.kind(knob.least),
        metavar=knob.metavar,
        show_default=knob.shown_default,
    )
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=None, annotation=Annotated[knob.kind | None, shown])


KNOB_PARAMETERS = [_knob_parameter(name, knob) for name, knob in KNOBS.items()]
"""A flag for each setting of a policy or a layout, as native code describes it."""


def with_knobs(*, before: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command these flags, in front of the one called `before`; it takes them as `**knobs`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [
            each
            for each in inspect.signature(command, eval_str=True).parameters.values()
            if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        at = [each.name for each in own].index(before)
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own[:at], *KNOB_PARAMETERS, *own[at:])
        ]

        def run(**values: Any) -> None:
            command(**values)

        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


RecallTokens = Annotated[
    int | None,
    option(
        "--recall-tokens",
        RECALL,
        "Maximum tokens recalled for a question.",
        min=0,
        metavar="TOKENS",
        show_default="a quarter of the low watermark; 0: no recall",
    ),
]
ArchiveMemory = Annotated[
    int | None,
    option(
        "--archive-memory",
        RECALL,
        "Memory for evicted history; 0 keeps none.",
        min=0,
        metavar="BYTES",
        show_default="536870912",
    ),
]
ArchiveDisk = Annotated[
    int | None,
    option(
        "--archive-disk",
        RECALL,
        "Disk space for it, once memory is full.",
        min=0,
        metavar="BYTES",
        show_default="4294967296",
    ),
]

UnitSeconds = Annotated[
    float, time_option("--unit-seconds", MEDIA, "Length of a unit: one frame and its sound.", least=0.1, most=30.0)
]
ImageTokens = Annotated[
    int | None,
    option("--image-tokens", MEDIA, "Maximum tokens per frame.", min=4, metavar="N", show_default="the model's"),
]
ChangeOption = Annotated[
    Change | None,
    option("--change", MEDIA, "auto: encode a picture only if it shows something new.", show_default="the model's"),
]
Refresh = Annotated[
    float | None,
    time_option("--refresh", MEDIA, "With --change auto, encode one at least this often.", show_default="30"),
]
NoVideo = Annotated[bool, option("--no-video", MEDIA, "Ignore the picture.")]
NoAudio = Annotated[bool, option("--no-audio", MEDIA, "Ignore the sound.")]

MaxAnswerTokens = Annotated[
    int | None,
    option("--max-answer-tokens", ANSWERS, "Maximum length of an answer.", min=1, metavar="N", show_default="128"),
]
Temperature = Annotated[
    float | None,
    option(
        "--temperature", ANSWERS, "Sampling temperature; 0 always takes the likeliest token.", min=0.0, show_default="0"
    ),
]
Seed = Annotated[
    int | None, option("--seed", ANSWERS, "Random seed for temperatures above 0.", min=0, show_default="0")
]

ShowThoughts = Annotated[
    bool, option("--show-thoughts", ANSWERS, "Show the model's thinking (<think>) in its answers.")
]

Ctx = Annotated[
    int | None,
    option(
        "--ctx", MACHINE, "Size of the KV cache in tokens.", min=1, metavar="CELLS", show_default="as many as needed"
    ),
]
Threads = Annotated[
    int | None,
    option("--threads", MACHINE, "CPU threads.", min=1, max=512, metavar="N", show_default="all cores"),
]
GpuLayers = Annotated[
    int | None,
    option("--gpu-layers", MACHINE, "Layers to put on the GPU; -1 for all.", min=-1, metavar="N", show_default="-1"),
]
CacheTypeOption = Annotated[
    CacheType | None, option("--cache-type", MACHINE, "Number format of cached keys and values.", show_default="f16")
]
FlashAttentionOption = Annotated[
    FlashAttention | None, option("--flash-attn", MACHINE, "Use flash attention.", show_default="auto")
]

SaveSession = Annotated[
    Path | None,
    option("--save-session", SAVING, "Save the session when it ends.", metavar="FILE.tide", show_default=False),
]
Resume = Annotated[
    Path | None,
    _one_run(
        "--resume",
        SAVING,
        "Resume a saved session; last is the newest of this source.",
        metavar="FILE.tide|last",
        show_default=False,
    ),
]
CheckpointEvery = Annotated[
    float,
    time_option("--checkpoint-every", SAVING, "Save a checkpoint this often; 0 for none."),
]

Json = Annotated[bool, option("--json", OUTPUT, "Write every event to standard output as NDJSON.")]
Dashboard = Annotated[
    bool | None,
    option(
        "--dashboard/--no-dashboard",
        OUTPUT,
        "Show the dashboard.",
        show_default="in a terminal, without --json, -q and -v",
    ),
]
Transcript = Annotated[
    list[Path] | None,
    option(
        "--transcript",
        OUTPUT,
        "Also write the answers to a file. Repeatable; --resume continues it.",
        also="--answers",
        metavar="FILE.jsonl|.vtt|.srt",
        show_default=False,
    ),
]
Overwrite = Annotated[bool, _one_run("--overwrite", OUTPUT, "Replace existing transcripts.")]
Evidence = Annotated[
    Path | None,
    option(
        "--evidence",
        OUTPUT,
        "Save the moments that answers and alerts came from: pictures, and clips of a file.",
        metavar="DIR",
        show_default=False,
    ),
]


def session_and_words(session: str | None, words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Which session is meant, and what is asked: a FILE.tide may stand in front. Raises UsageError for two sessions."""
    if not words or Path(words[0]).suffix != ".tide":
        return session, list(words)
    if session is not None:
        raise UsageError(f"two sessions are named: --session {session} and {words[0]}", "leave one out")
    return words[0], list(words[1:])


def of_saved(context: typer.Context) -> tuple[str | None, str | None, str | None]:
    """`--model` and `--mmproj` where they stand on the command line, and `--mmproj` wherever it comes from: variables
    and files of settings name the model of new sessions, while a saved one knows its own."""

    def said(name: str) -> str | None:
        source = context.get_parameter_source(name)
        return context.params[name] if source is not None and source.name == "COMMANDLINE" else None

    return said("model"), said("mmproj"), context.params["mmproj"]

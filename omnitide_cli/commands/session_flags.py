"""The flags that `watch` and `live` share: they stand once, here, and both commands take them over."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer

from omnitide_cli.commands import options
from omnitide_cli.commands.options import with_knobs

SAME_NAME = {"no_video": "video", "no_audio": "audio", "loop": "loops"}
"""Flags whose field in a saved session is called otherwise."""


def _shared(
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    system: options.System = None,
    ask: options.Ask = None,
    ask_at: options.AskAt = None,
    every: options.Every = None,
    questions: options.Questions = None,
    manual: options.Manual = False,
    no_ask: options.NoAsk = False,
    alert: options.AlertRules = None,
    alerts: options.AlertsFile = None,
    on_alert: options.OnAlert = None,
    alert_every: options.AlertEvery = 2.0,
    unit_seconds: options.UnitSeconds = 1.0,
    image_tokens: options.ImageTokens = None,
    change: options.ChangeOption = None,
    refresh: options.Refresh = None,
    no_video: options.NoVideo = False,
    no_audio: options.NoAudio = False,
    save_session: options.SaveSession = None,
    resume: options.Resume = None,
    checkpoint_every: options.CheckpointEvery = 60.0,
    policy: options.PolicyOption = None,
    layout: options.LayoutOption = None,
    positions: options.PositionsOption = None,
    high_watermark: options.HighWatermark = None,
    low_watermark: options.LowWatermark = None,
    recall_tokens: options.RecallTokens = None,
    archive_memory: options.ArchiveMemory = None,
    archive_disk: options.ArchiveDisk = None,
    max_answer_tokens: options.MaxAnswerTokens = None,
    temperature: options.Temperature = None,
    seed: options.Seed = None,
    show_thoughts: options.ShowThoughts = False,
    ctx: options.Ctx = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    json_lines: options.Json = False,
    dashboard: options.Dashboard = None,
    evidence: options.Evidence = None,
    transcript: options.Transcript = None,
    overwrite: options.Overwrite = False,
    **knobs: float | None,
) -> None: ...


def with_session_flags(*, before: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the shared flags; its own stand in front of the shared one called `before`, as help shows them.

    The command finds the shared values in its context (`session_options`).
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(command, eval_str=True).parameters.values())
        shared = list(inspect.signature(with_knobs(before="recall_tokens")(_shared)).parameters.values())
        context = own.pop(0)
        arguments = [each for each in own if each.default is inspect.Parameter.empty]
        flags = [each for each in own if each.default is not inspect.Parameter.empty]
        at = [each.name for each in shared].index(before)
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in (context, *arguments, *shared[:at], *flags, *shared[at:])
        ]
        names = {each.name for each in own}

        def run(context: typer.Context, **values: Any) -> None:
            command(context, **{name: value for name, value in values.items() if name in names})

        run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def session_options(context: typer.Context) -> Any:
    """The shared flags of a command as the session takes them (`SessionOptions`)."""
    from omnitide_cli.session.alerting import AlertOptions
    from omnitide_cli.session.configuration import settings_of
    from omnitide_cli.session.outputs import OutputOptions
    from omnitide_cli.session.run import QuestionOptions, SessionOptions

    flags = context.params
    return SessionOptions(
        model=flags["model"],
        mmproj=flags["mmproj"],
        system=flags["system"],
        questions=QuestionOptions(
            flags["ask"],
            flags["ask_at"],
            flags["every"],
            flags["questions"],
            no_ask=flags["no_ask"],
            manual=flags["manual"],
        ),
        output=OutputOptions(
            flags["json_lines"], flags["transcript"] or (), flags["overwrite"], flags["dashboard"], flags["no_ask"]
        ),
        alerts=AlertOptions(flags["alert"] or (), flags["alerts"], flags["on_alert"], flags["alert_every"]),
        evidence=flags["evidence"],
        save_session=flags["save_session"],
        resume=flags["resume"],
        checkpoint_every=flags["checkpoint_every"],
        engine=settings_of(flags),
        given=_given(context),
    )


def _given(context: typer.Context) -> set[str]:
    """Fields of the media plan that a flag, a variable or a file of settings says."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {
        SAME_NAME.get(name, name) for name, found in sources.items() if found is not None and found.name != "DEFAULT"
    }

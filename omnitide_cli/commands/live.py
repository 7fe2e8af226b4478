"""`omnitide live`: a camera and a microphone, and questions while they run."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from omnitide_cli.commands import options
from omnitide_cli.commands.run import INTERRUPTED, Globals

if TYPE_CHECKING:
    from omnitide_cli.media import LiveSource
    from omnitide_cli.runtime.events import Summary

NONE = "none"
LIVE = "Live"

EPILOG = """
[bold]Examples[/bold]

omnitide live

omnitide live --camera rtsp://192.168.1.20/stream --mic none --every "60=What happened?" --json

omnitide live --camera none --mic "USB" --ask-at "30=What do you hear?" --transcript talk.vtt

Ctrl-C ends with a summary; a second one leaves at once. A device that is lost is tried again until it is back.
"""


def live(
    context: typer.Context,
    camera: Annotated[
        str, options.option("--camera", LIVE, "A number, a device, a URL, a file, or none.", metavar="CAMERA")
    ] = "0",
    mic: Annotated[
        str, options.option("--mic", LIVE, "A microphone by (a part of) its name, default, or none.", metavar="NAME")
    ] = "default",
    duration: Annotated[
        float | None,
        options.option("--duration", LIVE, "End after so long.", min=0.1, metavar="SECONDS", show_default="never"),
    ] = None,
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    system: options.System = None,
    ask: options.Ask = None,
    ask_at: options.AskAt = None,
    every: options.Every = None,
    questions: options.Questions = None,
    no_ask: options.NoAsk = False,
    unit_seconds: options.UnitSeconds = 1.0,
    image_tokens: options.ImageTokens = None,
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
    recent_units: options.RecentUnits = None,
    image_sinks: options.ImageSinks = None,
    audio_sinks: options.AudioSinks = None,
    text_budget: options.TextBudget = None,
    max_answer_tokens: options.MaxAnswerTokens = None,
    temperature: options.Temperature = None,
    seed: options.Seed = None,
    ctx: options.Ctx = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    cache_type: options.CacheTypeOption = None,
    flash_attn: options.FlashAttentionOption = None,
    json_lines: options.Json = False,
    dashboard: options.Dashboard = None,
    transcript: options.Transcript = None,
) -> None:
    """Watch a camera and listen to a microphone, for as long as you like, and answer questions meanwhile."""
    from omnitide_cli.catalog.files import find_manifest
    from omnitide_cli.commands.checkpoint import Keeper
    from omnitide_cli.commands.faces import Wishes, open_faces
    from omnitide_cli.commands.interrupt import Interrupt
    from omnitide_cli.commands.loading import load_engine, model_files
    from omnitide_cli.commands.resume import Resumption, identity, place_of, plan_live, saved_model
    from omnitide_cli.commands.schedule import schedule_of
    from omnitide_cli.commands.session import Session
    from omnitide_cli.commands.setup import engine_options, frame_fit, given, settings_of, sound_left_out
    from omnitide_cli.media import Place, open_live
    from omnitide_cli.runtime.session_file import check_writable

    state = context.ensure_object(Globals)
    if save_session:
        check_writable(save_session, "--save-session")
    resumption = Resumption(resume) if resume else None
    model = model or (resumption.saved.model.name if resumption else None)
    manifest = find_manifest(model)
    seen_as = {
        "unit_seconds": unit_seconds,
        "image_tokens": image_tokens,
        "video": not no_video and camera != NONE,
        "audio": not no_audio and mic != NONE,
    }
    plan = plan_live(seen_as, given(context), resumption)
    wanted = settings_of(context) | {"unit_tokens": manifest.unit_tokens(plan.unit_seconds, plan.image_tokens)}
    if resumption:
        wanted, system = resumption.options(wanted), resumption.system(system)
    is_asked = bool(ask or ask_at or every or questions)
    is_talk = not (is_asked or no_ask or json_lines) and sys.stdin.isatty() and sys.stdout.isatty()
    schedule = schedule_of(
        ask, ask_at, every, questions, silent=no_ask, default=manifest.default_question if is_talk else ""
    )
    if resumption and not no_ask:
        schedule = resumption.schedule(schedule, asked_anew=is_asked)
    with ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        wishes = Wishes(json_lines, transcript, dashboard, no_ask)
        faces = open_faces(state, wishes, "live", interrupt)
        stack.callback(faces.close)
        try:
            chosen = engine_options(manifest, wanted)
            with interrupt.raising():
                source = open_live(
                    NONE if no_video else camera,
                    mic if manifest.hears and not no_audio else NONE,
                    fit=frame_fit(manifest, plan.image_tokens),
                    unit_seconds=plan.unit_seconds,
                    duration=duration,
                    place=place_of(plan),
                )
            stack.enter_context(source)
            if mic != NONE and not (no_audio or manifest.hears):
                source.warnings.append(sound_left_out(manifest))
            if not (schedule or no_ask):
                faces.people.hint('nothing will be asked; --every "60=TEXT" asks every minute')
            faces.people.expect(source.units_total)
            files = model_files(manifest, mmproj, interrupt, faces)
            prompt = manifest.prompt if system is None else replace(manifest.prompt, system_text=system)
            its_model = saved_model(model, files, prompt.system_text)
            if resumption:
                resumption.check_model(its_model)
            engine = stack.enter_context(load_engine(manifest, files, prompt, chosen, interrupt, faces))
            keeper = Keeper(
                engine,
                identity(its_model, chosen, replace(plan, source=source.name)),
                schedule,
                faces.sink,
                lambda unit: Place(clock=unit.end, index=unit.index + 1),
                file=save_session,
                every_s=checkpoint_every,
            )
        except Exception as error:
            faces.sink.failed(error)
            raise
        faces.attach(engine)
        session = Session(
            engine,
            source,
            faces.sink,
            interrupt,
            prompt=faces.prompt,
            commands={"save": keeper.save},
            conclude=lambda summary: _with_losses(summary, source),
            keeper=keeper,
            resumption=resumption,
        )
        session.run(source.name, schedule)
        if interrupt.requested:
            raise typer.Exit(INTERRUPTED)


def _with_losses(summary: Summary, source: LiveSource) -> Summary:
    """What the devices and their queues have counted."""
    return replace(
        summary,
        dropped_frames=source.dropped_frames,
        lost_sound_s=source.lost_sound_s,
        sound_skew_ms=source.skew_ms,
    )

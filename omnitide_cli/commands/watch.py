"""`omnitide watch`: a file, a stream or standard input, its questions, its answers."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated, Literal

import typer

from omnitide_cli.commands import options
from omnitide_cli.commands.run import INTERRUPTED, Globals

STANDARD_INPUT = "-"

EPILOG = """
[bold]Examples[/bold]

omnitide watch clip.mp4 --ask "What is there?"

omnitide watch clip.mp4 --ask-at "12.5=What is this?" --every "60=What is new?" --json

omnitide watch talk.mp3 --model qwen2.5-omni-3b --ask "What is it about?" --transcript talk.vtt

Without a question: in a terminal the model's own question is asked every 10 s and typed lines are questions at the end.
Options have variables (OMNITIDE_HIGH_WATERMARK=2000) and keys in omnitide.toml (high-watermark = 2000).
"""

SOURCE_HELP = "A video or audio file, a stream URL, or - for standard input."


def watch(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help=SOURCE_HELP, show_default=False)],
    model: options.Model = None,
    mmproj: options.Mmproj = None,
    system: options.System = None,
    ask: options.Ask = None,
    ask_at: options.AskAt = None,
    every: options.Every = None,
    questions: options.Questions = None,
    no_ask: options.NoAsk = False,
    start: Annotated[
        float, options.option("--start", options.MEDIA, "Where to begin.", min=0.0, metavar="SECONDS")
    ] = 0.0,
    duration: Annotated[
        float | None,
        options.option("--duration", options.MEDIA, "How much to take.", metavar="SECONDS", show_default="all"),
    ] = None,
    loop: Annotated[int, options.option("--loop", options.MEDIA, "Play it so many times.", min=1, metavar="N")] = 1,
    pace: Annotated[
        Literal["fast", "realtime"],
        options.option("--pace", options.MEDIA, "As fast as possible, or like a live stream."),
    ] = "fast",
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
    """Watch a video or listen to a recording, second by second, and answer questions about it."""
    from omnitide_cli.catalog.files import find_manifest
    from omnitide_cli.commands.checkpoint import Keeper
    from omnitide_cli.commands.faces import Wishes, open_faces
    from omnitide_cli.commands.interrupt import Interrupt
    from omnitide_cli.commands.loading import load_engine, model_files
    from omnitide_cli.commands.resume import Resumption, identity, place_of, plan_media, saved_model
    from omnitide_cli.commands.schedule import schedule_of
    from omnitide_cli.commands.session import Session
    from omnitide_cli.commands.setup import engine_options, frame_fit, given, settings_of, sound_left_out
    from omnitide_cli.media import open_source
    from omnitide_cli.media.container import display_name
    from omnitide_cli.runtime.session_file import check_writable

    state = context.ensure_object(Globals)
    if save_session:
        check_writable(save_session, "--save-session")
    resumption = Resumption(resume) if resume else None
    model = model or (resumption.saved.model.name if resumption else None)
    manifest = find_manifest(model)
    read_as = {
        "unit_seconds": unit_seconds,
        "image_tokens": image_tokens,
        "video": not no_video,
        "audio": not no_audio,
        "start": start,
        "duration": duration,
        "loops": loop,
    }
    plan = plan_media(source, read_as, given(context), resumption)
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
        interrupt = stack.enter_context(Interrupt(ends_input=source == STANDARD_INPUT))
        wishes = Wishes(json_lines, transcript, dashboard, no_ask)
        faces = open_faces(state, wishes, display_name(source), interrupt)
        stack.callback(faces.close)
        try:
            chosen = engine_options(manifest, wanted)
            with interrupt.reading():
                media = open_source(
                    source,
                    fit=frame_fit(manifest, plan.image_tokens),
                    unit_seconds=plan.unit_seconds,
                    video=plan.video,
                    audio=plan.audio and manifest.hears,
                    start=plan.start,
                    duration=plan.duration,
                    loops=plan.loops,
                    place=place_of(plan) if resumption else None,
                )
            stack.enter_context(media)
            if media.info.has_audio and plan.audio and not manifest.hears:
                media.warnings.append(sound_left_out(manifest))
            if not (schedule or no_ask):
                faces.people.hint("nothing will be asked; --ask TEXT asks after the last second")
            wide, tall = media.info.width, media.info.height
            faces.people.expect(media.units_total, wide / tall if wide and tall else None)
            files = model_files(manifest, mmproj, interrupt, faces)
            prompt = manifest.prompt if system is None else replace(manifest.prompt, system_text=system)
            its_model = saved_model(model, files, prompt.system_text)
            if resumption:
                resumption.check_model(its_model)
            engine = stack.enter_context(load_engine(manifest, files, prompt, chosen, interrupt, faces))
            of_session = identity(its_model, chosen, plan)
            keeper = Keeper(
                engine,
                of_session,
                schedule,
                faces.sink,
                media.place_after,
                file=save_session,
                every_s=checkpoint_every,
            )
        except Exception as error:
            if interrupt.requested:  # an input that was ended early is no fault of it
                raise KeyboardInterrupt from error
            faces.sink.failed(error)
            raise
        faces.attach(engine)
        session = Session(
            engine,
            media,
            faces.sink,
            interrupt,
            prompt=faces.prompt,
            commands={"save": keeper.save},
            keeper=keeper,
            resumption=resumption,
        )
        session.run(source, schedule, realtime=pace == "realtime", stays=is_talk)
        if interrupt.requested:
            raise typer.Exit(INTERRUPTED)

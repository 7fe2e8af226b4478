"""`omnitide watch`: a file, a stream or standard input, its questions, its answers."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from omnitide_cli.commands import options
from omnitide_cli.commands.session_flags import session_options, with_session_flags
from omnitide_cli.errors import INTERRUPTED
from omnitide_cli.session.global_options import GlobalOptions

EPILOG = """
[bold]Examples[/bold]

omnitide watch clip.mp4 --ask "What is there?"

omnitide watch clip.mp4 --ask-at "1:30=What is this?" --every "60=News?" --json

yt-dlp -o - URL | omnitide watch - --ask "What is it about?"

omnitide watch talk.mp3 --model qwen2.5-omni-3b --ask "What is it about?" --transcript talk.vtt

omnitide watch night.mp4 --alert "fox=Is there a fox?" --evidence seen

If you ask nothing, a terminal asks the model's own question every 10 s.
You can type questions in the dashboard, and in plain text at the end.
Times are seconds, m:ss or h:mm:ss.
Options can also be set by variables (OMNITIDE_HIGH_WATERMARK=2000)
or in omnitide.toml (high-watermark = 2000).
"""

SOURCE_HELP = "A file, a named pipe, a stream URL, or - for standard input; not needed with --resume."


@with_session_flags(before="unit_seconds")
def watch(
    context: typer.Context,
    source: Annotated[str | None, typer.Argument(metavar="SOURCE", help=SOURCE_HELP, show_default=False)] = None,
    start: Annotated[float, options.time_option("--start", options.MEDIA, "Start at this time.")] = 0.0,
    duration: Annotated[
        float | None,
        options.time_option("--duration", options.MEDIA, "How much of it to play, in each loop.", show_default="all"),
    ] = None,
    loop: Annotated[
        int,
        options.option(
            "--loop",
            options.MEDIA,
            "Play it, or the part that --start and --duration choose, N times.",
            min=1,
            metavar="N",
        ),
    ] = 1,
    audio_track: Annotated[
        int | None,
        options.option(
            "--audio-track",
            options.MEDIA,
            "Sound track to listen to, counted from 1.",
            min=1,
            metavar="N",
            show_default="the first that isn't silent",
        ),
    ] = None,
    pace: Annotated[
        Literal["fast", "realtime"],
        options.option("--pace", options.MEDIA, "As fast as possible, or in real time."),
    ] = "fast",
) -> None:
    """Go through a video or recording second by second, and answer questions about it."""
    from omnitide_cli.session.resume import resumed_source
    from omnitide_cli.session.run import run_session
    from omnitide_cli.session.sources import WatchedFile

    flags = context.params
    if source is None:
        source, context.params["resume"] = resumed_source(flags["resume"])
    watched = WatchedFile(
        source,
        start=start,
        duration=duration,
        loop=loop,
        unit_seconds=flags["unit_seconds"],
        image_tokens=flags["image_tokens"],
        video=not flags["no_video"],
        audio=not flags["no_audio"],
        audio_track=audio_track,
        is_paced=pace == "realtime",
    )
    if not run_session(session_options(context), watched, context.ensure_object(GlobalOptions)):
        raise typer.Exit(INTERRUPTED)

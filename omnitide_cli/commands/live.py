"""`omnitide live`: a camera and a microphone, and questions while they run."""

from __future__ import annotations

from typing import Annotated

import typer

from omnitide_cli.commands import options
from omnitide_cli.commands.session_flags import session_options, with_session_flags
from omnitide_cli.errors import INTERRUPTED
from omnitide_cli.session.global_options import GlobalOptions

LIVE = "Live"

EPILOG = """
[bold]Examples[/bold]

omnitide live

omnitide live --camera rtsp://192.168.1.20/1 --mic none --every "60=News?"

omnitide live --camera none --mic "USB" --transcript talk.vtt

omnitide live --alert "Is somebody there?" --on-alert 'notify-send "{text}"'

Ctrl-C ends with a summary; a second Ctrl-C leaves at once.
If a device disconnects, OmniTide warns and reconnects.
"""


@with_session_flags(before="model")
def live(
    context: typer.Context,
    camera: Annotated[
        str,
        options.option(
            "--camera",
            LIVE,
            "Camera number, device, URL, file, pipe, or none.",
            metavar="CAMERA",
            show_default="0",
        ),
    ] = "0",
    mic: Annotated[
        str, options.option("--mic", LIVE, "Microphone: its name or part of it, default, or none.", metavar="NAME")
    ] = "default",
    duration: Annotated[
        float | None,
        options.time_option("--duration", LIVE, "Stop after this long.", least=0.1, show_default="never"),
    ] = None,
) -> None:
    """Watch a camera, listen to a microphone, and answer questions while they run."""
    from omnitide_cli.session.run import run_session
    from omnitide_cli.session.sources import LiveDevices

    flags = context.params
    devices = LiveDevices(
        camera,
        mic,
        duration,
        unit_seconds=flags["unit_seconds"],
        image_tokens=flags["image_tokens"],
        video=not flags["no_video"],
        audio=not flags["no_audio"],
    )
    if not run_session(session_options(context), devices, context.ensure_object(GlobalOptions)):
        raise typer.Exit(INTERRUPTED)

"""Looks at one library from inside, in a process of its own: what crashes or hangs there does no harm here.

    python -m omnitide_cli.diagnostics.probe NAME

prints one JSON object: what is there, or {"error": …, "hint": …}.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from omnitide_cli.errors import OmniTideError

TIMEOUT_S = 60.0
VIDEO = ("h264", "hevc", "vp9", "av1", "mpeg4", "mjpeg")
AUDIO = ("aac", "mp3", "opus", "vorbis", "flac", "pcm_s16le")

Found = dict[str, Any]


def run(name: str) -> Found:
    """Probe in another process. Never raises."""
    command = [sys.executable, "-m", __name__, name]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
        found = json.loads(done.stdout.decode("utf-8", "replace").splitlines()[-1]) if done.stdout else None
    except subprocess.TimeoutExpired:
        return {"error": f"it did not answer within {TIMEOUT_S:.0f} s"}
    except (OSError, ValueError) as error:
        return {"error": f"it can't be checked: {error}"}
    if not isinstance(found, dict):
        ending = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return {"error": f"it ended unexpectedly with {ending}" + (f": {said[-1]}" if said else "")}
    return found


def native() -> Found:
    """llama.cpp as it is installed, and our library on it."""
    from omnitide_cli.runtime import versions

    return versions.report()


def decoders() -> Found:
    """PyAV, and what its FFmpeg can read."""
    import av

    names = [*VIDEO, *AUDIO]
    return {
        "version": av.__version__,
        "ffmpeg": ".".join(map(str, av.library_versions["libavcodec"])),
        "missing": [name for name in names if name not in av.codecs_available],
        "count": len(av.codecs_available),
    }


def pictures() -> Found:
    """OpenCV: scaling and cameras."""
    import cv2

    return {"version": cv2.__version__, "resizes": hasattr(cv2, "resize"), "captures": hasattr(cv2, "VideoCapture")}


def sound() -> Found:
    """PortAudio and the microphones it sees."""
    import sounddevice

    devices: Any = sounddevice.query_devices()
    inputs = [device["name"] for device in devices if device["max_input_channels"] > 0]
    return {"version": sounddevice.__version__, "portaudio": sounddevice.get_portaudio_version()[1], "inputs": inputs}


def hub() -> Found:
    """The client that fetches models."""
    import huggingface_hub

    return {"version": huggingface_hub.__version__}


def arrays() -> Found:
    """numpy."""
    import numpy

    return {"version": numpy.__version__}


PROBES: dict[str, Callable[[], Found]] = {
    each.__name__: each for each in (native, decoders, pictures, sound, hub, arrays)
}


def main() -> None:
    """Print what the named probe finds."""
    try:
        found = PROBES[sys.argv[1]]()
    except OmniTideError as error:
        found = {"error": error.message, "hint": error.hint}
    except BaseException as error:  # whatever a broken library raises when it is imported
        found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps(found))


if __name__ == "__main__":
    main()

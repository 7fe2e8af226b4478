"""The libraries underneath: are they there, do they fit, does something else bring its own."""

from __future__ import annotations

import os
import platform
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from omnitide_cli import __version__
from omnitide_cli.diagnostics import probe
from omnitide_cli.diagnostics.report import Finding

VERSIONS, CODECS, DEVICES = "Versions", "Reading media", "Devices"
LLAMA = re.compile(r"lib(llama|ggml|mtmd)[\w.-]*\.(so|dylib)[\d.]*$")
OPENCV = ("opencv-python", "opencv-contrib-python", "opencv-python-headless", "opencv-contrib-python-headless")
OWN = "llama_cpp_python"
REINSTALL = "run: pip install --force-reinstall omnitide"
CUDA = "CMAKE_ARGS=-DGGML_CUDA=on pip install --force-reinstall --no-cache-dir llama-cpp-python==0.3.36"


def findings() -> list[Finding]:
    """Versions, clashes, codecs, and the microphones, which PortAudio knows."""
    with ThreadPoolExecutor() as pool:
        found = dict(zip(probe.PROBES, pool.map(probe.run, probe.PROBES), strict=True))
    return [
        _python(),
        _native(found["native"]),
        *_backend(found["native"]),
        _library("numpy", found["arrays"], "frames and samples"),
        *_clashes(found["native"]),
        _decoders(found["decoders"]),
        _pictures(found["pictures"]),
        _hub(found["hub"]),
        _microphones(found["sound"]),
    ]


def _python() -> Finding:
    fits = sys.version_info >= (3, 11)
    version = f"omnitide {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    remedy = "" if fits else "install Python 3.11 or later"
    return Finding(VERSIONS, "omnitide", "ok" if fits else "broken", version, remedy, needed=True)


def _native(found: probe.Found) -> Finding:
    if error := found.get("error"):
        return Finding(VERSIONS, "llama.cpp", "broken", error, found.get("hint") or REINSTALL, needed=True)
    return Finding(VERSIONS, "llama.cpp", "ok", found["description"], needed=True)


def _backend(found: probe.Found) -> list[Finding]:
    if "error" in found:
        return []
    features = ", ".join(found["features"]) or "none named"
    built = f"llama.cpp was built with {features}; its threads wait: {found['waiting']}"
    findings = [Finding(VERSIONS, "processor", "ok", built)]
    if found["gpu"]:
        return [*findings, Finding(VERSIONS, "GPU", "ok", "llama.cpp was built for a GPU; untried with OmniTide")]
    if Path("/proc/driver/nvidia/version").exists():
        text = "there is an NVIDIA GPU, but llama.cpp was built without CUDA"
        return [*findings, Finding(VERSIONS, "GPU", "missing", text, f"run: {CUDA}")]
    return [*findings, Finding(VERSIONS, "GPU", "ok", "none used: llama.cpp was built for the CPU only")]


def _library(name: str, found: probe.Found, what: str, *, needed: bool = True) -> Finding:
    if error := found.get("error"):
        return Finding(VERSIONS, name, "broken" if needed else "missing", error, REINSTALL, needed=needed)
    return Finding(VERSIONS, name, "ok", f"{found['version']}: {what}", needed=needed)


def _decoders(found: probe.Found) -> Finding:
    if error := found.get("error"):
        remedy = "run: pip install --force-reinstall av"
        return Finding(CODECS, "FFmpeg", "broken", error, remedy, needed=True)
    text = f"PyAV {found['version']} with libavcodec {found['ffmpeg']}, {found['count']} codecs"
    if missing := found["missing"]:
        remedy = "run: pip install --force-reinstall --only-binary :all: av"
        return Finding(CODECS, "FFmpeg", "warning", f"{text}, without {', '.join(missing)}", remedy, needed=True)
    return Finding(CODECS, "FFmpeg", "ok", f"{text}, all common ones", needed=True)


def _pictures(found: probe.Found) -> Finding:
    remedy = "run: pip install --force-reinstall opencv-python-headless"
    if error := found.get("error"):
        return Finding(CODECS, "OpenCV", "broken", error, remedy, needed=True)
    if not (found["resizes"] and found["captures"]):
        return Finding(CODECS, "OpenCV", "broken", "half of it is missing", remedy, needed=True)
    return Finding(CODECS, "OpenCV", "ok", f"{found['version']}: scales frames, opens cameras", needed=True)


def _hub(found: probe.Found) -> Finding:
    if error := found.get("error"):
        remedy = "run: pip install huggingface_hub; the shipped model and your own files work without it"
        return Finding(CODECS, "model hub", "missing", error, remedy)
    offline = "; HF_HUB_OFFLINE forbids downloads" if os.environ.get("HF_HUB_OFFLINE") else ""
    return Finding(CODECS, "model hub", "ok", f"huggingface_hub {found['version']}{offline}")


def _microphones(found: probe.Found) -> Finding:
    if error := found.get("error"):
        remedy = (
            "for microphones: apt install libportaudio2 (Debian, Ubuntu), or pip install --force-reinstall sounddevice"
        )
        return Finding(DEVICES, "microphones", "missing", error, remedy)
    if not found["inputs"]:
        text = f"none ({found['portaudio']})"
        return Finding(DEVICES, "microphones", "missing", text, "connect one, or use omnitide live --mic none")
    return Finding(DEVICES, "microphones", "ok", ", ".join(found["inputs"]))


def _clashes(native: probe.Found) -> list[Finding]:
    return [*_foreign_llama(), *_second_copy(native), *_path_variables(), *_second_opencv()]


def _foreign_llama() -> list[Finding]:
    """Packages that bring their own libggml or libllama: whichever is loaded first is what both get."""
    brought: dict[str, str] = {}
    for package in metadata.distributions():
        name = package.name or "?"
        if name.replace("-", "_") == OWN:
            continue
        for file in package.files or ():
            if LLAMA.search(file.name):
                brought.setdefault(name, str(file))
    return [
        Finding(
            VERSIONS,
            "clash",
            "warning",
            f"{name} brings its own {Path(file).name}: loaded in the same process, both break",
            f"run: pip uninstall {name}; or give omnitide an environment of its own: uv tool install omnitide",
        )
        for name, file in sorted(brought.items())
    ]


def _second_copy(native: probe.Found) -> list[Finding]:
    """llama-cpp-python leaves a copy of its libraries in site-packages/lib, which must not be the one in use."""
    elsewhere = [path for path in native.get("loaded", ()) if not Path(path).is_relative_to(native["package"])]
    if not elsewhere:
        return []
    text = f"{elsewhere[0]} is loaded instead of the copy in {native['package']}"
    return [Finding(VERSIONS, "clash", "warning", text, f"unset LD_LIBRARY_PATH and LD_PRELOAD; {REINSTALL}")]


def _path_variables() -> list[Finding]:
    """Folders that the loader prefers to ours."""
    found = []
    for variable in ("LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH"):
        for entry in re.split(r"[: ]", os.environ.get(variable, "")):
            path = Path(entry)
            files = [path] if path.is_file() else sorted(path.glob("lib*")) if entry and path.is_dir() else []
            if named := next((file for file in files if LLAMA.search(file.name)), None):
                text = f"{variable} has {named}, which is loaded instead of llama-cpp-python's"
                found.append(Finding(VERSIONS, "clash", "warning", text, f"unset {variable} for omnitide"))
    return found


def _second_opencv() -> list[Finding]:
    installed = []
    for name in OPENCV:
        try:
            installed.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    if len(installed) < 2:
        return []
    others = " ".join(each.partition(" ")[0] for each in installed if not each.startswith("opencv-python-headless "))
    remedy = f"run: pip uninstall -y {others} && pip install --force-reinstall opencv-python-headless"
    return [Finding(VERSIONS, "clash", "warning", f"{' and '.join(installed)} are both cv2", remedy)]

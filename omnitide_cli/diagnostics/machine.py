"""The machine around: model, memory, disk, folders, cameras, terminal."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from omnitide_cli.diagnostics.report import Finding
from omnitide_cli.formats.words import counted, size

MACHINE, DEVICES = "Machine", "Devices"
LEAST_MEMORY = 500_000_000
LEAST_DISK = 1_000_000_000


def findings(context: typer.Context) -> list[Finding]:
    """Each check alone: one that fails says so."""
    checks: dict[str, Callable[[], list[Finding]]] = {
        "cameras": _cameras,
        "shipped model": _model,
        "processors": _processors,
        "memory": _memory,
        "settings": lambda: _settings(context),
        "folders": _folders,
        "terminal": _terminal,
    }
    found: list[Finding] = []
    for name, check in checks.items():
        try:
            found += check()
        except Exception as error:  # a machine that is odd in a way we don't know
            found.append(Finding(MACHINE, name, "warning", f"can't be checked: {type(error).__name__}: {error}"))
    return found


def _settings(context: typer.Context) -> list[Finding]:
    """Whether the files of defaults can be read: no other command runs before they can; and what variables say."""
    from omnitide_cli.catalog import settings, variables
    from omnitide_cli.errors import UsageError

    root: Any = context.find_root()
    said = ", ".join(f"{name}={variables.shown(value)}" for name, value in variables.given().items())
    try:
        settings.default_map(root)
    except UsageError as error:
        found = [Finding(MACHINE, "settings", "broken", error.message, error.hint, needed=True)]
    else:
        files = ", ".join(str(path.absolute()) for path in settings.settings_files())
        nothing = f"no file; {settings.config_dir() / settings.FILE_NAME} would be one"
        found = [Finding(MACHINE, "settings", "ok", files or nothing)]
    if said:
        found.append(Finding(MACHINE, "variables", "ok", said))
    unknown = variables.unknown(root.command)
    return found + [
        Finding(MACHINE, "variables", "warning", f"{name} is not a setting", hint) for name, hint in unknown.items()
    ]


def _cameras() -> list[Finding]:
    """By the system's list: opening one that is busy may hang."""
    if sys.platform != "linux":
        return [
            Finding(
                DEVICES,
                "cameras",
                "ok",
                "not searched for on this system; omnitide live --camera 0 tries the first one",
            )
        ]
    cameras = []
    denied = []
    for device in sorted(Path("/dev").glob("video*")):
        name = Path("/sys/class/video4linux") / device.name / "name"
        title = name.read_text(encoding="utf-8", errors="replace").strip() if name.is_file() else device.name
        cameras.append(f"{device.name.removeprefix('video')} {title}")
        if not os.access(device, os.R_OK | os.W_OK):
            denied.append(str(device))
    if denied:
        remedy = "run: sudo usermod -aG video $USER, then log in again"
        return [Finding(DEVICES, "cameras", "missing", f"no permission to use {', '.join(denied)}", remedy)]
    if not cameras:
        return [Finding(DEVICES, "cameras", "missing", "none", "connect one, or use the URL of a network camera")]
    return [Finding(DEVICES, "cameras", "ok", ", ".join(cameras))]


def _model() -> list[Finding]:
    from omnitide_cli.catalog.manifest import load_manifest
    from omnitide_cli.errors import OmniTideError

    try:
        shipped = load_manifest("omnitide-demo")
    except OmniTideError as error:
        return [Finding(MACHINE, "shipped model", "broken", error.message, "reinstall omnitide", needed=True)]
    files = [shipped.folder / file.path for file in (shipped.model, shipped.mmproj) if file]
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        text = f"{', '.join(missing)} missing in {shipped.folder}"
        return [Finding(MACHINE, "shipped model", "broken", text, "reinstall omnitide", needed=True)]
    total = size(sum(path.stat().st_size for path in files))
    return [Finding(MACHINE, "shipped model", "ok", f"{shipped.name}, {total}", needed=True)]


def _processors() -> list[Finding]:
    """How many threads a session gets, and why not more."""
    from omnitide_cli.runtime.limits import cores

    found, total = cores(), os.cpu_count() or 1
    text = f"{counted(found.usable, 'thread')} by default: {found.affinity} of {counted(total, 'core')}"
    if found.quota is not None:
        text += f", a control group's quota of {found.quota:.3g}"
    load = os.getloadavg()[0]
    text += f"; load {load:.1f}"
    if load > total:
        remedy = "other programs are busy, which slows sessions down; omnitide bench busy measures by how much"
        return [Finding(MACHINE, "processors", "warning", text, remedy)]
    return [Finding(MACHINE, "processors", "ok", text)]


def _memory() -> list[Finding]:
    from omnitide_cli.runtime.limits import memory_limit
    from omnitide_cli.runtime.memory import available_bytes

    total, free, limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), available_bytes(), memory_limit()
    left = size(free) if free is not None else "an unknown part"
    text = f"{left} of {size(total)} free"
    if limit is not None and limit.limit < total:
        text = f"{left} free of the {size(limit.limit)} that {limit.what} allows; the machine has {size(total)}"
    if free is not None and free < LEAST_MEMORY:
        remedy = "close other programs: the shipped model needs about 200 MB, Qwen2.5-Omni 3B about 4 GB"
        if limit is not None and limit.limit < total:
            remedy = f"raise the limit ({limit.what}): {remedy.partition(': ')[2]}"
        return [Finding(MACHINE, "memory", "warning", text, remedy)]
    return [Finding(MACHINE, "memory", "ok", text)]


def _folders() -> list[Finding]:
    from omnitide_cli.catalog import folders

    kinds = {
        "cache": folders.cache_dir(),
        "downloads": folders.hub_dir() or _hub_cache(),
        "sessions": folders.runtime_dir(),
        "state": folders.state_dir(),
    }
    return [_folder(name, path) for name, path in kinds.items()]


def _hub_cache() -> Path:
    """Where huggingface_hub keeps files, told without importing it."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def _folder(name: str, path: Path) -> Finding:
    above = path
    while not above.exists() and above != above.parent:
        above = above.parent
    not_yet = "" if above == path else " (not created yet)"
    problem = _unwritable(above)
    if problem:
        remedy = "make it writable for yourself, or set OMNITIDE_HOME to another folder"
        return Finding(MACHINE, name, "warning", f"{path}{not_yet}: {problem}", remedy)
    free = shutil.disk_usage(above).free
    if name == "downloads" and free < LEAST_DISK:
        remedy = "make room, or set HF_HOME to a folder on a larger disk"
        return Finding(MACHINE, name, "warning", f"{path}: {size(free)} free", remedy)
    return Finding(MACHINE, name, "ok", f"{path}{not_yet}, {size(free)} free")


def _unwritable(folder: Path) -> str:
    """Why it can't be written there; tried, because rights alone don't tell of a full or read-only disk."""
    if not folder.is_dir():
        return f"{folder} is not a folder"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _terminal() -> list[Finding]:
    stream = sys.stdout
    encoding = (stream.encoding or "unknown").lower()
    term = os.environ.get("TERM") or "not set"
    colour = "no colour (NO_COLOR)" if os.environ.get("NO_COLOR") else f"TERM {term}"
    kind = "a terminal" if stream.isatty() else "not a terminal: plain text"
    text = f"{kind}, {colour}, encoding {encoding}"
    if not encoding.replace("-", "").startswith("utf"):
        remedy = "run: export LC_ALL=C.UTF-8; until then, characters outside ASCII are replaced"
        return [Finding(MACHINE, "terminal", "warning", text, remedy)]
    return [Finding(MACHINE, "terminal", "ok", text)]

"""Versions of what runs underneath, for `omnitide --version` and `omnitide doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnitide_cli.errors import OmniTideError
from omnitide_cli.runtime.openmp import waiting


def describe() -> str:
    """One line: llama-cpp-python, llama.cpp, ggml and the ABI state. Never raises an OmniTideError."""
    try:
        from omnitide_cli.runtime import native
    except OmniTideError as error:
        return f"native runtime unusable: {error.message} ({error.hint})"
    loaded = ", ".join(f"{name} {found}" for name, (found, _) in native.versions().items())
    return f"llama-cpp-python {native.LLAMA_CPP_PYTHON}, {loaded}, ABI {native.abi_version()} ok"


def report() -> dict[str, Any]:
    """The same and more as values: features of the build, whether it uses a GPU, where its libraries were loaded from,
    how its threads wait.

    Raises OmniTideError when the native runtime can't be used.
    """
    from omnitide_cli.runtime import native

    features = native.llama.llama_print_system_info().decode("utf-8", "replace")
    parts = [part.rpartition(":")[2].strip() for part in features.split("|")]
    return {
        "description": describe(),
        "features": [part.partition(" = ")[0] for part in parts if part.endswith("= 1")],
        "gpu": bool(native.llama.llama_supports_gpu_offload()),
        "package": str(Path(native.llama.__file__).parent),
        "loaded": _loaded(),
        "waiting": waiting(),
    }


def _loaded() -> list[str]:
    """Paths of the libraries of llama.cpp in this process; empty where the system doesn't say."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    return sorted(path for path in paths if Path(path).name.startswith(("libllama", "libggml", "libmtmd")))

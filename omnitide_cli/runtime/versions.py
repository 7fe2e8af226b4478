"""Versions of what runs underneath, for `omnitide --version` and `omnitide doctor`."""

from __future__ import annotations

from omnitide_cli.errors import OmniTideError


def describe() -> str:
    """One line: llama-cpp-python, llama.cpp, ggml and the ABI state. Never raises an OmniTideError."""
    try:
        from omnitide_cli.runtime import native
    except OmniTideError as error:
        return f"native runtime unusable: {error.message} ({error.hint})"
    loaded = ", ".join(f"{name} {found}" for name, (found, _) in native.versions().items())
    return f"llama-cpp-python {native.LLAMA_CPP_PYTHON}, {loaded}, ABI {native.abi_version()} ok"

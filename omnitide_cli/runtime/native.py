"""The one place that sees `ffi` and `lib`. Importing it loads llama.cpp, then our library, and checks that they fit.

The guards stand in this order, each with one message that names both versions and the remedy: the installed
llama-cpp-python is the pinned one; our library finds all its symbols (it is linked with `-z now`); llama.cpp and ggml
have the versions it was built for; our library's ABI number is the one this code knows.
"""

from __future__ import annotations

from importlib import metadata

from omnitide_cli.errors import CacheFull, ModelError, OmniTideError, RuntimeFailure, SessionFileError, UsageError
from omnitide_cli.runtime.openmp import wait_briefly

LLAMA_CPP_PYTHON = "0.3.36"
ABI_VERSION = 7

_REINSTALL = f"run: pip install --force-reinstall omnitide llama-cpp-python=={LLAMA_CPP_PYTHON}"


def _check_package() -> None:
    try:
        installed = metadata.version("llama-cpp-python")
    except metadata.PackageNotFoundError:
        raise ModelError(
            "llama-cpp-python is not installed", f"run: pip install llama-cpp-python=={LLAMA_CPP_PYTHON}"
        ) from None
    # A user's own CUDA or Metal build carries a local version such as 0.3.36+cu124.
    if installed.split("+")[0] != LLAMA_CPP_PYTHON:
        raise ModelError(
            f"llama-cpp-python {installed} is installed, OmniTide needs exactly {LLAMA_CPP_PYTHON}",
            f"run: pip install llama-cpp-python=={LLAMA_CPP_PYTHON}",
        )


_check_package()
wait_briefly()

try:
    import llama_cpp.llama_cpp as llama
    import llama_cpp.mtmd_cpp as mtmd
except (ImportError, OSError, RuntimeError) as error:  # RuntimeError: its libraries don't load
    raise ModelError(f"llama-cpp-python can't be loaded: {error}", _REINSTALL) from error

try:
    from omnitide_cli._omnitide import ffi, lib
except ImportError as error:
    raise ModelError(f"the native library can't be loaded: {error}", _REINSTALL) from error

__all__ = ["abi_version", "check", "ffi", "lib", "llama", "mtmd", "text", "versions"]


def text(pointer: object) -> str:
    """A C string as text."""
    return ffi.string(pointer).decode("utf-8", "replace")


def versions() -> dict[str, tuple[str, str]]:
    """(loaded, expected) versions of the libraries underneath."""
    return {
        "llama.cpp": (text(lib.ot_llama_version()), text(lib.ot_expected_llama_version())),
        "ggml": (text(lib.ot_ggml_version()), text(lib.ot_expected_ggml_version())),
    }


def abi_version() -> int:
    """ABI number of the native library in this process."""
    return lib.ot_abi_version()


def _check_versions() -> None:
    for name, (loaded, expected) in versions().items():
        if loaded != expected:
            raise ModelError(
                f"{name} {loaded} is loaded in this process, OmniTide was built for {expected}",
                f"another package may bring its own copy of it; {_REINSTALL}",
            )
    if abi_version() != ABI_VERSION:
        raise ModelError(f"the native library has ABI {abi_version()}, this code needs {ABI_VERSION}", _REINSTALL)


_check_versions()

_ERRORS: dict[int, type[OmniTideError]] = {
    lib.OT_ERR_ARGUMENT: UsageError,
    lib.OT_ERR_UNSUPPORTED: ModelError,
    lib.OT_ERR_NO_ROOM: CacheFull,
    lib.OT_ERR_DECODE: RuntimeFailure,
    lib.OT_ERR_ENCODE: RuntimeFailure,
    lib.OT_ERR_BROKEN: RuntimeFailure,
    lib.OT_ERR_STATE: SessionFileError,
    lib.OT_ERR_POLICY: RuntimeFailure,
}

_HINTS = {
    lib.OT_ERR_UNSUPPORTED: "choose another model",
    lib.OT_ERR_NO_ROOM: "raise --ctx, feed less at once, or choose a policy that evicts (--policy omnipick)",
    lib.OT_ERR_BROKEN: "this is a bug in OmniTide: please report it, and start the session again",
}


class Interrupted(Exception):
    """The running native call was stopped by `ot_session_interrupt`; its unit was taken back."""


raised_inside: list[BaseException] = []
"""What Python code that native code called has raised: it can't pass through, so `check` raises it behind."""


def check(status: int) -> None:
    """Turn a status of the C API into the error it stands for."""
    if status == lib.OT_OK:
        return
    if status == lib.OT_ERR_POLICY and raised_inside:
        raise raised_inside.pop()
    if status == lib.OT_ERR_INTERRUPTED:
        raise Interrupted
    raise _ERRORS.get(status, RuntimeFailure)(text(lib.ot_last_error()), _HINTS.get(status, ""))

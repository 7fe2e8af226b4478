"""Prints the folder that holds the headers of the pinned llama.cpp, fetching them if need be.

llama-cpp-python's installed package leaves out the internal headers that the native runtime compiles against; its
source distribution has them. In this order: OMNITIDE_LLAMA_SRC (an unpacked source distribution, or its
vendor/llama.cpp), the cache in the user's cache folder, a download through pip. Only headers are kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

PACKAGE = "llama-cpp-python"
FOLDERS = ("include", "ggml/include", "src", "tools/mtmd")


def main(version: str, sha256: str) -> Path:
    """The root to which the folders above are relative."""
    if given := os.environ.get("OMNITIDE_LLAMA_SRC"):
        return given_source(Path(given))
    cached = cache_folder() / f"llama-headers-{version}-{sha256[:12]}"
    if not (cached / "complete").exists():
        with tempfile.TemporaryDirectory() as scratch:
            archive = download(version, Path(scratch))
            check(archive, sha256)
            extract(archive, cached)
    return cached


def given_source(root: Path) -> Path:
    for candidate in (root, root / "vendor" / "llama.cpp"):
        if (candidate / "src" / "llama-kv-cache.h").exists():
            return candidate
    sys.exit(f"OMNITIDE_LLAMA_SRC={root} is not llama.cpp's source: src/llama-kv-cache.h is missing there")


def cache_folder() -> Path:
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "omnitide"


def download(version: str, folder: Path) -> Path:
    requirement = f"{PACKAGE}=={version}"
    # No isolation: pip only asks the package for its metadata, and the build back end for that is here already.
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        ":all:",
        "--no-build-isolation",
    ]
    result = subprocess.run([*command, "--dest", str(folder), requirement], capture_output=True, text=True, check=False)
    archives = list(folder.glob("*.tar.gz"))
    if result.returncode != 0 or not archives:
        sys.exit(
            f"The headers of llama.cpp could not be fetched: 'pip download {requirement}' failed.\n{result.stderr}\n"
            "Without a network, unpack the source distribution and name its folder in OMNITIDE_LLAMA_SRC."
        )
    return archives[0]


def check(archive: Path, sha256: str) -> None:
    with archive.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        sys.exit(
            f"{archive.name} has the sha256 {found}, expected {sha256}: not the release this project was written for"
        )


def extract(archive: Path, target: Path) -> None:
    partial = target.with_name(f"{target.name}.{os.getpid()}")
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            inside = path.parts[:2] == ("vendor", "llama.cpp")
            relative = PurePosixPath(*path.parts[2:])
            if not (
                inside and member.isfile() and relative.suffix in (".h", ".hpp") and str(relative.parent) in FOLDERS
            ):
                continue
            out = partial / relative
            out.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            assert source is not None
            out.write_bytes(source.read())
    (partial / "complete").touch()
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)


if __name__ == "__main__":
    print(main(sys.argv[1], sys.argv[2]).as_posix())

"""Files of the Hugging Face hub, in the cache that other tools share: found, fetched, checked, removed.

The hub's own client gives up what has arrived when a download is interrupted. So the bytes are fetched into a partial
file that the next try continues; once they are checked, the client finds them in their place and links them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnitide_cli.catalog.folders import hub_dir
from omnitide_cli.catalog.manifest import ModelFile
from omnitide_cli.errors import ModelError

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

Notify = Callable[[str], None]

PARTIAL = ".omnitide-partial"
SHA256 = re.compile(r"[0-9a-f]{64}")


class NotDownloaded(ModelError):
    """A file is not here and can't be fetched from here."""


def address(file: ModelFile) -> str:
    """Where any browser gets the file."""
    from huggingface_hub import hf_hub_url

    return hf_hub_url(file.repo, file.file, revision=file.revision or None)


def by_hand(files: Sequence[ModelFile]) -> str:
    """What to do where a model can't be downloaded: all of its files, not only the one that was missing first."""
    flags = " ".join(
        f"{flag} {Path(file.file).name}" for flag, file in zip(("--model", "--mmproj"), files, strict=False)
    )
    addresses = " and ".join(map(address, files))
    return f"download {addresses} where there is a network, then give {flags}"


def where(file: ModelFile) -> str:
    """What a file is called on the hub."""
    return f"{file.repo}/{file.file}"


def cached(file: ModelFile) -> Path | None:
    """The file in the cache, if it is there whole."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(file.repo, file.file, cache_dir=hub_dir(), revision=file.revision or None)
    path = Path(found) if isinstance(found, str) else None
    if path and file.size and path.stat().st_size != file.size:
        return None  # of another version, or cut off by a full disk
    return path


def partial_bytes(*files: ModelFile) -> int:
    """What interrupted downloads have left."""
    return sum(path.stat().st_size for path in {path for file in files for path in _partials(file)})


def fetch(file: ModelFile, notify: Notify) -> Path:
    """Download a file, or the rest of it. Raises ModelError; what has arrived by then is kept for the next try."""
    name = where(file)
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    endpoint = os.environ.get("HF_ENDPOINT") or None
    revision = file.revision or None
    try:
        known = get_hf_file_metadata(hf_hub_url(file.repo, file.file, revision=revision, endpoint=endpoint))
        if known.etag is None:
            raise NotDownloaded(f"{name}: the server doesn't say which version it has of this file")
        blob = _blobs(file) / known.etag
        if blob.exists() and known.size not in (None, blob.stat().st_size):
            blob.unlink()  # cut off by a full disk
        if not blob.exists():
            _fetch_blob(file, known, blob, endpoint, notify)
        path = hf_hub_download(file.repo, file.file, cache_dir=hub_dir(), revision=revision, endpoint=endpoint)
    except (ModelError, KeyboardInterrupt):
        raise
    except Exception as error:  # the hub's client lets errors of several HTTP libraries through
        raise NotDownloaded(f"{name} can't be downloaded: {_reason(error)}") from error
    return Path(path)


def _fetch_blob(file: ModelFile, known: HfFileMetadata, blob: Path, endpoint: str | None, notify: Notify) -> None:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers, disable_progress_bars

    name = where(file)
    if file.size and known.size is not None and known.size != file.size:
        raise ModelError(
            f"{name} has {known.size} bytes on the server, but the manifest says {file.size}", "update omnitide"
        )
    if not sys.stderr.isatty():
        disable_progress_bars()
    blob.parent.mkdir(parents=True, exist_ok=True)
    partial = blob.with_name(blob.name + PARTIAL)
    with partial.open("ab") as out:
        _lock(out, name)
        have = out.tell()
        size = known.size or file.size
        if size and have > size:
            have = out.truncate(0)
        if size:
            _check_room(partial, size - have, name)
        if not size or have < size:
            notify(_announcement(name, size, have))
            url = hf_hub_url(file.repo, file.file, revision=file.revision or None, endpoint=endpoint)
            http_get(url, out, resume_size=have, headers=build_hf_headers(), expected_size=size or None)
        out.flush()
        _check(file, known.etag or "", partial, notify)
        partial.replace(blob)


def _announcement(name: str, size: int, have: int) -> str:
    of_size = f" ({size / 1e9:.1f} GB)" if size else ""
    return f"downloading {name}{of_size}" + (f", resuming after {have / 1e9:.1f} GB" if have else "")


def _lock(file: Any, name: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ModelError(
            f"{name} is being downloaded by another process", "wait for that to finish, then try again"
        ) from None


def _check_room(path: Path, needed: int, name: str) -> None:
    free = shutil.disk_usage(path.parent).free
    if needed > free:
        raise ModelError(
            f"{name} needs {needed / 1e9:.1f} GB more, but only {free / 1e9:.1f} GB is free in {path.parent}",
            "make room, or set HF_HOME to a folder on a larger disk",
        )


def _check(file: ModelFile, etag: str, path: Path, notify: Notify) -> None:
    """The hub's etag of a large file is its checksum: it is what counts where the manifest has none."""
    expected = file.sha256 or (etag if SHA256.fullmatch(etag) else "")
    whose = "the manifest's" if file.sha256 else "the server's"
    if expected:
        notify(f"checking {where(file)}")
    if expected and sha256(path) != expected:
        path.unlink()
        raise ModelError(f"{where(file)} arrived damaged: its checksum differs from {whose}", "try again")


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(file: ModelFile) -> int:
    """Take a file out of the cache, and what interrupted downloads have left of it; the bytes that are free again."""
    freed = 0
    links = [path for path in _links(file) if path.is_symlink() or path.exists()]
    blobs = {path.resolve() for path in links}
    for path in links:
        freed += 0 if path.is_symlink() else path.stat().st_size
        path.unlink()
    still_meant = {path.resolve() for path in _folder(file).glob("snapshots/**/*") if path.is_symlink()}
    for path in (*(blobs - still_meant), *_partials(file)):
        if path.is_file():
            freed += path.stat().st_size
            path.unlink()
    return freed


def is_offline() -> bool:
    """Whether the user has forbidden downloads."""
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def _folder(file: ModelFile) -> Path:
    from huggingface_hub.constants import HF_HUB_CACHE

    return (hub_dir() or Path(HF_HUB_CACHE)) / f"models--{file.repo.replace('/', '--')}"


def _blobs(file: ModelFile) -> Path:
    return _folder(file) / "blobs"


def _links(file: ModelFile) -> list[Path]:
    """The file in every version of its repository that is cached."""
    return [version / file.file for version in _folder(file).glob("snapshots/*")]


def _partials(file: ModelFile) -> list[Path]:
    """Where the checksum isn't known, those of the repository's other files, too."""
    return list(_blobs(file).glob(f"{file.sha256 or '*'}{PARTIAL}"))


def _reason(error: Exception) -> str:
    from huggingface_hub import errors

    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.GatedRepoError):
        return "its owner requires you to log in: accept the terms on the hub, then run hf auth login"
    if status == 404 or isinstance(error, (errors.RepositoryNotFoundError, errors.RemoteEntryNotFoundError)):
        return "the server has no such file (404)"
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__

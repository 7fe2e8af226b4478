"""From what a user calls a model to its files on this disk, downloaded once where that is needed."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from omnitide_cli.catalog.folders import hub_dir
from omnitide_cli.catalog.manifest import DEFAULT_MODEL, Manifest, ModelFile, load_manifest, read_manifest
from omnitide_cli.errors import ModelError
from omnitide_cli.runtime.options import ModelFiles

UNKNOWN_WEIGHTS = "qwen2.5-omni-3b"
"""Whose prompt and picture sizes a bare .gguf file gets."""

Notify = Callable[[str], None]


def find_manifest(model: str | None) -> Manifest:
    """The manifest of a known name, of a manifest file, or for a bare .gguf file that of its family.

    Costs nothing: no weights are touched. Raises ModelError.
    """
    if model is None:
        return load_manifest(DEFAULT_MODEL)
    path = Path(model).expanduser()
    if path.suffix == ".toml":
        return read_manifest(path)
    if path.suffix == ".gguf":
        return replace(
            load_manifest(UNKNOWN_WEIGHTS),
            name=path.stem,
            title=path.name,
            model=ModelFile(path=str(path.absolute())),
            mmproj=None,
        )
    return load_manifest(model)


def fetch_files(manifest: Manifest, mmproj: str | None = None, notify: Notify = lambda message: None) -> ModelFiles:
    """The files of a model on this disk; `mmproj` replaces the manifest's. `notify` hears of downloads.

    Raises ModelError: a file is missing, can't be downloaded or isn't what the manifest says.
    """
    projector = ModelFile(path=str(Path(mmproj).expanduser().absolute())) if mmproj else manifest.mmproj
    return ModelFiles(
        name=manifest.name,
        model=_locate(manifest, manifest.model, notify),
        mmproj=_locate(manifest, projector, notify) if projector else None,
    )


def _locate(manifest: Manifest, file: ModelFile, notify: Notify) -> Path:
    if file.repo:
        return _from_hub(file, notify)
    path = manifest.folder / file.path
    if path.is_dir():
        raise ModelError(f"{path} is a folder, not a .gguf file", "give the path of the .gguf file in it")
    if not path.is_file():
        shipped = not Path(file.path).is_absolute()
        hint = "reinstall omnitide: its own model is incomplete" if shipped else "give the path of an existing file"
        raise ModelError(f"{path}: no such model file", hint)
    return path


def _from_hub(file: ModelFile, notify: Notify) -> Path:
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.utils import disable_progress_bars

    revision = file.revision or None
    cached = try_to_load_from_cache(file.repo, file.file, cache_dir=hub_dir(), revision=revision)
    if isinstance(cached, str):
        return Path(cached)
    where = f"{file.repo}/{file.file}"
    by_hand = f"fetch it where there is a network, then give --model FILE.gguf --mmproj FILE.gguf ({where})"
    if _is_offline():
        raise ModelError(f"{where} is not on this machine, and HF_HUB_OFFLINE forbids to download it", by_hand)
    notify(f"downloading {where}" + (f" ({file.size / 1e9:.1f} GB)" if file.size else ""))
    if not sys.stderr.isatty():
        disable_progress_bars()
    try:
        path = Path(hf_hub_download(file.repo, file.file, cache_dir=hub_dir(), revision=revision))
    except KeyboardInterrupt:
        raise
    except Exception as error:  # the hub's client lets errors of several HTTP libraries through
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{where} can't be downloaded: {reason}", by_hand) from error
    if file.sha256 and _sha256(path) != file.sha256:
        path.resolve().unlink()
        path.unlink(missing_ok=True)
        raise ModelError(f"{where} arrived damaged: its checksum is not the manifest's", "try again")
    return path


def _is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

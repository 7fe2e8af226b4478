"""From what a user calls a model to its files on this disk, downloaded once where that is needed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omnitide_cli.catalog import hub
from omnitide_cli.catalog.folders import expanded
from omnitide_cli.catalog.manifest import DEFAULT_MODEL, Manifest, ModelFile, load_manifest, read_manifest
from omnitide_cli.errors import ModelError
from omnitide_cli.paths import is_file, is_folder, is_there
from omnitide_cli.runtime.options import ModelFiles

FOR_REAL_VIDEO = "qwen2.5-omni-3b"
"""What is recommended to whoever has videos of their own and no model."""


def find_manifest(model: str | None, mmproj: str | None = None) -> Manifest:
    """The manifest of a known name, or of a manifest file; for a bare .gguf file, what it says of itself and what
    `mmproj`, its encoders, say.

    Costs little: no weights are touched. Raises ModelError.
    """
    if model is None:
        return load_manifest(DEFAULT_MODEL)
    path = expanded(model)
    if path.suffix == ".toml":
        return read_manifest(path)
    if path.suffix == ".gguf":
        from omnitide_cli.catalog.found import manifest_of

        return manifest_of(path, expanded(mmproj) if mmproj else None)
    return load_manifest(model)


def fetch_files(manifest: Manifest, mmproj: str | None = None, notify: hub.Notify = lambda message: None) -> ModelFiles:
    """The files of a model on this disk; `mmproj` replaces the manifest's. `notify` hears of downloads.

    Raises ModelError: a file is missing, can't be downloaded or isn't what the manifest says.
    """
    projector = ModelFile(path=str(expanded(mmproj).absolute())) if mmproj else manifest.mmproj
    missing = [file for file in (manifest.model, projector) if file and file.repo and hub.cached(file) is None]
    if missing and hub.is_offline():
        here = "is" if len(missing) == 1 else "are"
        raise ModelError(
            f"{' and '.join(map(hub.where, missing))} {here} not on this machine, and HF_HUB_OFFLINE is set, so"
            f" {'it' if len(missing) == 1 else 'they'} can't be downloaded",
            hub.by_hand(_hub_files(manifest)),
        )
    try:
        return _located(manifest, projector, notify)
    except hub.NotDownloaded as error:  # told with all that will be needed, not file by file
        raise ModelError(error.message, hub.by_hand(_hub_files(manifest))) from error


def _located(manifest: Manifest, projector: ModelFile | None, notify: hub.Notify) -> ModelFiles:
    return ModelFiles(
        name=manifest.name,
        model=_locate(manifest, manifest.model, notify),
        mmproj=_locate(manifest, projector, notify) if projector else None,
    )


@dataclass(frozen=True, slots=True)
class FileState:
    """One file of a model and whether it is here."""

    role: str
    name: str
    path: Path | None
    size: int
    """Bytes: of the file that is here, else what its manifest says (0: nothing)."""


def file_states(manifest: Manifest) -> list[FileState]:
    """The files of a model, without asking a network."""
    return [_state(manifest, role, file) for role, file in _files(manifest).items()]


def remove_files(manifest: Manifest) -> int:
    """Delete what was downloaded for a model, also in part; the bytes that are free again. Raises ModelError for a
    model that was not downloaded but shipped, or is somebody's own.
    """
    if not all(file.repo for file in _files(manifest).values()):
        raise ModelError(
            f"{manifest.name} was not downloaded by OmniTide, so it is not removed",
            "its files are your own or came with omnitide; delete them yourself if you mean to",
        )
    return sum(hub.remove(file) for file in _files(manifest).values())


def unfinished_bytes(manifest: Manifest) -> int:
    """What interrupted downloads have left of a model."""
    return hub.partial_bytes(*(file for file in _files(manifest).values() if file.repo))


def check_files(manifest: Manifest, notify: hub.Notify) -> None:
    """Compare what is here with the manifest's checksums. Raises ModelError for a file that differs."""
    for file, state in zip(_files(manifest).values(), file_states(manifest), strict=True):
        if state.path and file.sha256:
            notify(f"checking {state.name}")
            if hub.sha256(state.path) != file.sha256:
                raise ModelError(
                    f"{state.path} is damaged: its checksum differs from the manifest's",
                    f"run: omnitide models remove {manifest.name}, then pull it again",
                )


def _files(manifest: Manifest) -> dict[str, ModelFile]:
    return {"model": manifest.model} | ({"mmproj": manifest.mmproj} if manifest.mmproj else {})


def _hub_files(manifest: Manifest) -> list[ModelFile]:
    return [file for file in _files(manifest).values() if file.repo]


def _state(manifest: Manifest, role: str, file: ModelFile) -> FileState:
    path = hub.cached(file) if file.repo else manifest.folder / file.path
    here = path if path and is_file(path) else None
    size = here.stat().st_size if here else file.size
    return FileState(role, hub.where(file) if file.repo else str(manifest.folder / file.path), here, size)


def _locate(manifest: Manifest, file: ModelFile, notify: hub.Notify) -> Path:
    if file.repo:
        return hub.cached(file) or hub.fetch(file, notify)
    path = manifest.folder / file.path
    if is_folder(path):
        raise ModelError(f"{path} is a folder, not a .gguf file", "give the path of a .gguf file in it")
    if not is_there(path):
        shipped = not Path(file.path).is_absolute()
        hint = "reinstall omnitide: its own model is incomplete" if shipped else "give the path of an existing file"
        raise ModelError(f"{path}: no such model file", hint)
    return path

"""The slow part of a start: a model's files, then its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnitide_cli.errors import ModelError

if TYPE_CHECKING:
    from omnitide_cli.catalog.manifest import Manifest
    from omnitide_cli.runtime.engine import Engine
    from omnitide_cli.runtime.options import EngineOptions, ModelFiles, PromptTemplate
    from omnitide_cli.session.interrupt import Interrupt
    from omnitide_cli.session.outputs import Outputs


def model_files(manifest: Manifest, mmproj: str | None, interrupt: Interrupt, outputs: Outputs) -> ModelFiles:
    """The model's files, fetched if they must be."""
    from omnitide_cli.catalog.files import fetch_files

    outputs.console.loading(manifest.title, 0.0)
    with interrupt.raising():
        files = fetch_files(manifest, mmproj, outputs.console.say)
    return files


def check_encoders(manifest: Manifest, mmproj: str | None) -> None:
    """Raise ModelError for a model that can neither see nor hear."""
    if manifest.mmproj is None and mmproj is None:
        raise ModelError(f"{manifest.name} has no encoders: it can't see or hear", "give them with --mmproj FILE")


def load_engine(
    manifest: Manifest,
    files: ModelFiles,
    prompt: PromptTemplate,
    engine_options: EngineOptions,
    interrupt: Interrupt,
    outputs: Outputs,
) -> Engine:
    """The loaded model; the slow part, so it comes after everything that can be wrong without it."""
    from omnitide_cli.runtime.engine import Engine
    from omnitide_cli.session.configuration import check_sound

    console = outputs.console

    def progress(fraction: float) -> None:
        """Called while llama.cpp loads; the only moment at which that can be given up."""
        console.loading(manifest.title, fraction)
        if interrupt.requested:
            raise KeyboardInterrupt

    outputs.open(interrupt)
    engine = Engine.open(files, prompt, engine_options, progress=progress)
    try:
        check_sound(manifest, engine)
    except BaseException:
        engine.close()
        raise
    return engine
